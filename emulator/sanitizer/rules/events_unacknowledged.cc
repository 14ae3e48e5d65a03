// events-unacknowledged: a destruction waits until each event was acknowledged once, and the wait
// never ends. This is certain if the program acknowledged too many events, or if the process has
// only one thread. Otherwise another thread may still acknowledge the events, so the report counts
// only if the wait lasts until the program ends.
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
    if (has_excess(event) || host().is_single_threaded()) return host().report(report);
    waits_[&event.object] = host().report_unless_withdrawn(report);
  }

  void on(const AcknowledgementsComplete& event) override {
    const auto wait = waits_.find(&event.object);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second);
    waits_.erase(wait);
  }

 private:
  static bool has_excess(const AcknowledgementWait& event) {
    return event.completion_events < 0 || event.async_events < 0;
  }

  /// Returns the numbers of events that are positive: "2 completion events and 1 async event".
  static std::string events_of(int64_t completion, int64_t async, const std::string& adjective) {
    std::string events;
    if (completion > 0)
      events = count_of(static_cast<uint64_t>(completion), adjective + "completion event");
    if (async > 0)
      events += (events.empty() ? "" : " and ") +
                count_of(static_cast<uint64_t>(async), adjective + "async event");
    return events;
  }

  static std::string message_of(const AcknowledgementWait& event) {
    const int64_t completion = event.completion_events, async = event.async_events;
    const std::string object = " of " + event.object.title();
    const std::string wait =
        "waits in " + std::string(info_of(event.object.kind).destroy) + " forever: ";
    if (has_excess(event)) {
      return wait + "the program acknowledged " + events_of(-completion, -async, "more ") + object +
             " than it received";
    }
    return wait + events_of(completion, async, "") + object +
           (completion + async == 1 ? " was" : " were") + " not acknowledged";
  }

  std::unordered_map<const Object*, uint64_t> waits_;
};

}  // namespace

const Rule kEventsUnacknowledged{
    .id = "events-unacknowledged",
    .severity = Severity::kError,
    .summary =
        "The program destroys an object before it has acknowledged the events of the object, or "
        "has acknowledged more events than it received.",
    .remedy =
        "Acknowledge once each event that ibv_get_cq_event() or ibv_get_async_event() returned, "
        "and then destroy the object.",
    .clause = "man ibv_ack_cq_events; man ibv_ack_async_event; man ibv_destroy_cq",
    .make = make_check<UnacknowledgedCheck>,
};

}  // namespace rocemu::sanitizer
