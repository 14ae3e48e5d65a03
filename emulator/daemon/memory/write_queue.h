// Collects short writes to a client's memory, because a system call takes about the same time for
// one of them as for sixteen. ProcessMemory carries out the collected writes before any program can
// notice the delay: before it reads the same bytes or makes a write that is not collected, and when
// ProcessMemory::flush() is called.
//
// Only the system call shows whether the memory still exists, which is too late to report an error
// for the write. A NIC has pinned the memory, and would not notice either
// (MemoryReach::write_pinned).
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

  /// Returns whether the write is so short that it may be added.
  static bool may_wait(std::span<const engine::RemoteRange> to);
  /// Returns whether the queue has no space for the write, so that flush() must be called first.
  bool is_full(std::span<const engine::RemoteRange> to) const {
    return to.size() > kMaxRanges - ranges_.size() || bytes_.size() + kMaxLength > kMaxBytes;
  }
  void add(std::span<const engine::RemoteRange> to, std::span<const std::span<const uint8_t>> from);
  /// Returns whether the queue has writes to some of these bytes. Must be checked before the bytes
  /// are read or written directly.
  bool overlaps(std::span<const engine::RemoteRange> ranges) const;
  /// Carries out all writes in order, and empties the queue.
  void flush(const MemoryReach& reach, MemoryReach::Scratch& scratch);

 private:
  /// The maximum length of a write in the queue. Copying more data to the queue would take as long
  /// as a system call.
  static constexpr uint64_t kMaxLength = 4096;
  static constexpr size_t kMaxBytes = 65536;
  static constexpr size_t kMaxRanges = 64;

  std::vector<engine::RemoteRange> ranges_;
  std::vector<uint8_t> bytes_;  // of all writes, one after the other
};

}  // namespace rocemu::daemon
