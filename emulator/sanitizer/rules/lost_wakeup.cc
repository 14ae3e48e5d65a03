// lost-wakeup: a thread waits for an event, although a CQ contains completions that had arrived
// before the CQ was armed. Such completions cause no event, so the thread may wait forever. Another
// thread may poll the CQ meanwhile. With several threads, the report is therefore made when the
// wait ends, if the waiting thread alone polls the CQ, or if the wait lasts until the program ends.
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class WakeupCheck : public CheckOf<kLostWakeup> {
 public:
  using CheckOf::CheckOf;

  void on(const EventWait& event) override {
    withdraw(event.thread);
    for (const Cq* cq : event.cqs) {
      const uint32_t left = cq->left_since_arm();
      // Completions without a solicited event may stay in a CQ that was armed for solicited ones.
      if (!cq->is_armed || cq->is_for_solicited || left == 0) continue;
      std::string message = "waits for a completion event although " +
                            count_of(left, "completion") + (left == 1 ? " lies" : " lie") + " in " +
                            cq->title() + ", which was armed after " + (left == 1 ? "it" : "they") +
                            " had arrived";
      Wait wait{cq,
                event.cqs.size() == 1,
                std::move(message),
                {{{"armed", cq->armed}, {"waits", event.site}}}};
      if (wait.is_for_one_cq && host().is_single_threaded())
        return host().report({kLostWakeup, wait.message, wait.sites});
      wait.report = host().report_unless_withdrawn({kLostWakeup, wait.message, wait.sites});
      waits_.emplace(event.thread, std::move(wait));
      return;
    }
  }

  void on(const EventWaitEnd& event) override {
    const auto found = waits_.find(event.thread);
    if (found == waits_.end()) return;
    const Wait wait = std::move(found->second);
    waits_.erase(found);
    host().withdraw(wait.report);
    if (!event.has_ended && wait.is_for_one_cq && is_polled_only_by(event.thread, *wait.cq))
      host().report({kLostWakeup, wait.message, wait.sites});
  }

  void on(const Destruction& event) override {
    std::erase_if(waits_, [&](const auto& one) {
      if (one.second.cq != &event.object) return false;
      host().withdraw(one.second.report);
      return true;
    });
  }

  void on(const ProgramEnd&) override {
    for (const auto& [thread, wait] : waits_)
      if (wait.cq->left_since_arm() == 0) host().withdraw(wait.report);
  }

 private:
  struct Wait {
    const Cq* cq;
    bool is_for_one_cq;
    std::string message;
    std::array<NamedCallSite, 2> sites;
    uint64_t report = 0;
  };

  static bool is_polled_only_by(Thread thread, const Cq& cq) {
    return !cq.is_polled_by_several && (cq.polled_by == 0 || cq.polled_by == thread);
  }

  void withdraw(Thread thread) {
    const auto wait = waits_.find(thread);
    if (wait == waits_.end()) return;
    host().withdraw(wait->second.report);
    waits_.erase(wait);
  }

  std::unordered_map<Thread, Wait> waits_;
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
