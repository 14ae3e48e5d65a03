// event-without-rearm: a thread waits for an event of a channel, but none of the channel's CQs is
// armed, since each request for notification causes only one event. Another thread of the program
// may still arm a CQ. With several threads, the report counts only if the wait lasts until the
// program ends, no CQ of the channel is armed meanwhile, and a CQ then holds completions or the
// program is killed.
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
    withdraw(event.thread);
    waits_[event.thread] = {host().report_unless_withdrawn(report), latest->channel};
  }

  void on(const Arm& event) override {
    std::erase_if(waits_, [&](const auto& one) {
      if (one.second.channel != event.cq.channel) return false;
      host().withdraw(one.second.report);
      return true;
    });
  }
  void on(const EventWaitEnd& event) override { withdraw(event.thread); }
  void on(const ProgramEnd& event) override {
    for (const auto& [thread, wait] : waits_) {
      bool has_completions = false;
      event.objects.cqs.for_each([channel = wait.channel, &has_completions](const Cq& cq) {
        has_completions |= cq.channel == channel && cq.left_at_end != 0;
      });
      if (!has_completions) host().withdraw(wait.report);
    }
  }

 private:
  struct Wait {
    uint64_t report;
    Handle channel;
  };

  void withdraw(Thread thread) {
    const auto wait = waits_.find(thread);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second.report);
    waits_.erase(wait);
  }

  std::unordered_map<Thread, Wait> waits_;
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
