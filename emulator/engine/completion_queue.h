// A completion queue: where it overruns, and when it notifies.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/ids.h"
#include "emulator/engine/time.h"

namespace rocemu::engine {

/// What a completion event was asked for (ibv_req_notify_cq(3)).
enum class Notify : uint8_t { kNone, kSolicited, kAny };

/// ibv_modify_cq(3): an event waits until it stands for `count` completions, or for `period` after
/// the first of them. With count 0 or 1, or period 0, no event waits.
struct Moderation {
  uint32_t count = 0;
  Duration period{};
};

struct CompletionQueue {
  /// Counts from `first`, which is for tests of their wrap at 2^32.
  CompletionQueue(CqId i, ClientId c, uint64_t first = 0)
      : id(i), client(c), produced_(first), consumed_(static_cast<uint32_t>(first)) {}

  CqId id;
  ClientId client;
  ChannelId channel;         // 0: none
  uint64_t user_handle = 0;  // the client's ibv_cq *
  uint32_t capacity = 0;     // completions it holds; one more is an overrun
  uint32_t users = 0;        // work queues that complete here
  bool failed = false;       // overrun: accepts and delivers nothing any more
  Moderation moderation;
  std::optional<Instant> event_deadline;  // of an event that waits for more completions

  uint32_t waiting() const { return produced() - consumed_; }
  uint32_t produced() const { return static_cast<uint32_t>(produced_); }
  Notify armed() const { return armed_; }

  /// Accounts for one more completion. `qualifies` for a solicited request: a receive completion
  /// of a message with the Solicited Event bit, or any unsuccessful one. True if an event is due.
  bool add(bool qualifies);
  /// An event would be due but for the moderation.
  bool event_waits() const { return moderated_ != 0; }
  /// It was sent, or waited long enough to be.
  void disarm();

  bool full() const { return waiting() == capacity; }

  /// The client has taken `count` completions in all; false if that cannot be.
  bool consume(uint32_t count);

  /// The client asks for an event for the first completion after the `seen`-th that qualifies.
  /// Such a one may have been added between its call and now.
  enum class ArmResult { kArmed, kEventDue, kImpossible };
  ArmResult arm(uint32_t seen, bool solicited_only);

 private:
  uint64_t produced_;  // what the client counts with is its lower half
  uint32_t consumed_;
  uint64_t last_solicited_ = 0;  // produced_ after the latest completion that qualified
  Notify armed_ = Notify::kNone;
  uint32_t moderated_ = 0;  // completions that the event that waits stands for
};

}  // namespace rocemu::engine
