// lost-wakeup: a thread waits for an event, although a CQ contains completions that had arrived
// before the CQ was armed. Such completions cause no event, so the thread may wait forever. If
// other threads poll the CQ, or other CQs share the channel, the report counts only if the wait
// lasts until the program ends.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class WakeupCheck : public CheckOf<kLostWakeup> {
 public:
  using CheckOf::CheckOf;

  void on(const EventWait& event) override {
    for (const Cq* cq : event.cqs) {
      const uint32_t left = cq->left_since_arm();
      if (!cq->is_armed || left == 0) continue;
      const NamedCallSite sites[] = {{"armed", cq->armed}, {"waits", event.site}};
      const Report report{kLostWakeup,
                          "waits for a completion event although " + count_of(left, "completion") +
                              (left == 1 ? " lies" : " lie") + " in " + cq->title() +
                              ", which was armed after " + (left == 1 ? "it" : "they") +
                              " had arrived",
                          sites};
      const bool is_only_poller =
          !cq->is_polled_by_several && (cq->polled_by == 0 || cq->polled_by == event.thread);
      if (event.cqs.size() == 1 && (is_only_poller || host().is_single_threaded())) {
        host().report(report);
      } else {
        waits_[event.thread] = host().report_unless_withdrawn(report);
      }
      return;
    }
  }

  void on(const EventWaitEnd& event) override {
    const auto wait = waits_.find(event.thread);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second);
    waits_.erase(wait);
  }

 private:
  std::unordered_map<Thread, uint64_t> waits_;
};

}  // namespace

const Rule kLostWakeup{
    .id = "lost-wakeup",
    .severity = Severity::kError,
    .summary =
        "A thread waits for an event although the CQ holds completions that arrived before "
        "it was armed.",
    .remedy = "Arm the CQ, then poll it until it is empty, then wait.",
    .clause = "man ibv_req_notify_cq; man ibv_get_cq_event; IBTA vol 1, 11.4.2.2",
    .make = make_check<WakeupCheck>,
};

}  // namespace rocemu::sanitizer
