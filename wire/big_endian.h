// Integers in network byte order as byte arrays: the field types of every layout struct. Their
// alignment is 1, so a struct of them has no padding and can be at any address of a frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rocemu::wire {

template <class Native, size_t Bytes>
class BigEndian {
  static_assert(std::is_unsigned_v<Native> && Bytes <= sizeof(Native));

 public:
  constexpr BigEndian() = default;
  constexpr explicit BigEndian(Native value) { set(value); }

  constexpr Native get() const {
    if constexpr (Bytes == sizeof(Native)) {
      if (!std::is_constant_evaluated()) {
        Native value;
        std::memcpy(&value, bytes_, Bytes);
        return swap_on_little_endian(value);
      }
    }
    Native value = 0;
    for (size_t i = 0; i < Bytes; ++i) value = static_cast<Native>((value << 8) | bytes_[i]);
    return value;
  }

  // Stores the value. Bits above the field are dropped: 24-bit fields are kept in 32-bit integers.
  constexpr void set(Native value) {
    if constexpr (Bytes == sizeof(Native)) {
      if (!std::is_constant_evaluated()) {
        value = swap_on_little_endian(value);
        std::memcpy(bytes_, &value, Bytes);
        return;
      }
    }
    for (size_t i = Bytes; i > 0; --i) {
      bytes_[i - 1] = static_cast<uint8_t>(value);
      value = static_cast<Native>(value >> 8);
    }
  }

 private:
  static Native swap_on_little_endian(Native value) {
    if constexpr (std::endian::native == std::endian::big) return value;
    if constexpr (sizeof(Native) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(Native) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(Native) == 8) return __builtin_bswap64(value);
  }

  uint8_t bytes_[Bytes] = {};
};

using Be16 = BigEndian<uint16_t, 2>;
using Be24 = BigEndian<uint32_t, 3>;
using Be32 = BigEndian<uint32_t, 4>;
using Be64 = BigEndian<uint64_t, 8>;

static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be24) == 3 && alignof(Be24) == 1);
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1);

}  // namespace rocemu::wire
