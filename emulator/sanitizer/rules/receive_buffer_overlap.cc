// receive-buffer-overlap: a message was put over another one that the program had not got yet. Two
// receives may name the same bytes as long as messages come one at a time, as in pingpong programs;
// so a report is made when the completions of both lie in the CQ together. A program whose receives
// all have the same bytes throws messages away on purpose, as benchmarks do, and is not reported.
#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulator/abi/send_opcodes.h"
#include "emulator/sanitizer/check.h"
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
      const auto [usual, is_first] = buffers_.try_emplace(&event.queue, Buffers{sges});
      if (!is_first && !is_same(usual->second.first, sges)) usual->second.are_several = true;
    }
  }

  void on(const Completion& event) override {
    const bool is_message = event.status == static_cast<uint32_t>(abi::WcStatus::kSuccess) &&
                            event.queue.kind != QueueKind::kSend &&
                            event.opcode == static_cast<uint32_t>(abi::WcOpcode::kRecv);
    if (!is_message || event.request == nullptr || event.length == 0) return;
    std::deque<Message>& messages = messages_[&event.cq];
    while (!messages.empty() && !is_behind(messages.front().produced, event.index))
      messages.pop_front();
    // Without others in the CQ nothing can have been overwritten, nor will this one be.
    const bool is_alone = messages.empty() && event.produced == event.index + 1;
    if (is_alone || reported_.contains(&event.queue)) return;
    const auto buffers = buffers_.find(&event.queue);
    Message message{.produced = event.produced,
                    .kind = event.queue.kind,
                    .queue = event.queue.number,
                    .number = event.request->number,
                    .posted = event.request->posted,
                    .bytes = bytes_of(*event.request, event.length),
                    .sges = event.request->sges,
                    .is_one_of_several = buffers == buffers_.end() || buffers->second.are_several};
    const auto first =
        std::ranges::find_if(messages, [&](const Message& one) { return destroys(message, one); });
    if (first != messages.end()) {
      reported_.insert(&event.queue);
      report("received " + title_of(event.queue, message.number) + " over the bytes of " +
                 title_of(first->kind, first->queue, first->number) +
                 " before it had polled the completion of that",
             {{"posted first", first->posted}, {"posted", message.posted}});
    }
    if (messages.size() == kMaxMessages) messages.pop_front();
    messages.push_back(std::move(message));
  }

  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kCq)
      messages_.erase(static_cast<const Cq*>(&event.object));
    if (event.object.kind == ObjectKind::kSrq)
      forget(static_cast<const Srq&>(event.object).receives);
    if (event.object.kind == ObjectKind::kQp) forget(static_cast<const Qp&>(event.object).receives);
  }

 private:
  static constexpr size_t kMaxMessages = 64;  // of a CQ that are compared with the next one

  struct Bytes {
    uint32_t lkey;
    uint64_t begin, end;
  };
  struct Message {
    uint32_t produced;  // completions in the CQ, ever, when the program got this one
    QueueKind kind;
    uint32_t queue;
    uint64_t number;
    Place posted;
    std::vector<Bytes> bytes;  // that were received
    std::vector<abi::Sge> sges;
    bool is_one_of_several;  // its queue had receives with other bytes, too
  };
  /// What the receives of a queue name.
  struct Buffers {
    std::vector<abi::Sge> first;
    bool are_several = false;
  };

  static bool is_same(const std::vector<abi::Sge>& some, const std::vector<abi::Sge>& others) {
    return std::ranges::equal(some, others, [](const abi::Sge& one, const abi::Sge& other) {
      return one.address == other.address && one.length == other.length && one.lkey == other.lkey;
    });
  }

  /// Returns whether the program has lost `before`, and did not mean to.
  static bool destroys(const Message& message, const Message& before) {
    const bool is_thrown_away = !message.is_one_of_several && !before.is_one_of_several &&
                                is_same(message.sges, before.sges);
    return !is_thrown_away && overlap(message.bytes, before.bytes);
  }

  void forget(const Queue& queue) {
    reported_.erase(&queue);
    buffers_.erase(&queue);
  }

  /// Both count completions of a CQ, modulo 2^32.
  static bool is_behind(uint32_t count, uint32_t index) {
    return static_cast<int32_t>(count - index) > 0;
  }

  static std::vector<Bytes> bytes_of(const Request& request, uint64_t length) {
    std::vector<Bytes> bytes;
    for (const abi::Sge& sge : request.sges) {
      const uint64_t size = std::min<uint64_t>(sge.length, length);
      if (size != 0) bytes.push_back({sge.lkey, sge.address, sge.address + size});
      length -= size;
    }
    return bytes;
  }

  /// Regions may have addresses of their own, so only those of one are compared.
  static bool overlap(const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
    return std::ranges::any_of(some, [&](const Bytes& one) {
      return std::ranges::any_of(others, [&](const Bytes& other) {
        return one.lkey == other.lkey && one.begin < other.end && other.begin < one.end;
      });
    });
  }

  std::unordered_map<const Cq*, std::deque<Message>> messages_;
  std::unordered_map<const Queue*, Buffers> buffers_;
  std::unordered_set<const Queue*> reported_;
};

}  // namespace

const Rule kReceiveBufferOverlap{
    .id = "receive-buffer-overlap",
    .severity = Severity::kError,
    .summary = "A message was put over another one before the program could read that.",
    .remedy =
        "Give each posted receive bytes of its own, or post the next one only after the message "
        "in the buffer was read.",
    .clause = "man ibv_post_recv; IBTA vol 1, 10.8.3",
    .make = make_check<OverlapCheck>,
};

}  // namespace rocemu::sanitizer
