// send-queue-overflow: a post failed with ENOMEM, and the program posts again although no thread
// has polled in between. A single ENOMEM is only back-pressure. A thread may correctly wait in this
// way while another thread polls, so a thread is judged only if all polls of the CQ were its own.
// If the process has other threads, one of them may not have begun to poll yet. So the report
// counts only if no other thread polls the CQ until the program ends.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class OverflowCheck : public CheckOf<kSendQueueOverflow> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    Queue& queue = event.queue;
    if (queue.kind != QueueKind::kSend || event.refusal == Refusal::kNone) {
      full_.erase(&queue);
      return;
    }
    if (event.refusal != Refusal::kFull) return;
    const Cq* const cq = queue.qp->sends_to;
    const uint64_t polls = cq != nullptr ? cq->polls : 0;
    const auto [before, is_first] = full_.try_emplace(&queue, Full{event.site, polls});
    if (is_first) return;
    const bool has_polled = before->second.polls != polls;
    if (!has_polled && !polls_elsewhere(cq, event.thread)) judge(event, before->second.site);
    before->second = {event.site, polls};
  }

  void on(const Poll& event) override {
    if (suspicions_.empty()) return;
    std::erase_if(suspicions_, [&](const auto& entry) {
      const Suspicion& one = entry.second;
      if (one.cq != &event.cq || one.thread == event.thread) return false;
      host().withdraw(one.report);
      return true;
    });
  }

  void on(const Destruction& event) override {
    if (event.object.kind != ObjectKind::kQp) return;
    const Queue& queue = static_cast<const Qp&>(event.object).sends;
    full_.erase(&queue);
    suspicions_.erase(&queue);  // its report stays
  }

 private:
  struct Full {
    CallSite site;
    uint64_t polls;
  };

  /// A report that is withdrawn if another thread polls the CQ
  struct Suspicion {
    const Cq* cq;
    Thread thread;
    uint64_t report;
  };

  /// Returns whether another thread has polled the CQ.
  static bool polls_elsewhere(const Cq* cq, Thread thread) {
    if (cq == nullptr) return false;
    return cq->is_polled_by_several || (cq->polled_by != 0 && cq->polled_by != thread);
  }

  void judge(const Post& event, const CallSite& first) {
    const Queue& queue = event.queue;
    if (suspicions_.contains(&queue)) return;
    const NamedCallSite sites[] = {{"refused first", first}, {"refused again", event.site}};
    const Report report{kSendQueueOverflow,
                        "posted again to the full send queue of QP " +
                            std::to_string(queue.number) + " (" +
                            count_of(queue.capacity, "request") +
                            "), and has not polled since the last post was refused",
                        sites};
    if (host().is_single_threaded()) {
      host().report(report);
    } else {
      suspicions_[&queue] = {queue.qp->sends_to, event.thread,
                             host().report_unless_withdrawn(report)};
    }
  }

  std::unordered_map<const Queue*, Full> full_;
  std::unordered_map<const Queue*, Suspicion> suspicions_;
};

}  // namespace

const Rule kSendQueueOverflow{
    .id = "send-queue-overflow",
    .severity = Severity::kError,
    .summary = "After a post failed with ENOMEM, the program posts again without polling.",
    .remedy = "Poll the send CQ until a completion frees an entry, and then post from *bad_wr on.",
    .clause = "man ibv_post_send; IBTA vol 1, 11.4.1.1",
    .make = make_check<OverflowCheck>,
};

}  // namespace rocemu::sanitizer
