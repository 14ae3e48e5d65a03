// not-polled-after-arm: a thread waits for an event of a CQ that was not polled since it was armed.
// A completion that arrived just before the CQ was armed causes no event. The wait is correct if
// nothing could complete when the CQ was armed, as at the beginning of a program.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class PollAfterArmCheck : public CheckOf<kNotPolledAfterArm> {
 public:
  using CheckOf::CheckOf;

  void on(const EventWait& event) override {
    for (const Cq* cq : event.cqs) {
      // A program may leave unsolicited completions in the CQ on purpose.
      if (!cq->is_armed || cq->is_for_solicited) continue;
      if (!cq->could_complete_at_arm || cq->polls != cq->polls_at_arm) continue;
      report(
          "waits for a completion event, and has not polled " + cq->title() + " since it was armed",
          {{"armed", cq->armed}, {"waits", event.site}});
    }
  }
};

}  // namespace

const Rule kNotPolledAfterArm{
    .id = "not-polled-after-arm",
    .severity = Severity::kWarning,
    .summary = "A thread waits for an event of a CQ that was not polled after it was armed.",
    .remedy =
        "Poll the CQ once more between ibv_req_notify_cq() and ibv_get_cq_event(). A "
        "completion that arrived before the request causes no event.",
    .clause = "man ibv_get_cq_event; IBTA vol 1, 11.4.2.2",
    .make = make_check<PollAfterArmCheck>,
};

}  // namespace rocemu::sanitizer
