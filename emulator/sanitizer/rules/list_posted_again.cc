// list-posted-again: a call posted only the requests of a list before *bad_wr, and the program
// posts the list again from its head. So the first requests are posted twice. If all requests are
// equal, the program may repeat the same work on purpose, as benchmarks do, and is not reported.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

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
      // This call posted no request of the list, so the program may try to post the list once more.
      if (is_list_of(event, before->second) && event.begin == event.end) return;
      const Partial partial = std::move(before->second);
      partial_.erase(before);
      judge(event, partial);
    }
    const bool is_partial =
        event.head != nullptr && event.refusal != Refusal::kNone && event.begin != event.end;
    if (!is_partial) return;
    Partial& partial = partial_[&queue];
    partial = {event.head, event.head_wr_id, event.begin, event.end, event.site, {}};
    for (uint64_t number = event.begin; number != event.end; ++number)
      partial.requests.push_back(work_of(queue.requests.at(number)));
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
  /// The contents of a request, which are compared
  struct Work {
    uint64_t wr_id;
    uint32_t opcode, address_handle, immediate;
    uint64_t remote_address;
    std::vector<abi::Sge> sges;
  };
  struct Partial {
    const void* head = nullptr;
    uint64_t head_wr_id = 0;
    uint64_t begin = 0, end = 0;  // the requests that were posted
    CallSite site;
    std::vector<Work> requests;
  };

  static bool is_list_of(const Post& event, const Partial& partial) {
    return event.head == partial.head && event.head_wr_id == partial.head_wr_id;
  }

  /// Judges a post from the head of a list that was already posted in part. It may be correct: the
  /// program may have built another list in the same memory, or may post the list again after its
  /// requests have finished. It is a mistake if the requests are equal, and at least one of the
  /// requests that were posted first is unfinished.
  void judge(const Post& event, const Partial& partial) {
    if (!is_list_of(event, partial)) return;
    const Requests& requests = event.queue.requests;
    if (requests.finished() + 1 >= partial.end) return;
    const uint64_t same = std::min(event.end - event.begin, partial.end - partial.begin);
    for (uint64_t i = 0; i < same; ++i)
      if (!is_same(partial.requests[i], work_of(requests.at(event.begin + i)))) return;
    if (is_one_work_repeated(event, partial)) return;
    report("posted a list to " + place_of(event.queue) + " again from its head, although " +
               count_of(partial.end - partial.begin, "request") +
               " of the list, those before *bad_wr, were already posted: " +
               title_of(event.queue, partial.begin) + " is in the queue twice",
           {{"posted in part", partial.site}, {"posted again", event.site}});
  }

  /// Returns whether all requests that the two calls posted are equal, including their wr_ids.
  static bool is_one_work_repeated(const Post& event, const Partial& partial) {
    const Work& first = partial.requests.front();
    for (const Work& one : partial.requests)
      if (!is_same(first, one)) return false;
    for (uint64_t number = event.begin; number != event.end; ++number)
      if (!is_same(first, work_of(event.queue.requests.at(number)))) return false;
    return true;
  }

  static std::string place_of(const Queue& queue) {
    return (queue.kind == QueueKind::kShared ? "SRQ " : "QP ") + std::to_string(queue.number);
  }

  static Work work_of(const Request& request) {
    return {request.wr_id,     request.opcode,         request.address_handle,
            request.immediate, request.remote_address, request.sges};
  }

  static bool is_same(const Work& a, const Work& b) {
    return a.wr_id == b.wr_id && a.opcode == b.opcode && a.remote_address == b.remote_address &&
           a.immediate == b.immediate && a.address_handle == b.address_handle &&
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
    .summary =
        "The program posts a list again from its head, although part of the list was posted.",
    .remedy = "Post again from *bad_wr on. All requests before it were posted.",
    .clause = "man ibv_post_send; man ibv_post_recv; IBTA vol 1, 11.4.1.1",
    .make = make_check<PostedAgainCheck>,
};

}  // namespace rocemu::sanitizer
