// Scatter/gather lists: the locations of the application's bytes for a part of a message
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/engine/base/bounded_list.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/objects/memory_access.h"
#include "emulator/engine/objects/memory_table.h"

namespace rocemu::engine {

using SgeList = BoundedList<abi::Sge, kMaxSge>;

inline uint64_t total(const SgeList& list) {
  uint64_t bytes = 0;
  for (const abi::Sge& sge : list) bytes += sge.length;
  return bytes;
}

/// Returns the list that follows a WQE's header. `count` is at most kMaxSge, and the entries must
/// fit into the WQE.
inline SgeList read_sges(std::span<const std::byte> behind_header, uint32_t count) {
  SgeList list;
  list.assign(behind_header.first(count * sizeof(abi::Sge)));
  return list;
}

/// Returns the locations of the bytes [offset, offset + length) of the list, or of those that exist
/// if the list is shorter. Returns nothing if a QP in that PD may not use one of the keys or
/// ranges. Entries of length 0 are ignored (IBTA vol 1, 10.7.2.2).
inline std::optional<MemoryList> resolve(const MemoryTable& memory, PdId pd, const SgeList& list,
                                         uint64_t offset, uint64_t length, uint32_t access) {
  std::optional<MemoryList> out(std::in_place);
  for (const abi::Sge& sge : list) {
    if (length == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t part = std::min<uint64_t>(sge.length - offset, length);
    const auto place = memory.resolve_local(pd, sge.lkey, sge.address + offset, part, access);
    if (!place) return std::nullopt;
    out->add(*place, part);
    length -= part;
    offset = 0;
  }
  return out;
}

}  // namespace rocemu::engine
