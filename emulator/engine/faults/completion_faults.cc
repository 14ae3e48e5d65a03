#include "emulator/engine/faults/completion_faults.h"

#include <algorithm>
#include <string>

#include "emulator/engine/faults/fault_injector.h"
#include "wire/print.h"

namespace rocemu::engine::faults {
using abi::WcStatus;

CompletionFaults::CompletionFaults(FaultInjector& injector, CompletionDelivery& delivery,
                                   Objects& objects, Step& step)
    : injector_(injector),
      rules_(injector.rules),
      delivery_(delivery),
      objects_(objects),
      step_(step) {}

bool CompletionFaults::apply(const QueuePair& qp, CqId id, abi::Cqe cqe, bool solicits,
                             bool wanted) {
  const bool is_send = cqe.queue == abi::WorkQueue::kSend;
  const auto acting = injector_.act({.where = Where::kCompletion,
                                     .flow = {Flow::Kind::kQp, qp.device.value, qp.order},
                                     .device = qp.device,
                                     .to = {},
                                     .kind = static_cast<uint8_t>(cqe.opcode),
                                     .qp = qp.order,
                                     .qp_num = qp.number.value,
                                     .message = cqe.wqe_count,
                                     .size = cqe.byte_len,
                                     .wr_id = cqe.wr_id,
                                     .queue = is_send ? Queue::kSend : Queue::kReceive,
                                     .status = cqe.status});
  bool drop = false;
  bool overruns = false;
  bool failed = false;
  Instant until = step_.now();
  uint32_t hold = 0;
  for (const auto& one : acting) {
    const Effects& effects = one.rule->effects;
    injector_.note(one,
                   "completion of work request " + std::to_string(cqe.wr_id) + " of QP " +
                       wire::hexadecimal(qp.number.value),
                   qp.device, &qp);
    if (effects.status) {
      failed |= cqe.status == static_cast<uint32_t>(WcStatus::kSuccess);
      cqe.status = static_cast<uint32_t>(*effects.status);
      cqe.vendor_err = effects.vendor_error;
      solicits = wanted = true;
    }
    drop |= effects.drop;
    overruns |= effects.overrun;
    until += effects.delay + chosen(*one.random, effects.jitter);
    hold = std::max(hold, effects.hold);
  }
  CompletionQueue* cq = objects_.cqs.find(id);
  if (overruns && cq != nullptr && !cq->failed) {
    delivery_.overrun(*cq);
    return !failed;
  }
  if (!wanted || drop) return !failed;
  const auto held = held_.find(id);
  if (until == step_.now() && hold == 0 && held == held_.end()) {
    delivery_.deliver(id, cqe, solicits);
    return !failed;
  }
  HeldCompletions& waiting = held_[id];
  waiting.wanted = std::max(waiting.wanted, hold);
  waiting.queue.push_back({cqe, solicits, until});
  release_due();
  return !failed;
}

void CompletionFaults::release_due() {
  for (auto it = held_.begin(); it != held_.end();) {
    HeldCompletions& held = it->second;
    if (held.wanted != 0 && held.may_go(step_.now())) {  // all at once
      held.wanted = 0;
      for (HeldCompletions::Held& one : held.queue) one.until = step_.now();
    }
    while (held.may_go(step_.now())) {
      delivery_.deliver(it->first, held.queue.front().cqe, held.queue.front().solicits);
      held.queue.pop_front();
    }
    it = held.queue.empty() ? held_.erase(it) : std::next(it);
  }
}

std::optional<Instant> CompletionFaults::next_deadline() const {
  std::optional<Instant> first;
  for (const auto& [cq, held] : held_) {
    if (held.wanted != 0 || held.queue.empty()) continue;
    const Instant until = held.queue.front().until;
    if (!first || until < *first) first = until;
  }
  return first;
}

}  // namespace rocemu::engine::faults
