// Application memory that a message comes from or goes to: ranges in order, of one client or, in a
// shared protection domain, of several, and of null regions.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/base/bounded_list.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/objects/memory_table.h"

namespace rocemu::engine {

class MemoryList {
 public:
  MemoryList() {}  // not defaulted, as BoundedList's
  MemoryList(const Place& place, uint64_t length) { add(place, length); }

  /// At most kMaxSge times.
  void add(const Place& place, uint64_t length);

  /// As HostMemory's, of each client in turn; a null region gives zeros and takes anything.
  MemoryResult read(HostMemory& memory, std::span<const std::span<uint8_t>> to) const;
  /// As HostMemory's, if all of it is memory of the client that posted.
  MemoryResult read_posted(HostMemory& memory, ClientId posting, uint32_t slot, uint64_t offset,
                           std::span<const std::span<uint8_t>> to) const;
  MemoryResult write(HostMemory& memory, std::span<const std::span<const uint8_t>> from) const;
  /// As HostMemory's, if all of it is memory of the client that gets the completion.
  MemoryResult write_received(HostMemory& memory, ClientId completing, QpNumber qp, bool is_first,
                              std::span<const std::span<const uint8_t>> from) const;

 private:
  BoundedList<RemoteRange, kMaxSge> ranges_;
  BoundedList<ClientId, kMaxSge> clients_;  // of each of them
  uint32_t null_ = 0;                       // bit i: range i is nowhere
  bool of_one_client_ = true;               // and none of them null: one call does it
  bool on_demand_ = false;                  // of some the pages may be gone
  bool is_shared_ = false;                  // some are
  static_assert(kMaxSge <= 32);
};

}  // namespace rocemu::engine
