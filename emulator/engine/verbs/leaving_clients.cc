#include "emulator/engine/verbs/leaving_clients.h"

#include <algorithm>

#include "emulator/engine/verbs/release_qp.h"

namespace rocemu::engine {
namespace {

/// The maximum number of objects that one step destroys. Destroying them takes 1 to 2 ms.
constexpr uint32_t kReleasedPerStep = 1024;

}  // namespace

void LeavingClients::detach(ClientId client) {
  if (!objects_.clients.contains(client)) return;
  const auto found = std::ranges::find(leaving_, client, &Leaving::client);
  if (found != leaving_.end()) {
    found->detached = true;
    return;
  }
  // A client that ends goes to the front, since it may have few objects, and the release of earlier
  // clients can take long.
  leaving_.push_front({.client = client, .detached = true});
  release();
  if (objects_.clients.contains(client)) silence(client);
}

void LeavingClients::remove_device(DeviceIndex index) {
  objects_.clients.for_each_of(index, [&](ClientId client) {
    const bool leaves = std::ranges::find(leaving_, client, &Leaving::client) != leaving_.end();
    if (!leaves) leaving_.push_back({.client = client, .detached = false});
  });
  release();
  for (const Leaving& leaving : leaving_) silence(leaving.client);
}

void LeavingClients::silence(ClientId client) {
  objects_.qps.for_each_of(client, [](QueuePair& qp) {
    if (!qp.further_references.empty()) return;  // the QP stays
    qp.state = abi::QpState::kReset;
    qp.scheduled = false;
    for (Timer& timer : qp.timers) timer.deadline.reset();
  });
}

void LeavingClients::release() {
  uint32_t budget = kReleasedPerStep;
  while (!leaving_.empty() && release_objects(leaving_.front(), budget)) {
    const Leaving done = leaving_.front();
    leaving_.pop_front();
    finish(done);
  }
}

bool LeavingClients::release_objects(Leaving& leaving, uint32_t& budget) {
  const ClientId client = leaving.client;
  const auto release_all = [&](const auto& table, auto release) {
    while (auto* object = table.first_of(client)) {
      if (budget == 0) return false;
      --budget;
      release(*object);
    }
    return true;
  };
  // The release functions are called in an order in which no object is destroyed before its users.
  if (!release_all(objects_.qps, [&](QueuePair& qp) {
        if (!qp.further_references.empty()) drop_further_references(qp, client);
        release_qp(context_, qp, client, qp.user_handle);
      })) {
    return false;
  }
  if (!release_all(objects_.srqs, [&](SharedReceiveQueue& srq) { objects_.destroy(srq); }))
    return false;
  if (!leaving.has_left_xrcds) leave_xrcds(client);
  leaving.has_left_xrcds = true;
  // A PD stays for the contexts that imported it, like the PD in the kernel.
  const std::optional<ClientId> heir = objects_.clients.heir_of(client);
  return release_all(objects_.cqs, [&](CompletionQueue& cq) { objects_.cqs.destroy(cq.id); }) &&
         release_all(objects_.mrs.windows(), [&](MemoryWindow& mw) { objects_.destroy(mw); }) &&
         release_all(objects_.mrs.regions(), [&](MemoryRegion& mr) { objects_.destroy(mr); }) &&
         release_all(objects_.dms, [&](DeviceMemory& dm) { objects_.destroy(dm); }) &&
         release_all(objects_.ahs, [&](AddressHandle& ah) { objects_.destroy(ah); }) &&
         release_all(objects_.pds, [&](ProtectionDomain& pd) {
           if (heir) {
             objects_.pds.give(pd, *heir);
           } else {
             objects_.pds.destroy(pd.id);
           }
         });
}

void LeavingClients::drop_further_references(QueuePair& qp, ClientId client) {
  const size_t dropped = std::erase_if(
      qp.further_references, [&](const QueuePair::Reference& it) { return it.client == client; });
  if (dropped != 0) {
    objects_.xrcds.find(*qp.xrcd)->openers.at(client).objects -= static_cast<uint32_t>(dropped);
  }
}

/// Removes the client from all XRC domains. At this point, the only objects that it has in them are
/// references to target QPs of other clients.
void LeavingClients::leave_xrcds(ClientId client) {
  bool has_references = false;
  objects_.xrcds.for_each([&](const XrcDomain& domain) {
    const auto opener = domain.openers.find(client);
    has_references |= opener != domain.openers.end() && opener->second.objects != 0;
  });
  if (has_references) {
    objects_.qps.for_each([&](QueuePair& qp) {
      if (!qp.further_references.empty()) drop_further_references(qp, client);
    });
  }
  objects_.xrcds.for_each([&](XrcDomain& domain) {
    domain.openers.erase(client);
    if (domain.openers.empty()) objects_.xrcds.destroy(domain.id);
  });
}

void LeavingClients::finish(const Leaving& leaving) {
  const DeviceIndex index = objects_.clients.device_of(leaving.client);
  if (leaving.detached) {
    objects_.clients.remove(leaving.client);
  }
  if (!objects_.devices[index].removed) return;
  // When the last client of a removed device is released, so are the PDs that clients inherited
  // from each other.
  const bool others_depart = std::ranges::any_of(leaving_, [&](const Leaving& other) {
    return objects_.clients.device_of(other.client) == index;
  });
  if (others_depart) return;
  objects_.clients.for_each_of(index, [&](ClientId client) {
    while (ProtectionDomain* pd = objects_.pds.first_of(client)) objects_.pds.destroy(pd->id);
  });
}

}  // namespace rocemu::engine
