// send-queue-never-signaled: a send queue is full of requests that cause no completion. The program
// regains space in the queue only by polling the completion of a later request, and there will be
// no such completion.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class NeverSignaledCheck : public CheckOf<kSendQueueNeverSignaled> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    if (event.refusal != Refusal::kFull || event.queue.kind != QueueKind::kSend) return;
    // A QP in ERR completes all requests, signaled or not (IBTA vol 1, 10.3.1), and it can enter
    // ERR without an action of the program.
    if (event.queue.qp->state == abi::QpState::kErr || event.queue.qp->had_error) return;
    const Requests& requests = event.queue.requests;
    if (requests.empty()) return;
    // Requests from before SQE may have been flushed, which completes them, too.
    if (requests.finished() < event.queue.qp->sends_before_recovery) return;
    bool is_any_signaled = false;
    requests.for_each([&](const Request& request) { is_any_signaled |= request.is_signaled; });
    if (is_any_signaled) return;
    report("posted to the send queue of QP " + std::to_string(event.queue.number) +
               ", which is full of " + count_of(requests.size(), "request") +
               " without IBV_SEND_SIGNALED: no completion will ever free an entry",
           {{"posted the oldest", requests.at(requests.finished() + 1).posted},
            {"refused", event.site}});
  }
};

}  // namespace

const Rule kSendQueueNeverSignaled{
    .id = "send-queue-never-signaled",
    .severity = Severity::kError,
    .summary = "A send queue is full, and none of its requests is signaled.",
    .remedy =
        "Set IBV_SEND_SIGNALED on at least one of every max_send_wr requests, and poll its "
        "completion.",
    .clause = "man ibv_post_send; IBTA vol 1, 10.8.6",
    .make = make_check<NeverSignaledCheck>,
};

}  // namespace rocemu::sanitizer
