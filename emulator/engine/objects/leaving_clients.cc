// Clients that are gone, and those whose device is. One of them may have had a million objects, and
// the others are not to wait until all of those are destroyed: so that is done by and by.
#include <algorithm>

#include "emulator/engine/fabric.h"

namespace rocemu::engine {
namespace {

/// Objects that one step destroys at most: a millisecond or two.
constexpr uint32_t kReleasedPerStep = 1024;

}  // namespace

void Fabric::detach(ClientId client) {
  if (!clients.contains(client)) return;
  const auto found = std::ranges::find(leaving_, client, &LeavingClient::client);
  if (found != leaving_.end()) {
    found->detached = true;
    return;
  }
  // Before those with more objects, which may take long.
  leaving_.push_front({.client = client, .detached = true});
  release_leaving();
  if (clients.contains(client)) silence(client);
}

void Fabric::silence(ClientId client) {
  qps.for_each_of(client, [](QueuePair& qp) {
    if (!qp.further_references.empty()) return;  // it stays
    qp.state = abi::QpState::kReset;
    qp.scheduled = false;
    for (Timer& timer : qp.timers) timer.deadline.reset();
  });
}

void Fabric::release_leaving() {
  uint32_t budget = kReleasedPerStep;
  while (!leaving_.empty() && release_objects(leaving_.front(), budget)) {
    const LeavingClient done = leaving_.front();
    leaving_.pop_front();
    finish(done);
  }
}

bool Fabric::release_objects(LeavingClient& leaving, uint32_t& budget) {
  const ClientId client = leaving.client;
  const auto release_all = [&](const auto& table, auto release) {
    while (auto* object = table.first_of(client)) {
      if (budget == 0) return false;
      --budget;
      release(*object);
    }
    return true;
  };
  // Users before what they use.
  if (!release_all(qps, [&](QueuePair& qp) {
        if (!qp.further_references.empty()) drop_further_references(qp, client);
        release_qp(qp, client, qp.user_handle);
      })) {
    return false;
  }
  if (!release_all(srqs, [&](SharedReceiveQueue& srq) { destroy_srq(srq); })) return false;
  if (!leaving.has_left_xrcds) leave_xrcds(client);
  leaving.has_left_xrcds = true;
  // A PD stays for the contexts that imported it, as the kernel's object does.
  const std::optional<ClientId> heir = heir_of(client);
  return release_all(cqs, [&](CompletionQueue& cq) { cqs.destroy(cq.id); }) &&
         release_all(mrs.windows(), [&](MemoryWindow& mw) { destroy_mw(mw); }) &&
         release_all(mrs.regions(), [&](MemoryRegion& mr) { destroy_mr(mr); }) &&
         release_all(dms, [&](DeviceMemory& dm) { free_dm(dm); }) &&
         release_all(ahs,
                     [&](AddressHandle& ah) {
                       --pds.find(ah.pd)->users;
                       ahs.destroy(ah.id);
                     }) &&
         release_all(pds, [&](ProtectionDomain& pd) {
           if (heir) {
             pds.give(pd, *heir);
           } else {
             pds.destroy(pd.id);
           }
         });
}

void Fabric::drop_further_references(QueuePair& qp, ClientId client) {
  const size_t dropped = std::erase_if(
      qp.further_references, [&](const QueuePair::Reference& it) { return it.client == client; });
  if (dropped != 0) {
    xrcds.find(*qp.xrcd)->openers.at(client).objects -= static_cast<uint32_t>(dropped);
  }
}

/// What it still has of them now are references to other clients' target QPs.
void Fabric::leave_xrcds(ClientId client) {
  bool has_references = false;
  xrcds.for_each([&](const XrcDomain& domain) {
    const auto opener = domain.openers.find(client);
    has_references |= opener != domain.openers.end() && opener->second.objects != 0;
  });
  if (has_references) {
    qps.for_each([&](QueuePair& qp) {
      if (!qp.further_references.empty()) drop_further_references(qp, client);
    });
  }
  xrcds.for_each([&](XrcDomain& domain) {
    domain.openers.erase(client);
    if (domain.openers.empty()) xrcds.destroy(domain.id);
  });
}

void Fabric::finish(const LeavingClient& leaving) {
  const DeviceIndex index = clients.at(leaving.client);
  if (leaving.detached) {
    groups_.erase(leaving.client);
    clients.erase(leaving.client);
  }
  if (!device(index).removed) return;
  // PDs that were inherited from one client by the next.
  const bool others_depart = std::ranges::any_of(
      leaving_, [&](const LeavingClient& other) { return clients.at(other.client) == index; });
  if (others_depart) return;
  for (const auto& [client, of] : clients) {
    while (of == index && pds.first_of(client) != nullptr) pds.destroy(pds.first_of(client)->id);
  }
}

}  // namespace rocemu::engine
