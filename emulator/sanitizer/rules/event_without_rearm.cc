// event-without-rearm: a thread waits for an event of a channel, but none of the channel's CQs is
// armed, since each request for notification causes only one event. Another thread of the program
// may still arm a CQ, so with several threads the report counts only if the wait lasts until the
// program ends.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class RearmCheck : public CheckOf<kEventWithoutRearm> {
 public:
  using CheckOf::CheckOf;

  void on(const EventWait& event) override {
    const Cq* latest = nullptr;
    for (const Cq* cq : event.cqs) {
      if (cq->is_armed) return;
      if (latest == nullptr || cq->armed.time_ns > latest->armed.time_ns) latest = cq;
    }
    if (latest == nullptr) return;
    const bool was_armed = latest->armed.stack != 0;
    const NamedCallSite sites[] = {
        {was_armed ? "armed last" : "created", was_armed ? latest->armed : latest->created},
        {"waits", event.site}};
    const std::string whose =
        event.cqs.size() == 1
            ? latest->title() + " is not armed"
            : "none of the " + std::to_string(event.cqs.size()) + " CQs of the channel is armed";
    const Report report{
        kEventWithoutRearm,
        "waits for a completion event, and " + whose + (was_armed ? " since its latest event" : ""),
        sites};
    if (host().is_single_threaded()) return host().report(report);
    waits_[event.thread] = host().report_unless_withdrawn(report);
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

const Rule kEventWithoutRearm{
    .id = "event-without-rearm",
    .severity = Severity::kError,
    .summary = "A thread waits for a completion event, but no CQ of the channel is armed.",
    .remedy =
        "After each event call ibv_req_notify_cq(), then poll the CQ until it is empty, then "
        "wait again.",
    .clause = "man ibv_req_notify_cq; man ibv_get_cq_event; IBTA vol 1, 11.4.2.2",
    .make = make_check<RearmCheck>,
};

}  // namespace rocemu::sanitizer
