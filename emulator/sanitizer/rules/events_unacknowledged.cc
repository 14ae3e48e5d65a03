// events-unacknowledged: a destruction waits for the acknowledgement of events, and the wait never
// ends. If the process has only one thread, this is certain. Otherwise another thread may still
// acknowledge the events, so the report counts only if the wait lasts until the program ends.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class UnacknowledgedCheck : public CheckOf<kEventsUnacknowledged> {
 public:
  using CheckOf::CheckOf;

  void on(const AcknowledgementWait& event) override {
    const NamedCallSite sites[] = {{"created", event.object.created}, {"waits", event.site}};
    const Report report{kEventsUnacknowledged, message_of(event), sites};
    if (host().is_single_threaded()) return host().report(report);
    waits_[&event.object] = host().report_unless_withdrawn(report);
  }

  void on(const AcknowledgementsComplete& event) override {
    const auto wait = waits_.find(&event.object);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second);
    waits_.erase(wait);
  }

 private:
  static std::string message_of(const AcknowledgementWait& event) {
    std::string events;
    if (event.completion_events != 0)
      events = count_of(event.completion_events, "completion event");
    if (event.async_events != 0)
      events += (events.empty() ? "" : " and ") + count_of(event.async_events, "async event");
    return "waits in " + std::string(info_of(event.object.kind).destroy) + " forever: " + events +
           " of " + event.object.title() + " " +
           (event.completion_events + event.async_events == 1 ? "was" : "were") +
           " not acknowledged";
  }

  std::unordered_map<const Object*, uint64_t> waits_;
};

}  // namespace

const Rule kEventsUnacknowledged{
    .id = "events-unacknowledged",
    .severity = Severity::kError,
    .summary =
        "The program destroys an object before it has acknowledged the events of the object.",
    .remedy =
        "Acknowledge each event that ibv_get_cq_event() or ibv_get_async_event() returned, "
        "and then destroy the object.",
    .clause = "man ibv_ack_cq_events; man ibv_ack_async_event; man ibv_destroy_cq",
    .make = make_check<UnacknowledgedCheck>,
};

}  // namespace rocemu::sanitizer
