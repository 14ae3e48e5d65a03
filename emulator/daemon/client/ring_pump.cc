#include "emulator/daemon/client/ring_pump.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <tuple>

namespace rocemu::daemon {
namespace {

using Wqes = std::span<const std::byte>;

constexpr const char* kTooFarAhead =
    "the doorbell ring's producer index is further ahead than the ring is long";

bool is_before(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) < 0;
}

bool is_receive(const abi::Doorbell& bell) {
  return bell.kind == abi::DoorbellKind::kRecv || bell.kind == abi::DoorbellKind::kSrqRecv;
}

/// Returns whether the doorbell must take effect before messages of other clients arrive.
bool is_taken_first(const abi::Doorbell& bell) {
  return is_receive(bell) || bell.kind == abi::DoorbellKind::kCqArm;
}

}  // namespace

uint32_t RingPump::end_of(const ClientQueues& client) {
  return client.doorbells().producer.load(std::memory_order_acquire);
}

abi::Doorbell RingPump::copy(const ClientQueues& client, uint32_t n) {
  abi::Doorbell bell;
  std::memcpy(&bell, &client.doorbells().entries[n % abi::kDoorbellEntries], sizeof bell);
  return bell;
}

const char* RingPump::take_receives(ClientQueues& client, uint32_t& budget) {
  if (!bells_.empty()) return nullptr;  // these are handled in their order
  const uint32_t end = end_of(client);
  if (end - client.doorbells_consumed > abi::kDoorbellEntries) return kTooFarAhead;
  while (is_before(client.receives_taken, end) && budget > 0 && !client.ended) {
    abi::Doorbell bell = copy(client, client.receives_taken);
    --budget;
    unfinished_ = false;
    uint32_t bells = 1;
    if (is_taken_first(bell)) {
      if (is_receive(bell)) {
        bells = join(client, client.receives_taken, bell, end - client.receives_taken);
      }
      if (const char* violation = handle(client, bell, budget)) return violation;
      if (unfinished_) {
        pass_finished(client, bells);
        break;
      }
    }
    client.receives_taken += bells;
  }
  return nullptr;
}

/// Skips those of the `bells` joined doorbells that were handled completely before the budget was
/// used up. The remaining ones are later handled one by one.
void RingPump::pass_finished(ClientQueues& client, uint32_t bells) {
  for (; bells > 1; --bells) {
    const abi::Doorbell bell = copy(client, client.receives_taken);
    const WorkQueueView* queue = receive_queue_of(client, bell);
    if (queue == nullptr || is_before(queue->seen, static_cast<uint32_t>(bell.value))) return;
    ++client.receives_taken;
  }
}

const WorkQueueView* RingPump::receive_queue_of(ClientQueues& client, const abi::Doorbell& bell) {
  if (bell.kind == abi::DoorbellKind::kSrqRecv) {
    const SharedReceiveQueue* srq = client.srqs.find(bell.object);
    return srq != nullptr ? &srq->recv : nullptr;
  }
  const QueuePair* qp = client.qps.find(bell.object);
  return qp != nullptr ? &qp->recv : nullptr;
}

/// Joins consecutive doorbells for one work queue, so that they become one input, and short
/// messages are sent together. `bell` is doorbell number `n`. It is replaced by the last of the
/// joined doorbells, which has the total number of WQEs. Returns the number of joined doorbells, at
/// most `limit`.
uint32_t RingPump::join(const ClientQueues& client, uint32_t n, abi::Doorbell& bell,
                        uint32_t limit) {
  uint32_t bells = 1;
  while (bells < limit) {
    const abi::Doorbell next = copy(client, n + bells);
    if (next.kind != bell.kind || next.object != bell.object) break;
    if (is_before(static_cast<uint32_t>(next.value), static_cast<uint32_t>(bell.value))) break;
    bell = next;
    ++bells;
  }
  return bells;
}

RingPump::Result RingPump::run(ClientQueues& client, uint32_t limit, uint32_t budget) {
  if (!bells_.empty()) return run_by_object(client, limit, budget);
  uint32_t waiting = limit - client.doorbells_consumed;
  if (waiting == 0 || client.ended) return {};
  if (waiting > abi::kDoorbellEntries) return {.violation = kTooFarAhead};
  Result result{.worked = true};
  const EnginePort::Batch batch(engine_);
  steps_left_ = kMaxSteps;
  while (waiting > 0 && budget > 0 && !client.ended) {
    abi::Doorbell bell = copy(client, client.doorbells_consumed);
    --budget;
    unfinished_ = false;
    uint32_t bells = 1;
    if (bell.kind == abi::DoorbellKind::kSend) {
      bells = join(client, client.doorbells_consumed, bell, waiting);
    }
    if (!is_taken_first(bell) || !is_before(client.doorbells_consumed, client.receives_taken)) {
      result.violation = handle(client, bell, budget);
      if (result.violation != nullptr) return result;
      if (unfinished_) break;
    }
    client.doorbells_consumed += bells;
    client.doorbells_total += bells;
    waiting -= bells;
  }
  if (is_before(client.receives_taken, client.doorbells_consumed)) {
    client.receives_taken = client.doorbells_consumed;
  }
  client.doorbells().consumer.store(client.doorbells_consumed, std::memory_order_release);
  result.more = waiting > 0;
  return result;
}

