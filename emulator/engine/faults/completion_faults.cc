// What rules do to completions on their way into the CQ.
#include <algorithm>

#include "emulator/engine/fabric.h"

namespace rocemu::engine {
namespace {

using abi::WcStatus;
using faults::Flow;
using faults::HeldCompletions;
using faults::Queue;
using faults::Where;

}  // namespace

bool Fabric::judge_completion(const QueuePair& qp, CqId id, abi::Cqe cqe, bool solicits,
                              bool wanted) {
  const bool is_send = cqe.queue == abi::WorkQueue::kSend;
  const auto acting = faults.act({.where = Where::kCompletion,
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
                                  .status = cqe.status},
                                 now());
  bool drop = false;
  bool overruns = false;
  bool failed = false;
  Instant until = now();
  uint32_t hold = 0;
  for (const auto& one : acting) {
    const faults::Effects& effects = one.rule->effects;
    note(one,
         "completion of work request " + std::to_string(cqe.wr_id) + " of QP " +
             std::to_string(qp.number.value),
         qp.device, &qp);
    if (effects.status) {
      failed |= cqe.status == static_cast<uint32_t>(WcStatus::kSuccess);
      cqe.status = static_cast<uint32_t>(*effects.status);
      cqe.vendor_err = effects.vendor_error;
      solicits = wanted = true;
    }
    drop |= effects.drop;
    overruns |= effects.overrun;
    until += effects.delay;
    hold = std::max(hold, effects.hold);
  }
  CompletionQueue* cq = cqs.find(id);
  if (overruns && cq != nullptr && !cq->failed) {
    overrun(*cq);
    return !failed;
  }
  if (!wanted || drop) return !failed;
  const auto held = held_completions_.find(id);
  if (until == now() && hold == 0 && held == held_completions_.end()) {
    complete(id, cqe, solicits);
    return !failed;
  }
  HeldCompletions& waiting = held_completions_[id];
  waiting.wanted = std::max(waiting.wanted, hold);
  waiting.queue.push_back({cqe, solicits, until});
  release_held_completions();
  return !failed;
}

void Fabric::release_held_completions() {
  for (auto it = held_completions_.begin(); it != held_completions_.end();) {
    HeldCompletions& held = it->second;
    if (held.wanted != 0 && held.may_go(now())) {  // all at once
      held.wanted = 0;
      for (HeldCompletions::Held& one : held.queue) one.until = now();
    }
    while (held.may_go(now())) {
      complete(it->first, held.queue.front().cqe, held.queue.front().solicits);
      held.queue.pop_front();
    }
    it = held.queue.empty() ? held_completions_.erase(it) : std::next(it);
  }
}

std::optional<Instant> Fabric::next_held_completion() const {
  std::optional<Instant> first;
  for (const auto& [cq, held] : held_completions_) {
    if (held.wanted != 0 || held.queue.empty()) continue;
    const Instant until = held.queue.front().until;
    if (!first || until < *first) first = until;
  }
  return first;
}

}  // namespace rocemu::engine
