// Short writes to a client's memory that wait for one another: a system call costs about as much
// for one of them as for sixteen. ProcessMemory makes them before anybody can see that they were
// made: before it reads the same bytes or writes anything else, and when it is told to flush.
//
// Whether the memory is there is known only when the call is made, too late for whoever wrote. So a
// write waits only if all its pages have been written by a call since the client last changed
// anything about its regions. A page that is unmapped after that is to us what it is to a NIC,
// which has it pinned: the write is made, and nobody sees it.
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

  /// The write is short, and all its pages are known.
  bool may_wait(std::span<const engine::RemoteRange> to) const;
  /// There is no room for a write that may wait: flush() first.
  bool is_full(std::span<const engine::RemoteRange> to) const {
    return to.size() > kMaxRanges - ranges_.size() || bytes_.size() + kMaxLength > kMaxBytes;
  }
  void add(std::span<const engine::RemoteRange> to, std::span<const std::span<const uint8_t>> from);
  /// Some of the bytes are about to be written.
  bool overlaps(std::span<const engine::RemoteRange> ranges) const;
  /// Makes all of the writes, in their order.
  void flush(const MemoryReach& reach, MemoryReach::Scratch& scratch);

  /// A call has written there.
  void know(std::span<const engine::RemoteRange> written);
  /// The client may have other memory in the place of what it had.
  void forget_pages() { pages_.clear(); }

 private:
  static constexpr uint64_t kPage = 4096;  // or a multiple of it
  /// A copy of more costs as much as a system call.
  static constexpr uint64_t kMaxLength = 4096;
  static constexpr size_t kMaxBytes = 65536;
  static constexpr size_t kMaxRanges = 64;
  static constexpr size_t kPages = 512;

  bool are_known(const engine::RemoteRange& range) const;

  std::vector<engine::RemoteRange> ranges_;
  std::vector<uint8_t> bytes_;  // of all of them, one behind the other
  /// Those of which it is known, each where the low bits of its number say, or none at all.
  std::vector<uint64_t> pages_;
};

}  // namespace rocemu::daemon