RingPump::Result RingPump::run_by_object(ClientQueues& client, uint32_t limit, uint32_t budget) {
  if (client.ended) return {};
  if (bells_.empty()) {
    const uint32_t waiting = limit - client.doorbells_consumed;
    if (waiting == 0) return {};
    if (waiting > abi::kDoorbellEntries) return {.violation = kTooFarAhead};
    for (uint32_t n = client.doorbells_consumed; n != limit; ++n) {
      const abi::Doorbell bell = copy(client, n);
      if (is_taken_first(bell) && is_before(n, client.receives_taken)) continue;
      bells_.push_back(bell);
    }
    const auto place = [](const abi::Doorbell& bell) {
      const int kind = is_receive(bell) ? 0 : bell.kind == abi::DoorbellKind::kCqArm ? 1 : 2;
      return std::tuple(kind, bell.kind, bell.object);
    };
    std::stable_sort(bells_.begin(), bells_.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    next_bell_ = 0;
    bells_end_ = limit;
  }
  Result result{.worked = true};
  steps_left_ = UINT32_MAX;
  while (next_bell_ < bells_.size() && budget > 0) {
    --budget;
    unfinished_ = false;
    result.violation = handle(client, bells_[next_bell_], budget);
    if (result.violation != nullptr || client.ended) return result;
    if (unfinished_) break;
    ++next_bell_;
  }
  result.more = next_bell_ < bells_.size();
  if (result.more) return result;
  bells_.clear();
  client.doorbells_total += bells_end_ - client.doorbells_consumed;
  client.doorbells_consumed = client.receives_taken = bells_end_;
  client.doorbells().consumer.store(bells_end_, std::memory_order_release);
  return result;
}

const char* RingPump::handle(ClientQueues& client, const abi::Doorbell& bell, uint32_t& budget) {
  const engine::QpNumber qpn{bell.object};
  const engine::SrqId srq{bell.object};
  switch (bell.kind) {
    case abi::DoorbellKind::kSend:
    case abi::DoorbellKind::kRecv: {
      QueuePair* qp = client.qps.find(bell.object);
      if (qp == nullptr) return "a doorbell for a QP that the client does not have";
      if (bell.kind == abi::DoorbellKind::kSend) {
        return post(client, qp->send, bell.value, budget, engine_.most_wqes(), [&](Wqes wqes) {
          if (--steps_left_ == 0) budget = 0;
          engine_.submit(engine::PostSend{client.id, qpn, wqes});
        });
      }
      return post(client, qp->recv, bell.value, budget, engine_.most_receives(), [&](Wqes wqes) {
        engine_.submit(engine::PostRecv{client.id, qpn, wqes});
      });
    }
    case abi::DoorbellKind::kSrqRecv: {
      SharedReceiveQueue* queue = client.srqs.find(bell.object);
      if (queue == nullptr) return "a doorbell for an SRQ that the client does not have";
      return post(client, queue->recv, bell.value, budget, engine_.most_receives(), [&](Wqes wqes) {
        engine_.submit(engine::PostSrqRecv{client.id, srq, wqes});
      });
    }
    case abi::DoorbellKind::kCqArm:
      return arm(client, bell);
  }
  return "a doorbell of unknown kind";
}

template <class Submit>
const char* RingPump::post(ClientQueues& client, WorkQueueView& work, uint64_t value,
                           uint32_t& budget, size_t together, Submit submit) {
  // Counts are modulo 2^32, like the indices of the rings, so the upper half of the value is
  // ignored.
  uint32_t fresh = static_cast<uint32_t>(value) - work.seen;
  if (fresh > work.slots) return "a doorbell announces more WQEs than the queue has slots";
  if (wqes_.size() < together * work.stride) wqes_.resize(together * work.stride);
  while (fresh > 0) {
    if (budget == 0) {
      unfinished_ = true;
      break;
    }
    const uint32_t count = std::min({fresh, budget, static_cast<uint32_t>(together)});
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(&wqes_[size_t{i} * work.stride], work.slot(work.seen + i), work.stride);
    }
    budget -= count;
    work.seen += count;
    fresh -= count;
    submit(Wqes{wqes_.data(), size_t{count} * work.stride});
    if (client.ended) break;  // the engine found an invalid value
  }
  return nullptr;
}

const char* RingPump::arm(ClientQueues& client, const abi::Doorbell& bell) {
  const CompletionQueue* cq = client.cqs.find(bell.object);
  if (cq == nullptr) return "a doorbell for a CQ that the client does not have";
  const uint32_t producer = static_cast<uint32_t>(bell.value);
  if (static_cast<int32_t>(cq->produced() - producer) < 0) {
    return "a CQ is armed at an index that it has not reached";
  }
  client.expects_event = true;
  engine_.submit(engine::ArmCq{client.id, engine::CqId{bell.object}, producer,
                               (bell.value & abi::kCqArmSolicited) != 0});
  return nullptr;
}

}  // namespace rocemu::daemon
