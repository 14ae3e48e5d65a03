#include "emulator/engine/objects/objects.h"

namespace rocemu::engine {

Objects::Objects(const FabricConfig& config)
    : devices(config.devices), mrs(config.seed, config.same_keys) {}

bool Objects::has_lost_its_device(ClientId client) const {
  const auto device = clients.find_device_of(client);
  return device && devices[*device].removed;
}

QueuePair* Objects::qp_of(ClientId client, QpNumber number) const {
  QueuePair* qp = qps.find(number);
  return qp != nullptr && qp->is_referenced_by(client) ? qp : nullptr;
}

SharedReceiveQueue* Objects::srq_of(ClientId client, SrqId id) const {
  SharedReceiveQueue* srq = srqs.find(id);
  return srq != nullptr && srq->client == client ? srq : nullptr;
}

void Objects::destroy(MemoryRegion& mr) {
  --pds.find(mr.pd)->users;
  mrs.destroy(mr.id);
}

void Objects::destroy(MemoryWindow& mw) {
  --pds.find(mw.pd)->users;
  mrs.destroy_window(mw.id);
}

void Objects::destroy(DeviceMemory& dm) {
  device_of(dm.client).device_memory_used -= dm.length;
  dms.destroy(dm.id);
}

void Objects::destroy(AddressHandle& ah) {
  --pds.find(ah.pd)->users;
  ahs.destroy(ah.id);
}

void Objects::destroy(SharedReceiveQueue& srq) {
  if (srq.xrcd) {
    --xrcds.find(*srq.xrcd)->openers.at(srq.client).objects;
    CompletionQueue& cq = *cqs.find(srq.cq);
    leave<&SharedReceiveQueue::of_cq>(cq.srqs, srq);
    --cq.users;
  }
  --pds.find(srq.pd)->users;
  srqs.destroy(srq.id);
}

}  // namespace rocemu::engine
