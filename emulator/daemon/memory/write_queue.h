// Short writes to a client's memory that wait for one another: a system call costs about as much
// for one of them as for sixteen. ProcessMemory makes them before anybody can see that they were
// made: before it reads the same bytes or writes anything else, and when it is told to flush.
//
// Whether the memory is still there is known only when the call is made, too late for whoever
// wrote. A NIC has it pinned, and neither knows nor cares (MemoryReach::write_pinned).
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

  /// The write is short.
  static bool may_wait(std::span<const engine::RemoteRange> to);
  /// There is no room for a write that may wait: flush() first.
  bool is_full(std::span<const engine::RemoteRange> to) const {
    return to.size() > kMaxRanges - ranges_.size() || bytes_.size() + kMaxLength > kMaxBytes;
  }
  void add(std::span<const engine::RemoteRange> to, std::span<const std::span<const uint8_t>> from);
  /// Some of the bytes are about to be written.
  bool overlaps(std::span<const engine::RemoteRange> ranges) const;
  /// Makes all of the writes, in their order.
  void flush(const MemoryReach& reach, MemoryReach::Scratch& scratch);

 private:
  /// A copy of more costs as much as a system call.
  static constexpr uint64_t kMaxLength = 4096;
  static constexpr size_t kMaxBytes = 65536;
  static constexpr size_t kMaxRanges = 64;

  std::vector<engine::RemoteRange> ranges_;
  std::vector<uint8_t> bytes_;  // of all of them, one behind the other
};

}  // namespace rocemu::daemon
