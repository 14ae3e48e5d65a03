// One client's side of shared memory: its doorbell ring, work queues and completion queues, with
// the daemon's private copy of every index. Nothing read from shared memory is kept unchecked.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "emulator/abi/control.h"
#include "emulator/abi/rings.h"
#include "emulator/daemon/shared_memory.h"
#include "emulator/engine/ids.h"

namespace rocemu::daemon {

/// A ring of WQEs that the client fills.
struct WorkQueueView {
  const std::byte* base = nullptr;
  uint32_t slots = 0;   // a power of two, or 0 for no queue
  uint32_t stride = 0;  // bytes
  uint32_t seen = 0;    // WQEs handed to the engine, modulo 2^32

  const std::byte* slot(uint32_t n) const { return base + size_t{n & (slots - 1)} * stride; }
};

struct QueuePair {
  SharedMemory memory;
  WorkQueueView send;
  WorkQueueView recv;
  uint64_t user_handle = 0;
};

class CompletionQueue {
 public:
  CompletionQueue(SharedMemory memory, uint32_t capacity, uint64_t user_handle,
                  engine::ChannelId channel);

  /// The client sees it after publish().
  void add(const abi::Cqe& cqe);
  void publish();
  void set_error();

  uint32_t produced() const { return produced_; }
  /// What the client says that it has taken, modulo 2^32; unchecked.
  uint32_t consumed() const;
  uint64_t user_handle() const { return user_handle_; }
  engine::ChannelId channel() const { return channel_; }  // 0 for none

 private:
  SharedMemory memory_;
  uint32_t mask_;
  uint32_t produced_ = 0;  // modulo 2^32
  uint64_t user_handle_;
  engine::ChannelId channel_;
};

/// Bytes of the memory of a CQ: a CqRing with bit_ceil(capacity) entries.
uint64_t cq_memory_size(uint32_t capacity);

/// Where the work queues of a QP with these capabilities lie in its memory.
struct QpMemoryPlan {
  abi::WorkQueueLayout send;
  abi::WorkQueueLayout recv;
  uint64_t size;  // never 0, so that a QP without any queue can be mapped like the others
};
QpMemoryPlan plan_qp_memory(const abi::QpCap& cap);

struct ClientQueues {
  engine::ClientId id;
  SharedMemory doorbell_memory;
  uint32_t doorbells_consumed = 0;  // modulo 2^32
  uint64_t doorbells_total = 0;     // for `rocemu show`
  bool ended = false;               // nothing of this client is looked at any more
  std::unordered_map<uint32_t, QueuePair> qps;
  std::unordered_map<uint32_t, CompletionQueue> cqs;

  /// Only after doorbell_memory was set.
  abi::DoorbellRing& doorbells() const {
    return *reinterpret_cast<abi::DoorbellRing*>(doorbell_memory.data());
  }
};

}  // namespace rocemu::daemon
