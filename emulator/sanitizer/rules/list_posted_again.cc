// list-posted-again: a list was posted up to *bad_wr, and is posted again from its head, so that
// the first requests are posted twice.
#include <algorithm>
#include <unordered_map>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class PostedAgainCheck : public CheckOf<kListPostedAgain> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    Queue& queue = event.queue;
    if (const auto before = partial_.find(&queue); before != partial_.end()) {
      const Partial partial = before->second;
      partial_.erase(before);
      judge(event, partial);
    }
    const bool is_partial =
        event.head != nullptr && event.refusal != Refusal::kNone && event.begin != event.end;
    if (is_partial)
      partial_[&queue] = {event.head, event.head_wr_id, event.begin, event.end, event.place};
  }

  void on(const StateChange& event) override {
    partial_.erase(&event.qp.sends);
    partial_.erase(&event.qp.receives);
  }
  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kSrq)
      partial_.erase(&static_cast<const Srq&>(event.object).receives);
    if (event.object.kind != ObjectKind::kQp) return;
    const auto& qp = static_cast<const Qp&>(event.object);
    partial_.erase(&qp.sends);
    partial_.erase(&qp.receives);
  }

 private:
  struct Partial {
    const void* head;
    uint64_t head_wr_id;
    uint64_t begin, end;  // the requests that were posted
    Place place;
  };

  /// A program may make another list in the same memory, or post the same one anew once its
  /// requests are over: only requests that are the same, and of which none is over, are a mistake.
  void judge(const Post& event, const Partial& partial) {
    if (event.head != partial.head || event.head_wr_id != partial.head_wr_id) return;
    const Requests& requests = event.queue.requests;
    if (requests.finished() >= partial.begin) return;
    const uint64_t posted = event.end - event.begin;
    const uint64_t same = std::min(posted, partial.end - partial.begin);
    for (uint64_t i = 0; i < same; ++i)
      if (!is_same(requests.at(partial.begin + i), requests.at(event.begin + i))) return;
    if (posted == 0) return;  // a request that was refused harms nothing
    report("posted a list to " + place_of(event.queue) + " again from its head, although " +
               count_of(partial.end - partial.begin, "request") +
               " of it were posted before *bad_wr: " + title_of(event.queue, partial.begin) +
               " is there twice",
           {{"posted in part", partial.place}, {"posted again", event.place}});
  }

  static std::string place_of(const Queue& queue) {
    return (queue.kind == QueueKind::kShared ? "SRQ " : "QP ") + std::to_string(queue.number);
  }

  static bool is_same(const Request& a, const Request& b) {
    return a.wr_id == b.wr_id && a.opcode == b.opcode && a.remote_address == b.remote_address &&
           a.immediate == b.immediate &&
           std::ranges::equal(a.sges, b.sges, [](const abi::Sge& one, const abi::Sge& other) {
             return one.address == other.address && one.length == other.length &&
                    one.lkey == other.lkey;
           });
  }

  std::unordered_map<const Queue*, Partial> partial_;
};

}  // namespace

const Rule kListPostedAgain{
    .id = "list-posted-again",
    .severity = Severity::kError,
    .summary = "A list that was posted in part is posted again from its head.",
    .remedy = "Post again from *bad_wr: all requests before it were posted.",
    .clause = "man ibv_post_send; man ibv_post_recv; IBTA vol 1, 11.4.1.1",
    .make = make_check<PostedAgainCheck>,
};

}  // namespace rocemu::sanitizer
