// cq-too-small: there are more outstanding requests that complete in a CQ than the CQ has entries.
// If they all complete before the program polls, the CQ overruns.
#include <algorithm>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/recent_map.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class TooSmallCheck : public CheckOf<kCqTooSmall> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    const Cq* const cq = cq_of(event.queue);
    if (cq == nullptr) return;
    Load& load = loads_[cq];
    for (uint64_t number = event.begin; number != event.end; ++number)
      if (event.queue.requests.at(number).is_signaled) ++load.requests;
    if (load.requests <= cq->capacity || load.is_reported) return;
    load.is_reported = true;
    report("posted " + title_of(event.queue, event.end - 1) + ": " +
               count_of(load.requests, "completion") + " can arrive at " + cq->title() +
               " before the next poll, but it has room for only " + std::to_string(cq->capacity),
           {{"created", cq->created}, {"posted", event.site}});
  }

  void on(const Completion& event) override {
    if (event.queue.kind == QueueKind::kShared) return;
    take(event.queue, event.last);
  }
  void on(const StateChange& event) override {
    if (event.to == abi::QpState::kReset) take_all(event.qp);
  }
  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kQp) take_all(static_cast<const Qp&>(event.object));
    if (event.object.kind == ObjectKind::kCq) loads_.erase(static_cast<const Cq*>(&event.object));
  }

 private:
  struct Load {
    uint64_t requests = 0;  // outstanding requests that complete there
    bool is_reported = false;
  };

  /// Returns the CQ in which the requests of the queue complete. Returns null for an SRQ, since a
  /// receive of an SRQ completes in the CQ of the QP that takes it.
  static const Cq* cq_of(const Queue& queue) {
    if (queue.qp == nullptr) return nullptr;
    return queue.kind == QueueKind::kSend ? queue.qp->sends_to : queue.qp->receives_from;
  }

  void take(const Queue& queue, uint64_t last) {
    Load* const load = loads_.find(cq_of(queue));
    if (load == nullptr) return;
    uint64_t count = 0;
    for (uint64_t number = queue.requests.finished() + 1;
         number <= std::min(last, queue.requests.posted()); ++number)
      if (queue.requests.at(number).is_signaled) ++count;
    load->requests -= std::min(load->requests, count);
  }
  void take_all(const Qp& qp) {
    for (const Queue* queue : {&qp.sends, &qp.receives}) take(*queue, queue->requests.posted());
  }

  RecentMap<const Cq*, Load> loads_;
};

}  // namespace

const Rule kCqTooSmall{
    .id = "cq-too-small",
    .severity = Severity::kWarning,
    .summary = "More requests are outstanding than their completion queue has entries.",
    .remedy =
        "Create the CQ with an entry for each signaled send and each receive of its QPs that "
        "can be outstanding.",
    .clause = "man ibv_create_cq; IBTA vol 1, 10.2.6 and 11.6.3.1",
    .make = make_check<TooSmallCheck>,
};

}  // namespace rocemu::sanitizer
