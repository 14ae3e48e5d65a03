// The application memory of a message: ranges in order. They can belong to one client or, in a
// shared protection domain, to several clients; some can be in null regions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/engine/base/bounded_list.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/objects/memory_table.h"

namespace rocemu::engine {

class MemoryList {
 public:
  MemoryList() {}  // not defaulted, as BoundedList's
  MemoryList(const TranslatedAddress& at, uint64_t length) { add(at, length); }

  /// Adds a range. The list must have fewer than kMaxSge ranges.
  void add(const TranslatedAddress& at, uint64_t length);

  /// Does the same as HostMemory::read(), for the client of each range in turn. Ranges in null
  /// regions read as zeros.
  MemoryResult read(HostMemory& memory, std::span<const std::span<uint8_t>> to) const;
  /// Does the same as HostMemory::read_posted() if all memory belongs to the posting client;
  /// otherwise, the same as read().
  MemoryResult read_posted(HostMemory& memory, ClientId posting, uint32_t slot, uint64_t offset,
                           std::span<const std::span<uint8_t>> to) const;
  /// Returns the client to which all the memory belongs. Returns nothing if there is none, or the
  /// memory has further addresses, or is in a null or on-demand region.
  std::optional<ClientId> owner_of_plain() const {
    const bool is_plain = !ranges_.empty() && of_one_client_ && !on_demand_ && !is_shared_;
    return is_plain ? std::optional(clients_[0]) : std::nullopt;
  }
  std::span<const RemoteRange> ranges() const { return ranges_; }
  MemoryResult write(HostMemory& memory, std::span<const std::span<const uint8_t>> from) const;
  /// Does the same as HostMemory::write_received() if all memory belongs to the client that gets
  /// the completion and is not shared; otherwise, the same as write().
  MemoryResult write_received(HostMemory& memory, ClientId completing, QpNumber qp, bool is_first,
                              std::span<const std::span<const uint8_t>> from) const;

 private:
  BoundedList<RemoteRange, kMaxSge> ranges_;
  BoundedList<ClientId, kMaxSge> clients_;  // of each range
  uint32_t null_ = 0;                       // bit i: range i belongs to a null region
  bool of_one_client_ = true;               // and no range is null, so that one call is enough
  bool on_demand_ = false;                  // some pages may not exist
  bool is_shared_ = false;                  // some ranges are shared
  static_assert(kMaxSge <= 32);
};

}  // namespace rocemu::engine
