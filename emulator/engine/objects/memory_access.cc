#include "emulator/engine/objects/memory_access.h"

#include <algorithm>
#include <array>

namespace rocemu::engine {
namespace {

/// Splits ranges and buffers, which have the same total length, where either a range or a buffer
/// ends, and calls `visit(index of the range, piece of the range, piece of the buffer)` for each
/// piece.
template <class Byte, class Visit>
MemoryResult for_each_piece(std::span<const RemoteRange> ranges,
                            std::span<const std::span<Byte>> buffers, Visit visit) {
  size_t buffer = 0, used = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (RemoteRange rest = ranges[i]; rest.length > 0;) {
      while (used == buffers[buffer].size()) {
        ++buffer;
        used = 0;
      }
      const size_t size = std::min<uint64_t>(rest.length, buffers[buffer].size() - used);
      const RemoteRange piece{rest.address, size, rest.is_shared};
      const MemoryResult result = visit(i, piece, buffers[buffer].subspan(used, size));
      if (result != MemoryResult::kDone) return result;
      rest.address += size;
      rest.length -= size;
      used += size;
    }
  }
  return MemoryResult::kDone;
}

}  // namespace

void MemoryList::add(const TranslatedAddress& at, uint64_t length) {
  of_one_client_ = of_one_client_ && !at.null && (ranges_.empty() || clients_[0] == at.client);
  if (at.null) null_ |= 1u << ranges_.size();
  on_demand_ |= at.on_demand;
  is_shared_ |= at.is_shared;
  ranges_.push_back({at.address, length, at.is_shared, at.is_relaxed});
  clients_.push_back(at.client);
}

MemoryResult MemoryList::read(HostMemory& memory, std::span<const std::span<uint8_t>> to) const {
  if (ranges_.empty()) return MemoryResult::kDone;
  if (of_one_client_) return memory.read(clients_[0], ranges_, to);
  return for_each_piece<uint8_t>(
      ranges_, to, [&](size_t index, const RemoteRange& from, std::span<uint8_t> piece) {
        if ((null_ >> index & 1) != 0) {
          std::ranges::fill(piece, uint8_t{0});
          return MemoryResult::kDone;
        }
        const std::array<std::span<uint8_t>, 1> target{piece};
        return memory.read(clients_[index], {&from, 1}, target);
      });
}

MemoryResult MemoryList::read_posted(HostMemory& memory, ClientId posting, uint32_t slot,
                                     uint64_t offset,
                                     std::span<const std::span<uint8_t>> to) const {
  if (ranges_.empty() || !of_one_client_ || clients_[0] != posting) return read(memory, to);
  return memory.read_posted(posting, slot, offset, ranges_, to);
}

MemoryResult MemoryList::write(HostMemory& memory,
                               std::span<const std::span<const uint8_t>> from) const {
  if (ranges_.empty()) return MemoryResult::kDone;
  if (of_one_client_) {
    return on_demand_ ? memory.write(clients_[0], ranges_, from)
                      : memory.write_soon(clients_[0], ranges_, from);
  }
  return for_each_piece<const uint8_t>(
      ranges_, from, [&](size_t index, const RemoteRange& to, std::span<const uint8_t> piece) {
        if ((null_ >> index & 1) != 0) return MemoryResult::kDone;
        const std::array<std::span<const uint8_t>, 1> source{piece};
        return memory.write(clients_[index], {&to, 1}, source);
      });
}

MemoryResult MemoryList::write_received(HostMemory& memory, ClientId completing, QpNumber qp,
                                        bool is_first,
                                        std::span<const std::span<const uint8_t>> from) const {
  const bool of_completing = !ranges_.empty() && of_one_client_ && clients_[0] == completing;
  if (!of_completing || is_shared_) return write(memory, from);
  return memory.write_received(completing, qp, is_first, ranges_, from);
}

}  // namespace rocemu::engine
