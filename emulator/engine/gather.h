// Scatter/gather lists: which bytes of the application a part of a message is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/engine/host_memory.h"
#include "emulator/engine/limits.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/queue_pair.h"

namespace rocemu::engine {

struct SgeList {
  std::array<abi::Sge, kMaxSge> entries;
  uint32_t count = 0;

  uint64_t total() const {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += entries[i].length;
    return bytes;
  }
};

struct RangeList {
  std::array<RemoteRange, kMaxSge> ranges;
  size_t count = 0;

  std::span<const RemoteRange> span() const { return {ranges.data(), count}; }
};

/// The list behind a WQE's header; `count` is at most kMaxSge and what the WQE has room for.
inline SgeList read_sges(std::span<const std::byte> behind_header, uint32_t count) {
  SgeList list;
  list.count = count;
  std::memcpy(list.entries.data(), behind_header.data(), count * sizeof(abi::Sge));
  return list;
}

/// Where bytes [offset, offset + length) of the list lie in the client's memory; nothing if a key
/// or a range does not allow it. Entries of length 0 are not looked at (IBTA vol 1, 10.7.2.2). A
/// range longer than the list is cut at its end.
inline std::optional<RangeList> resolve(const MemoryTable& memory, const QueuePair& qp,
                                        const SgeList& list, uint64_t offset, uint64_t length,
                                        uint32_t access) {
  RangeList out;
  for (uint32_t i = 0; i < list.count && length > 0; ++i) {
    const abi::Sge& sge = list.entries[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t part = std::min<uint64_t>(sge.length - offset, length);
    const auto address =
        memory.resolve_local(qp.client, qp.pd, sge.lkey, sge.address + offset, part, access);
    if (!address) return std::nullopt;
    out.ranges[out.count++] = {*address, part};
    length -= part;
    offset = 0;
  }
  return out;
}

}  // namespace rocemu::engine
