#include "emulator/daemon/ring_pump.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rocemu::daemon {

RingPump::Result RingPump::run(ClientQueues& client, uint32_t budget) {
  abi::DoorbellRing& ring = client.doorbells();
  const uint32_t producer = ring.producer.load(std::memory_order_acquire);
  uint32_t waiting = producer - client.doorbells_consumed;
  if (waiting == 0 || client.ended) return {};
  if (waiting > abi::kDoorbellEntries) {
    return {.violation =
                "the doorbell ring's producer index is further ahead than the ring is long"};
  }
  Result result{.worked = true};
  while (waiting > 0 && budget > 0 && !client.ended) {
    abi::Doorbell bell;
    std::memcpy(&bell, &ring.entries[client.doorbells_consumed % abi::kDoorbellEntries],
                sizeof bell);
    --budget;
    unfinished_ = false;
    result.violation = handle(client, bell, budget);
    if (result.violation != nullptr) return result;
    if (unfinished_) break;
    ++client.doorbells_consumed;
    ++client.doorbells_total;
    --waiting;
  }
  ring.consumer.store(client.doorbells_consumed, std::memory_order_release);
  result.more = waiting > 0;
  return result;
}

const char* RingPump::handle(ClientQueues& client, const abi::Doorbell& bell, uint32_t& budget) {
  switch (bell.kind) {
    case abi::DoorbellKind::kSend:
      return post<engine::PostSend>(client, bell, &QueuePair::send, budget);
    case abi::DoorbellKind::kRecv:
      return post<engine::PostRecv>(client, bell, &QueuePair::recv, budget);
    case abi::DoorbellKind::kSrqRecv:
      return "a doorbell for an SRQ that the client does not have";
    case abi::DoorbellKind::kCqArm:
      return arm(client, bell);
  }
  return "a doorbell of unknown kind";
}

template <class Post>
const char* RingPump::post(ClientQueues& client, const abi::Doorbell& bell,
                           WorkQueueView QueuePair::*queue, uint32_t& budget) {
  const auto found = client.qps.find(bell.object);
  if (found == client.qps.end()) return "a doorbell for a QP that the client does not have";
  WorkQueueView& work = found->second.*queue;
  // Counts wrap at 2^32 as the indices of the rings do; the upper half of the value says nothing.
  uint32_t fresh = static_cast<uint32_t>(bell.value) - work.seen;
  if (fresh > work.slots) return "a doorbell announces more WQEs than the queue has slots";
  if (wqe_.size() < work.stride) wqe_.resize(work.stride);
  while (fresh > 0) {
    if (budget == 0) {
      unfinished_ = true;
      break;
    }
    --budget;
    std::memcpy(wqe_.data(), work.slot(work.seen), work.stride);
    ++work.seen;
    --fresh;
    engine_.submit(Post{client.id, engine::QpNumber{bell.object}, {wqe_.data(), work.stride}});
    if (client.ended) break;  // the engine found something in it that cannot be
  }
  return nullptr;
}

const char* RingPump::arm(ClientQueues& client, const abi::Doorbell& bell) {
  const auto found = client.cqs.find(bell.object);
  if (found == client.cqs.end()) return "a doorbell for a CQ that the client does not have";
  const uint32_t producer = static_cast<uint32_t>(bell.value);
  if (static_cast<int32_t>(found->second.produced() - producer) < 0) {
    return "a CQ armed at an index that it has not reached";
  }
  engine_.submit(engine::ArmCq{client.id, engine::CqId{bell.object}, producer,
                               (bell.value & abi::kCqArmSolicited) != 0});
  return nullptr;
}

}  // namespace rocemu::daemon
