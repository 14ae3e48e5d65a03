// receive-buffer-overlap: a message overwrote another message before the program had polled the
// completion of that other message. Two receives may use the same bytes as long as messages arrive
// one at a time, as in pingpong programs. So a report is made only when the completions of both
// messages are in the CQ at the same time. If all receives of a queue use the same bytes, the
// program discards messages on purpose, as benchmarks do, and is not reported. The 40 bytes before
// a datagram (GRH) are seldom read, so they may be overwritten.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "emulator/abi/send_opcodes.h"
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/recent_map.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class OverlapCheck : public CheckOf<kReceiveBufferOverlap> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    if (event.queue.kind == QueueKind::kSend) return;
    for (uint64_t number = event.begin; number != event.end; ++number) {
      const std::vector<abi::Sge>& sges = event.queue.requests.at(number).sges;
      Buffers* const buffers = buffers_.find(&event.queue);
      if (buffers == nullptr) {
        buffers_[&event.queue].first = sges;
      } else if (!buffers->are_several) {
        buffers->are_several = !is_same(buffers->first, sges);
        if (event.queue.requests.size() > 1) buffers->is_shared = true;
      }
    }
  }

  void on(const Completion& event) override {
    const bool is_message = event.status == static_cast<uint32_t>(abi::WcStatus::kSuccess) &&
                            event.queue.kind != QueueKind::kSend &&
                            event.opcode == static_cast<uint32_t>(abi::WcOpcode::kRecv);
    if (!is_message || event.request == nullptr || event.length == 0) return;
    Messages& messages = messages_[&event.cq];
    messages.forget_up_to(event.index);
    // If this completion is the only one in the CQ, its message has not overwritten another message
    // that is still needed, and no message will overwrite it.
    const bool is_alone = messages.empty() && event.produced == event.index + 1;
    if (is_alone || reported_.contains(&event.queue)) return;
    const Buffers* const buffers = buffers_.find(&event.queue);
    const bool is_one_of_several = buffers == nullptr || buffers->are_several;
    // If the queue has only one buffer, the program discards all overlapping messages on purpose.
    const bool is_one_buffer = !is_one_of_several && messages.are_all_of(event.queue);
    Message& message = messages.push(event.queue);
    message.produced = event.produced;
    message.kind = event.queue.kind;
    message.queue = event.queue.number;
    message.number = event.request->number;
    message.posted = event.request->posted;
    message.sges = event.request->sges;  // usually without an allocation
    message.length = event.length;
    message.header = event.qp != nullptr && event.qp->type == abi::QpType::kUd ? kGrhSize : 0;
    message.is_one_of_several = is_one_of_several;
    message.is_of_shared_buffer = buffers != nullptr && buffers->is_shared;
    const bool may_overlap = messages.set_extent_of_last(extent_of(message), header_of(message));
    if (is_one_buffer || !may_overlap) return;
    const Message* const first = messages.find_before_last(
        [&](const Message& one) { return destroys(event.objects, message, one); });
    if (first == nullptr) return;
    reported_.insert(&event.queue);
    report("received " + title_of(event.queue, message.number) + " over the bytes of " +
               title_of(first->kind, first->queue, first->number) +
               ", whose completion it had not polled",
           {{"posted first", first->posted}, {"posted", message.posted}});
  }

  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kCq)
      messages_.erase(static_cast<const Cq*>(&event.object));
    if (event.object.kind == ObjectKind::kSrq)
      forget(static_cast<const Srq&>(event.object).receives);
    if (event.object.kind == ObjectKind::kQp) forget(static_cast<const Qp&>(event.object).receives);
  }

 private:
  /// The size of what precedes the payload of a datagram. ibv_post_recv(3): "The message begins at
  /// byte 40"; IBTA vol 1, 11.4.2.1.
  static constexpr uint64_t kGrhSize = 40;

  struct Message {
    uint32_t produced = 0;  // number of completions in the CQ when the program got this one
    QueueKind kind{};
    uint32_t queue = 0;
    uint64_t number = 0;
    CallSite posted;
    std::vector<abi::Sge> sges;
    uint64_t header = 0, length = 0;  // the bytes before the payload, and all bytes
    bool is_one_of_several = false;   // its queue had receives with other bytes, too
    bool is_of_shared_buffer = false;
  };

  /// The range from the first to the last byte of a message's payload, whatever their regions.
  /// Messages with disjoint extents do not overlap.
  struct Extent {
    uint64_t begin = UINT64_MAX, end = 0;
  };

  /// The latest messages of a CQ, in a ring whose entries are reused. Their extents are stored
  /// apart from the rest, since nothing else is compared as long as these are disjoint.
  class Messages {
   public:
    bool empty() const { return count_ == 0; }

    /// Forgets those messages whose completions the program had already polled when the completion
    /// with that index arrived.
    void forget_up_to(uint32_t index) {
      while (count_ != 0 && !is_behind(ring_[first_ % kMost].produced, index)) forget_first();
    }
    bool are_all_of(const Queue& queue) const { return count_ == 0 || only_ == &queue; }
    /// Adds an entry for a message. The entry still has the values of an earlier message, which the
    /// caller must replace.
    Message& push(const Queue& queue) {
      if (ring_.empty()) ring_.resize(kMost);
      if (extents_.empty()) extents_.resize(kMost);
      only_ = are_all_of(queue) ? &queue : nullptr;
      if (count_ == kMost) forget_first();
      return ring_[(first_ + count_++) % kMost];
    }
    /// Sets the extent of the last message added. Returns whether another message's extent overlaps
    /// with it or with `header`.
    bool set_extent_of_last(const Extent& extent, const Extent& header) {
      bool overlaps = overlaps_any(extent);
      if (header.end != 0) overlaps |= overlaps_any(header);
      extents_[(first_ + count_ - 1) % kMost] = extent;
      return overlaps;
    }
    /// Returns the oldest message for which `is` returns true, without the message that was added
    /// last; null if there is none.
    template <class Is>
    const Message* find_before_last(Is is) const {
      for (size_t i = 0; i + 1 < count_; ++i)
        if (const Message& one = ring_[(first_ + i) % kMost]; is(one)) return &one;
      return nullptr;
    }

   private:
    static constexpr size_t kMost = 64;  // compared with the next one

    bool overlaps_any(const Extent& extent) const {
      bool overlaps = false;
      for (const Extent& one : extents_)  // without a branch for each
        overlaps |= (one.begin < extent.end) & (extent.begin < one.end);
      return overlaps;
    }
    void forget_first() {
      extents_[first_++ % kMost] = {};
      --count_;
    }

    std::vector<Message> ring_;
    std::vector<Extent> extents_;  // at the same places; empty where there is no message
    size_t first_ = 0, count_ = 0;
    const Queue* only_ = nullptr;  // the queue of all of them; null if there are several
  };

  /// The buffers of a queue's receives
  struct Buffers {
    std::vector<abi::Sge> first;
    bool are_several = false;
    bool is_shared = false;  // by receives that were outstanding at the same time
  };

  static bool is_same(const std::vector<abi::Sge>& some, const std::vector<abi::Sge>& others) {
    return std::ranges::equal(some, others, [](const abi::Sge& one, const abi::Sge& other) {
      return one.address == other.address && one.length == other.length && one.lkey == other.lkey;
    });
  }

  /// Returns whether `message` has overwritten `before`. Returns false if the program discards both
  /// on purpose.
  static bool destroys(const Objects& objects, const Message& message, const Message& before) {
    const bool is_thrown_away = !message.is_one_of_several && !before.is_one_of_several &&
                                ((message.is_of_shared_buffer && before.is_of_shared_buffer) ||
                                 is_same(message.sges, before.sges));
    return !is_thrown_away && overlap(objects, message, before);
  }

  void forget(const Queue& queue) {
    reported_.erase(&queue);
    buffers_.erase(&queue);
  }

  /// Returns whether the completion number `index` of a CQ is among the first `count` completions
  /// of the CQ. Both values are modulo 2^32.
  static bool is_behind(uint32_t count, uint32_t index) {
    return static_cast<int32_t>(count - index) > 0;
  }

  /// Calls visit(piece) for each range of memory into which the bytes from `begin` to `end` of the
  /// message were written.
  template <class Visit>
  static void for_each_piece(const Message& message, uint64_t begin, uint64_t end, Visit visit) {
    uint64_t offset = 0;  // of the SGE in the message
    for (const abi::Sge& sge : message.sges) {
      const uint64_t first = std::max(offset, begin), last = std::min(offset + sge.length, end);
      if (first < last)
        visit(abi::Sge{sge.address + (first - offset), static_cast<uint32_t>(last - first),
                       sge.lkey});
      offset += sge.length;
    }
  }

  static Extent extent_of(const Message& message, uint64_t begin, uint64_t end) {
    Extent extent;
    for_each_piece(message, begin, end, [&](const abi::Sge& piece) {
      extent = {std::min(extent.begin, piece.address),
                std::max(extent.end, piece.address + piece.length)};
    });
    return extent;
  }
  static Extent extent_of(const Message& message) {
    return extent_of(message, message.header, message.length);
  }
  static Extent header_of(const Message& message) {
    return message.header == 0 ? Extent{} : extent_of(message, 0, message.header);
  }

  /// Returns whether `message` was written over the payload of `before`.
  static bool overlap(const Objects& objects, const Message& message, const Message& before) {
    bool found = false;
    for_each_piece(message, 0, message.length, [&](const abi::Sge& piece) {
      for_each_piece(before, before.header, before.length, [&](const abi::Sge& other) {
        found |= piece.address < other.address + other.length &&
                 other.address < piece.address + piece.length &&
                 have_one_address_space(objects, piece, other);
      });
    });
    return found;
  }

  /// Returns whether the addresses of both SGEs are certain to mean the same memory: in one region,
  /// or in regions whose addresses are those of the process.
  static bool have_one_address_space(const Objects& objects, const abi::Sge& one,
                                     const abi::Sge& other) {
    return one.lkey == other.lkey ||
           (objects.memory_of(one) == one.address && objects.memory_of(other) == other.address);
  }

  RecentMap<const Cq*, Messages> messages_;
  RecentMap<const Queue*, Buffers> buffers_;
  std::unordered_set<const Queue*> reported_;
};

}  // namespace

const Rule kReceiveBufferOverlap{
    .id = "receive-buffer-overlap",
    .severity = Severity::kError,
    .summary = "A message overwrote another message that the program had not polled yet.",
    .remedy =
        "Give each posted receive its own bytes, or post the next receive only after the "
        "program has read the message in the buffer.",
    .clause = "man ibv_post_recv; IBTA vol 1, 10.8.3",
    .make = make_check<OverlapCheck>,
};

}  // namespace rocemu::sanitizer
