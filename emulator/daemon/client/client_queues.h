// The memory that one client shares with the daemon: its doorbell ring, work queues and completion
// queues. The daemon has a private copy of every index, and checks every value that it reads from
// shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/abi/rings.h"
#include "emulator/daemon/base/arena.h"
#include "emulator/daemon/client/object_map.h"
#include "emulator/engine/base/ids.h"

namespace rocemu::daemon {

/// A ring into which the client writes WQEs
struct WorkQueueView {
  const std::byte* base = nullptr;
  uint32_t slots = 0;   // a power of two, or 0 for no queue
  uint32_t stride = 0;  // bytes
  uint32_t seen = 0;    // WQEs passed to the engine, modulo 2^32

  const std::byte* slot(uint32_t n) const { return base + size_t{n & (slots - 1)} * stride; }
};

struct QueuePair {
  Arena::Piece memory;
  WorkQueueView send;
  WorkQueueView recv;
  /// One handle for each reference of the client to the QP. ibv_open_qp(3) creates further
  /// references.
  std::vector<uint64_t> user_handles;
};

struct SharedReceiveQueue {
  Arena::Piece memory;
  WorkQueueView recv;
  uint64_t user_handle = 0;
};

class CompletionQueue {
 public:
  /// Initializes an empty ring in `memory`, whose contents do not matter.
  CompletionQueue(Arena::Piece memory, uint32_t capacity, uint64_t user_handle,
                  engine::ChannelId channel);

  /// Moves the ring to other memory, with the completions that the client has not taken. The
  /// indices continue. Returns false and changes nothing if the client's consumer index is
  /// impossible.
  bool move_to(Arena::Piece memory, uint32_t capacity);

  /// Adds a completion, which becomes visible to the client with publish().
  void add(const abi::Cqe& cqe);
  /// Makes the added completions visible, and watches the CQ. Returns whether it was not watched
  /// before: the caller must then call unwatch() when no more completions arrive.
  [[nodiscard]] bool publish();
  /// Wakes the threads that wait for more completions, and lets no more threads wait for several.
  void unwatch();
  /// Returns whether completions were published since the latest call.
  bool has_progressed() { return std::exchange(noted_, produced_) != produced_; }
  /// Wakes the threads that wait for more completions. Returns whether any thread waited.
  bool wake_waiting();
  void set_error();

  uint32_t produced() const { return produced_; }
  /// Returns the number of completions that the client claims to have taken, modulo 2^32. The
  /// number is unchecked.
  uint32_t consumed() const;
  uint32_t capacity() const { return capacity_; }
  uint64_t user_handle() const { return user_handle_; }
  engine::ChannelId channel() const { return channel_; }  // 0 for none

 private:
  void wake();

  Arena::Piece memory_;
  uint32_t capacity_;
  uint32_t mask_;
  uint32_t produced_ = 0;  // modulo 2^32
  bool failed_ = false;
  bool is_watched_ = false;
  uint32_t noted_ = 0;  // `produced_` at the latest has_progressed()
  uint64_t user_handle_;
  engine::ChannelId channel_;
};

/// Returns the size of the memory of a CQ: a CqRing with bit_ceil(capacity) entries.
uint64_t cq_memory_size(uint32_t capacity);

/// The layout of a QP's work queues in the QP's memory
struct QpMemoryPlan {
  abi::WorkQueueLayout send;
  abi::WorkQueueLayout recv;
  uint64_t size;  // never 0, so that a QP without any queue has memory like the others
};
QpMemoryPlan plan_qp_memory(const abi::QpCap& cap);

/// Returns the capabilities without the queues that the QP does not have: a QP with an SRQ and an
/// XRC initiator QP have no receive queue, and an XRC target QP has no queue at all.
abi::QpCap without_missing_queues(abi::QpCap cap, abi::QpType type, bool has_srq);

/// The layout of an SRQ's memory, which is one receive ring
struct SrqMemoryPlan {
  abi::WorkQueueLayout recv;
  uint64_t size;
};
SrqMemoryPlan plan_srq_memory(uint32_t max_wr, uint32_t max_sge);

struct ClientQueues {
  engine::ClientId id;
  Arena arena;                   // owns all the memory below
  Arena::Piece doorbell_memory;  // a DoorbellRing and, if there was space, a Payload
  // The daemon has handled the doorbells before doorbells_consumed, and also the receives and arms
  // before receives_taken. Both numbers are modulo 2^32.
  uint32_t doorbells_consumed = 0;
  uint32_t receives_taken = 0;   // never before doorbells_consumed
  uint64_t doorbells_total = 0;  // for `rocemu show`
  bool ended = false;            // the daemon ignores this client from now on
  bool expects_event = false;    // armed a CQ, and no completion event was sent since
  ObjectMap<QueuePair> qps;
  ObjectMap<CompletionQueue> cqs;
  ObjectMap<SharedReceiveQueue> srqs;

  /// Returns the ring in doorbell_memory, which must have been set.
  abi::DoorbellRing& doorbells() const {
    return *reinterpret_cast<abi::DoorbellRing*>(doorbell_memory.data());
  }

  /// Returns the payload in doorbell_memory; null if there was no space for it.
  abi::Payload* payload() const {
    if (doorbell_memory.size() < sizeof(abi::DoorbellRing) + sizeof(abi::Payload)) {
      return nullptr;
    }
    return reinterpret_cast<abi::Payload*>(doorbell_memory.data() + sizeof(abi::DoorbellRing));
  }

  /// Sets whether the client must write its eventfd when it rings. The client writes a doorbell and
  /// then reads this flag; the daemon writes the flag and then calls has_doorbells(). All four
  /// accesses are sequentially consistent, so that at least one side sees the other's write.
  void set_daemon_sleeping(bool sleeping) const {
    doorbells().daemon_sleeping.store(sleeping ? 1 : 0, std::memory_order_seq_cst);
  }
  bool has_doorbells() const {
    return doorbells().producer.load(std::memory_order_seq_cst) != doorbells_consumed;
  }

  size_t size() const { return qps.size() + cqs.size() + srqs.size(); }
  /// Destroys some queues of a client that has ended or, when none are left, a part of their
  /// memory. Each call is short, so that other clients do not wait for long. Returns whether
  /// something is left.
  bool dismantle();
  /// Releases memory that the tables still use for queues that were destroyed.
  void shrink();
};

}  // namespace rocemu::daemon
