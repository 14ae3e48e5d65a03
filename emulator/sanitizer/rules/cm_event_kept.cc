// cm-event-kept: rdma_destroy_id() waits for the acknowledgement of the id's events, and the wait
// never ends. The rule events-unacknowledged does the same for objects of libibverbs.
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class EventKeptCheck : public CheckOf<kCmEventKept> {
 public:
  using CheckOf::CheckOf;

  void on(const CmWait& event) override {
    const NamedCallSite sites[] = {{"got the event", event.got}, {"waits", event.site}};
    const Report report{kCmEventKept,
                        "waits in rdma_destroy_id forever: " + count_of(event.events, "event") +
                            " of the id " + (event.events == 1 ? "was" : "were") +
                            " not acknowledged",
                        sites};
    if (host().is_single_threaded()) return host().report(report);
    waits_[event.id] = host().report_unless_withdrawn(report);
  }

  void on(const CmWaitEnd& event) override {
    const auto wait = waits_.find(event.id);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second);
    waits_.erase(wait);
  }

 private:
  std::unordered_map<Handle, uint64_t> waits_;
};

}  // namespace

const Rule kCmEventKept{
    .id = "cm-event-kept",
    .severity = Severity::kError,
    .summary =
        "The program destroys an rdma_cm_id before it has acknowledged the events of the id.",
    .remedy =
        "Call rdma_ack_cm_event() for each event that rdma_get_cm_event() returned, and then "
        "destroy the id.",
    .clause = "man rdma_destroy_id; man rdma_ack_cm_event",
    .make = make_check<EventKeptCheck>,
};

}  // namespace rocemu::sanitizer
