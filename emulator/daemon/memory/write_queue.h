// Short writes to a client's memory that are collected: a system call costs about as much for one
// of them as for sixteen. ProcessMemory carries them out before any program can notice the delay:
// before it reads the same bytes or writes anything else, and when flush() is called.
//
// Whether the memory still exists is known only when the call is made, too late for the writer. A
// NIC has pinned the memory, and does not notice either (MemoryReach::write_pinned).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/engine/base/host_memory.h"

namespace rocemu::daemon {

class WriteQueue {
 public:
  bool empty() const { return ranges_.empty(); }

  /// Returns whether the write is short.
  static bool may_wait(std::span<const engine::RemoteRange> to);
  /// Returns whether there is no space for a write that may wait; then flush() must be called
  /// first.
  bool is_full(std::span<const engine::RemoteRange> to) const {
    return to.size() > kMaxRanges - ranges_.size() || bytes_.size() + kMaxLength > kMaxBytes;
  }
  void add(std::span<const engine::RemoteRange> to, std::span<const std::span<const uint8_t>> from);
  /// Returns whether the queue has writes to some of these bytes. Must be checked before the bytes
  /// are written.
  bool overlaps(std::span<const engine::RemoteRange> ranges) const;
  /// Carries out all writes, in order.
  void flush(const MemoryReach& reach, MemoryReach::Scratch& scratch);

 private:
  /// The maximum length of a write in the queue: copying more costs as much as a system call.
  static constexpr uint64_t kMaxLength = 4096;
  static constexpr size_t kMaxBytes = 65536;
  static constexpr size_t kMaxRanges = 64;

  std::vector<engine::RemoteRange> ranges_;
  std::vector<uint8_t> bytes_;  // of all writes, one after the other
};

}  // namespace rocemu::daemon
