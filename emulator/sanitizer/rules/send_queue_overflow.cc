// send-queue-overflow: a post failed with ENOMEM, and the program posts again although no thread
// has polled in between. A single ENOMEM is only back-pressure. A thread may correctly wait in this
// way while another thread polls, so a thread is judged only if all polls of the CQ were its own
// or, without any poll, if it is the only thread.
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
    if (!has_polled && polls_itself(cq, event.thread)) {
      report("posted again to the full send queue of QP " + std::to_string(queue.number) + " (" +
                 count_of(queue.capacity, "request") +
                 "), and has not polled since the last post was refused",
             {{"refused first", before->second.site}, {"refused again", event.site}});
    }
    before->second = {event.site, polls};
  }

  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kQp)
      full_.erase(&static_cast<const Qp&>(event.object).sends);
  }

 private:
  struct Full {
    CallSite site;
    uint64_t polls;
  };

  bool polls_itself(const Cq* cq, Thread thread) {
    if (cq != nullptr && cq->is_polled_by_several) return false;
    if (cq != nullptr && cq->polled_by != 0) return cq->polled_by == thread;
    return host().is_single_threaded();
  }

  std::unordered_map<const Queue*, Full> full_;
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
