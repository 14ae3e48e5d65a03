#include "emulator/daemon/memory/lent_memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "emulator/abi/control.h"

namespace rocemu::daemon {
namespace {

using engine::RemoteRange;

/// The last word is there only after all the rest, which memcpy() writes in any order.
void write_in_order(std::byte* to, const uint8_t* from, size_t size) {
  constexpr size_t kWord = 8;
  if (size >= kWord) {
    std::memcpy(to, from, size - kWord);
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(to + size - kWord, from + size - kWord, kWord);
    return;
  }
  for (size_t i = 0; i < size; ++i) {
    reinterpret_cast<volatile std::byte*>(to)[i] = static_cast<std::byte>(from[i]);
  }
}

}  // namespace

int LentMemory::add(const RemoteRange& what, const UniqueFd& file) {
  if (what.length == 0 || what.address + what.length < what.address) return EINVAL;
  if (pieces_.size() == abi::kMaxLentPieces || what.length > abi::kMaxLentBytes - bytes_) {
    return ENOSPC;
  }
  const auto behind = std::ranges::upper_bound(pieces_, what.address, {}, &Piece::address);
  if (behind != pieces_.end() && behind->address - what.address < what.length) return EINVAL;
  if (behind != pieces_.begin()) {
    const Piece& before = *std::prev(behind);
    if (what.address - before.address < before.memory.size()) return EINVAL;
  }
  std::optional<SharedMemory> memory = map_sealed(file, what.length);
  if (!memory) return EINVAL;
  pieces_.insert(behind, {what.address, std::move(*memory)});
  bytes_ += what.length;
  return 0;
}

int LentMemory::remove(uint64_t address) {
  const auto found = std::ranges::find(pieces_, address, &Piece::address);
  if (found == pieces_.end()) return EINVAL;
  bytes_ -= found->memory.size();
  pieces_.erase(found);
  return 0;
}

std::byte* LentMemory::find(const RemoteRange& range) const {
  const auto behind = std::ranges::upper_bound(pieces_, range.address, {}, &Piece::address);
  if (behind == pieces_.begin()) return nullptr;
  const Piece& piece = *std::prev(behind);
  const uint64_t offset = range.address - piece.address;
  const uint64_t size = piece.memory.size();
  if (offset > size || range.length > size - offset) return nullptr;
  return piece.memory.data() + offset;
}

template <class Bytes, class Copy>
bool LentMemory::copy_all(std::span<const RemoteRange> theirs,
                          std::span<const std::span<Bytes>> ours, Copy copy_piece) const {
  if (pieces_.empty()) return false;
  for (const RemoteRange& range : theirs) {
    if (range.length != 0 && find(range) == nullptr) return false;
  }
  size_t buffer = 0, used = 0;
  for (const RemoteRange& range : theirs) {
    std::byte* place = find(range);
    for (uint64_t rest = range.length; rest != 0;) {
      while (used == ours[buffer].size()) {
        ++buffer;
        used = 0;
      }
      const uint64_t size = std::min<uint64_t>(rest, ours[buffer].size() - used);
      copy_piece(place, ours[buffer].data() + used, size);
      place += size;
      used += size;
      rest -= size;
    }
  }
  return true;
}

bool LentMemory::copy(std::span<const RemoteRange> from,
                      std::span<const std::span<uint8_t>> to) const {
  return copy_all(from, to, [](const std::byte* theirs, uint8_t* ours, size_t size) {
    std::memcpy(ours, theirs, size);
  });
}

bool LentMemory::copy(std::span<const RemoteRange> to,
                      std::span<const std::span<const uint8_t>> from) const {
  return copy_all(to, from, write_in_order);
}

}  // namespace rocemu::daemon
