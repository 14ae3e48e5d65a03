// The expected contents of a side's memory: the bytes that the model knows, and ranges with unknown
// contents, because an operation on them failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rocemu::property {

class Image {
 public:
  Image(uint64_t base, size_t size) : base_(base), bytes_(size) {}

  void set(uint64_t address, std::span<const uint8_t> bytes) {
    std::ranges::copy(bytes, bytes_.begin() + static_cast<ptrdiff_t>(address - base_));
  }
  void leave_open(uint64_t address, size_t size) { open_.emplace_back(address, size); }

  /// Returns the first address with a wrong byte. `memory` may be only the beginning of the side's
  /// memory.
  std::optional<uint64_t> first_difference(std::span<const uint8_t> memory) {
    for (const auto& [address, size] : open_) set(address, memory.subspan(address - base_, size));
    const auto end = bytes_.begin() + static_cast<ptrdiff_t>(memory.size());
    const auto at = std::mismatch(bytes_.begin(), end, memory.begin()).first;
    if (at == end) return std::nullopt;
    return base_ + static_cast<uint64_t>(at - bytes_.begin());
  }

 private:
  uint64_t base_;
  std::vector<uint8_t> bytes_;
  std::vector<std::pair<uint64_t, size_t>> open_;
};

}  // namespace rocemu::property
