// Copies the consumer's private data into a message's field of fixed size
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::engine::cm {

/// Copies the bytes into the field, and sets the rest of the field to zero. Returns false if there
/// are too many bytes.
template <size_t Size>
bool fill(std::array<uint8_t, Size>& field, std::span<const uint8_t> bytes) {
  if (bytes.size() > Size) return false;
  field.fill(0);
  std::copy(bytes.begin(), bytes.end(), field.begin());
  return true;
}

}  // namespace rocemu::engine::cm
