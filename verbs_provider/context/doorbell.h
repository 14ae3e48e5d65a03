// The client's end of a context's doorbell ring (emulator/abi/rings.h).
#pragma once

#include <cstdint>

#include "emulator/abi/control.h"
#include "verbs_provider/base/lock.h"

namespace rocemu::provider {

class DoorbellWriter {
 public:
  /// Sets the ring. `wake_fd` is the daemon's eventfd; `connection` shows whether the daemon still
  /// exists.
  void attach(abi::DoorbellRing* ring, int wake_fd, int connection);

  /// Adds an entry, and wakes the daemon if necessary. Returns 0, or EIO if the daemon has ended.
  int ring(abi::DoorbellKind kind, uint32_t object, uint64_t value);

  bool is_virtual() const { return ring_->is_virtual.load(std::memory_order_relaxed) != 0; }
  bool has_exact_memory() const {
    return ring_->has_exact_memory.load(std::memory_order_relaxed) != 0;
  }
  /// Notes, on a virtual clock, that a poll of `key` found nothing. If this is the calling
  /// thread's second such poll of the place in one round, waits for the next round, so that other
  /// threads can continue. Returns false on a real clock.
  bool wait_for_round(const void* key);

  /// Returns whether a rule may make the operation fail (abi::DoorbellRing::asked_for).
  bool asks_for(abi::Op operation) const {
    return (ring_->asked_for.load(std::memory_order_relaxed) & abi::asked_for_bit(operation)) != 0;
  }

  /// abi::DoorbellRing::pollers_per_processor.
  uint32_t pollers_per_processor() const {
    return ring_->pollers_per_processor.load(std::memory_order_relaxed);
  }

  /// Asks the kernel whether the daemon has ended. Once true, the result remains true.
  bool is_daemon_gone();
  /// Yields the processor. Meanwhile the ring shows the daemon that this thread yields.
  void give_way();

 private:
  void wake_if_sleeping();
  bool wait_for_space(uint32_t producer);

  abi::DoorbellRing* ring_ = nullptr;
  int wake_fd_ = -1;
  int connection_ = -1;
  std::atomic<bool> gone_{false};
  Mutex mutex_;
};

}  // namespace rocemu::provider
