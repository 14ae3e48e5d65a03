// A completion queue: detects its overrun, and decides when an event is due.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine {

/// The completions for which an event was requested (ibv_req_notify_cq(3))
enum class Notify : uint8_t { kNone, kSolicited, kAny };

/// The event moderation of ibv_modify_cq(3). An event waits until it stands for `count`
/// completions, or until `period` has passed since the first of them. If count is 0 or 1, or period
/// is 0, no event waits.
struct Moderation {
  uint32_t count = 0;
  Duration period{};
};

struct QueuePair;
struct SharedReceiveQueue;

struct CompletionQueue {
  /// Creates an empty CQ. It counts completions from `first`, which tests use for the wrap at 2^32.
  CompletionQueue(CqId i, ClientId c, uint64_t first = 0)
      : id(i), client(c), produced_(first), consumed_(static_cast<uint32_t>(first)) {}

  CqId id;
  ClientId client;
  ChannelId channel;         // 0: none
  uint64_t user_handle = 0;  // the client's ibv_cq *
  uint32_t capacity = 0;     // the number of completions; one more is an overrun
  uint32_t users = 0;        // work queues that complete here
  bool failed = false;       // overrun: takes and delivers nothing any more
  Moderation moderation;
  std::optional<Instant> event_deadline;  // of an event that waits for more completions
  Links<CompletionQueue> of_client;
  QueuePair* senders = nullptr;        // the first QP whose send queue completes here
  QueuePair* receivers = nullptr;      // the first QP whose receive queue completes here
  SharedReceiveQueue* srqs = nullptr;  // the first XRC SRQ that completes here

  uint32_t waiting() const { return produced() - consumed_; }
  uint32_t produced() const { return static_cast<uint32_t>(produced_); }
  Notify armed() const { return armed_; }

  /// Counts another completion. `qualifies` is true if the completion answers a request for a
  /// solicited completion: it is a receive of a message with the Solicited Event bit, or
  /// unsuccessful. Returns whether an event is due.
  bool add(bool qualifies);
  /// Returns whether an event waits because of the moderation only.
  bool event_waits() const { return moderated_ != 0; }
  /// Notes that the waiting event is sent now, because its period is over.
  void disarm() { answer(produced_); }
  /// Changes the moderation. Returns whether this makes the waiting event due.
  bool moderate(const Moderation& by);

  bool full() const { return waiting() == capacity; }

  /// Notes that the client has taken `count` completions in all. Returns false if the client cannot
  /// have taken that number.
  bool consume(uint32_t count);

  /// Handles the client's request for an event for the first qualifying completion after the
  /// `seen`-th. Such completions may have been added before the request arrived here. An earlier
  /// event may already stand for one of them, and thus have answered the request.
  enum class ArmResult { kArmed, kAnswered, kEventDue, kImpossible };
  ArmResult arm(uint32_t seen, bool solicited_only);

 private:
  /// Returns the number of completions for which one event stands, unless the period ends earlier.
  uint32_t completions_per_event() const;
  /// Returns how many of the latest `count` completions qualified for a solicited request. All
  /// qualifying completions before the latest 64 count as one.
  uint32_t solicited_among(uint32_t count) const;
  /// Returns the position of the `n`-th qualifying completion among the latest `count`, as a value
  /// of produced_.
  uint64_t find_solicited(uint32_t count, uint32_t n) const;
  /// Notes that an event for completion number `produced` answers all requests that the client made
  /// before it saw that completion.
  void answer(uint64_t produced);

  uint64_t produced_;  // the client counts with its lower half
  uint32_t consumed_;
  uint64_t last_solicited_ = 0;  // produced_ after the latest qualifying completion
  uint64_t solicited_ = 0;       // the latest 64 completions: bit 0 is set if the last qualified
  uint64_t answered_ = 0;        // produced_ after the completion of the latest event
  Notify armed_ = Notify::kNone;
  uint32_t moderated_ = 0;  // completions for which the waiting event stands
};

}  // namespace rocemu::engine
