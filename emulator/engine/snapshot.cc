#include "emulator/engine/snapshot.h"

#include "emulator/engine/engine.h"
#include "emulator/engine/fabric.h"

namespace rocemu::engine {
namespace {

DeviceSnapshot describe(const Device& device) {
  DeviceSnapshot out{};
  out.name = device.config.name;
  for (const wire::IpAddress& address : device.config.addresses) {
    out.gids.push_back(wire::to_string(address));
  }
  out.port_state = device.port_state;
  out.active_mtu = device.config.active_mtu;
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    const auto counter = static_cast<Counter>(i);
    out.counters.emplace_back(name(counter), device.counters.get(counter));
  }
  return out;
}

QpSnapshot describe(const QueuePair& qp) {
  return {.number = qp.number,
          .client = qp.client,
          .type = qp.type,
          .state = qp.state,
          .send_cq = qp.send_cq,
          .recv_cq = qp.recv_cq,
          .dest_qpn = qp.attr.dest_qp_num,
          .send_psn = qp.send.sent_limit.value(),
          .unacked_psn = qp.send.unacked.value(),
          .expected_psn = qp.recv.expected.value(),
          .msn = qp.recv.msn,
          .send_posted = qp.send.queue.size(),
          .recv_posted = qp.recv.queue.size()};
}

}  // namespace

FabricSnapshot Engine::snapshot() const {
  FabricSnapshot out;
  for (const Device& device : fabric_->devices()) out.devices.push_back(describe(device));
  const auto of = [&](ClientId client) -> DeviceSnapshot& {
    return out.devices[fabric_->clients.at(client).value];
  };
  fabric_->pds.for_each([&](const ProtectionDomain& pd) { ++of(pd.client).pd_count; });
  fabric_->ahs.for_each([&](const AddressHandle& ah) { ++of(ah.client).ah_count; });
  fabric_->qps.for_each([&](const QueuePair& qp) { of(qp.client).qps.push_back(describe(qp)); });
  fabric_->cqs.for_each([&](const CompletionQueue& cq) {
    of(cq.client).cqs.push_back(
        {.id = cq.id,
         .client = cq.client,
         .capacity = cq.capacity,
         .waiting = cq.produced() - fabric_->host_memory().completions_taken(cq.client, cq.id),
         .armed = cq.armed() != Notify::kNone,
         .overrun = cq.failed});
  });
  fabric_->mrs.for_each([&](const MemoryRegion& mr) {
    of(mr.client).mrs.push_back({.id = mr.id,
                                 .client = mr.client,
                                 .address = mr.address,
                                 .length = mr.length,
                                 .lkey = mr.lkey,
                                 .rkey = mr.rkey,
                                 .access = mr.access});
  });
  return out;
}

}  // namespace rocemu::engine
