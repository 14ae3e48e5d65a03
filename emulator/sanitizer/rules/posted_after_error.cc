// posted-after-error: the program gets an error completion of a QP, and then posts to that QP
// nevertheless. The QP is in the error state and flushes posted requests or, if a send of a UC or
// UD QP failed, in the SQE state, in which it flushes only sends (IBTA vol 1, 10.3.1).
//
// A thread gets several completions at once, and may post before it handles the last one. Another
// thread may not have seen the error at all. Therefore the thread that got the error is reported
// only after it has polled again. Every thread is reported after the program has polled the
// completion of a request that was posted after the error.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class AfterErrorCheck : public CheckOf<kPostedAfterError> {
 public:
  using CheckOf::CheckOf;

  void on(const Completion& event) override {
    if (event.status == kSuccess || event.qp == nullptr) return;
    Qp& qp = *event.qp;
    if (qp.state == abi::QpState::kErr) return;
    const bool is_send = event.queue.kind == QueueKind::kSend;
    if (!is_send && qp.can_be_in_sqe()) return;
    if (is_send && event.last <= qp.sends_before_recovery) return;
    const auto [at, is_first] = errors_.try_emplace(&qp);
    Error& error = at->second;
    if (is_first) {
      error.site = event.site;
      error.thread = event.thread;
      error.sends = qp.sends.requests.posted();
      error.receives = qp.receives.requests.posted();
      error.is_of_sends = is_send && qp.can_be_in_sqe();
      return;
    }
    // A completion of an SRQ does not count, since its receive was not posted to the QP.
    const uint64_t before = is_send ? error.sends : error.receives;
    if (event.queue.qp != nullptr && event.last > before) error.is_known = true;
  }

  void on(const Poll& event) override {
    for (auto& [qp, error] : errors_) {
      if (error.thread == event.thread) error.is_polled_again = true;
    }
  }

  void on(const Post& event) override {
    if (event.queue.qp == nullptr || event.begin == event.end) return;
    const auto found = errors_.find(event.queue.qp);
    if (found == errors_.end()) return;
    const Error& error = found->second;
    const bool is_send = event.queue.kind == QueueKind::kSend;
    if (error.is_of_sends && !is_send) return;
    const bool knows = error.is_known || (error.is_polled_again && error.thread == event.thread);
    if (!knows) return;
    report("posted " + title_of(event.queue, event.begin) +
               " after it had polled an error completion of that QP, which flushes all " +
               (error.is_of_sends ? "sends" : "requests"),
           {{"polled the error", error.site}, {"posted", event.site}});
  }

  /// Forgets the QP's error: a program that changes the QP's state knows about the error. For
  /// example, it moves the QP to ERR to drain it, or to RESET to start again.
  void on(const StateChange& event) override { errors_.erase(&event.qp); }
  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kQp) errors_.erase(static_cast<Qp*>(&event.object));
  }

 private:
  static constexpr uint32_t kSuccess = 0;

  struct Error {
    CallSite site;
    Thread thread = 0;
    uint64_t sends = 0, receives = 0;  // posted before it
    bool is_polled_again = false, is_known = false;
    bool is_of_sends = false;  // the QP still accepts receives
  };

  std::unordered_map<Qp*, Error> errors_;
};

}  // namespace

const Rule kPostedAfterError{
    .id = "posted-after-error",
    .severity = Severity::kError,
    .summary = "The program posts to a QP after it has polled an error completion of that QP.",
    .remedy =
        "After an error completion move the QP to RESET and connect it again, or destroy it. "
        "To find out when all requests are flushed, move the QP to ERR and post a marker "
        "request.",
    .clause = "man ibv_poll_cq; IBTA vol 1, 10.3.1",
    .make = make_check<AfterErrorCheck>,
};

}  // namespace rocemu::sanitizer
