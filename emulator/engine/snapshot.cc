#include "emulator/engine/snapshot.h"

#include <algorithm>

#include "emulator/engine/fabric.h"
#include "emulator/engine/rdmacm/rdma_cm.h"

namespace rocemu::engine {
namespace {

DeviceSnapshot describe(const Device& device) {
  DeviceSnapshot out{};
  out.name = device.config.name;
  for (const wire::IpAddress& address : device.config.addresses) {
    out.gids.push_back(wire::to_string(address));
  }
  out.port_state = device.port_state;
  out.profile = device.config.profile->name;
  out.has_been_prepared = device.has_been_prepared;
  out.has_been_posted_to = device.has_been_posted_to;
  out.failed_late = device.failed_late;
  out.removed = device.removed;
  out.active_mtu = device.config.active_mtu;
  out.counters = device.counters;
  return out;
}

QpSnapshot describe(const QueuePair& qp) {
  return {.number = qp.number,
          .client = qp.client,
          .pd = qp.pd,
          .type = qp.type,
          .state = qp.state,
          .send_cq = qp.send_cq,
          .recv_cq = qp.recv_cq,
          .srq = qp.srq.value_or(SrqId{}),
          .dest_qpn = qp.attr.dest_qp_num,
          .sq_psn = qp.attr.sq_psn,
          .rq_psn = qp.attr.rq_psn,
          .send_psn = qp.send.sent_limit.value(),
          .unacked_psn = qp.send.unacked.value(),
          .expected_psn = qp.recv.expected.value(),
          .msn = qp.recv.msn,
          .send_posted = qp.send.queue.size(),
          .recv_posted = qp.recv.queue.size()};
}

}  // namespace

FabricSnapshot take_snapshot(const Fabric& fabric, const cm::RdmaCm& rdma_cm) {
  const Objects& objects = fabric.objects;
  FabricSnapshot out;
  for (const Device& device : objects.devices) out.devices.push_back(describe(device));
  if (const SimulatedNetwork* network = fabric.crossing.network()) {
    for (uint32_t i = 0; i < out.devices.size(); ++i)
      out.devices[i].pauses = network->pauses_of(DeviceIndex{i});
  }
  const auto of = [&](ClientId client) -> DeviceSnapshot& {
    return out.devices[objects.clients.device_of(client).value];
  };
  objects.pds.for_each([&](const ProtectionDomain& pd) {
    of(pd.client).pds.push_back({.id = pd.id, .client = pd.client, .users = pd.users});
  });
  objects.ahs.for_each([&](const AddressHandle& ah) { ++of(ah.client).ah_count; });
  objects.qps.for_each([&](const QueuePair& qp) { of(qp.client).qps.push_back(describe(qp)); });
  objects.cqs.for_each([&](const CompletionQueue& cq) {
    of(cq.client).cqs.push_back(
        {.id = cq.id,
         .client = cq.client,
         .capacity = cq.capacity,
         .waiting =
             std::min(cq.produced() - fabric.commands.memory.completions_taken(cq.client, cq.id),
                      cq.capacity),
         .armed = cq.armed() != Notify::kNone,
         .overrun = cq.failed});
  });
  objects.srqs.for_each([&](const SharedReceiveQueue& srq) {
    of(srq.client)
        .srqs.push_back({.id = srq.id,
                         .client = srq.client,
                         .pd = srq.pd,
                         .type = srq.type,
                         .cq = srq.cq,
                         .max_wr = srq.max_wr,
                         .posted = srq.queue.size(),
                         .limit = srq.limit});
  });
  objects.xrcds.for_each([&](const XrcDomain& domain) {
    XrcdSnapshot xrcd{.id = domain.id, .clients = {}};
    for (const auto& [client, opener] : domain.openers) xrcd.clients.push_back(client);
    out.devices[domain.device.value].xrcds.push_back(std::move(xrcd));
  });
  objects.mrs.for_each([&](const MemoryRegion& mr) {
    of(mr.client).mrs.push_back({.id = mr.id,
                                 .client = mr.client,
                                 .pd = mr.pd,
                                 .address = mr.address,
                                 .length = mr.length,
                                 .lkey = mr.lkey,
                                 .rkey = mr.rkey,
                                 .access = mr.access,
                                 .kind = mr.kind,
                                 .windows = mr.windows});
  });
  objects.mrs.for_each_window([&](const MemoryWindow& mw) {
    MwSnapshot window{};
    window.id = mw.id;
    window.client = mw.client;
    window.type = mw.type;
    window.rkey = mw.rkey;
    if (mw.region) {
      window.bound = true;
      window.region = *mw.region;
      window.address = mw.address;
      window.length = mw.length;
      window.access = mw.access;
      window.qp = mw.qp;
    }
    of(mw.client).mws.push_back(window);
  });
  out.listeners = rdma_cm.listeners();
  out.rdma_ids = rdma_cm.ids();
  return out;
}

}  // namespace rocemu::engine
