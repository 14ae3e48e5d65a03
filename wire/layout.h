// Copies layout structs (structs of big_endian.h fields) to and from frames. The span's extent is
// the layout's size, so neither direction can fail: the caller has checked the length before.
//
// The headers that every frame has are constructed in place (::new (bytes.data()) Layout{...}) and
// not copied: a copy reads in large pieces what was written in small ones, and the processor
// stalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace rocemu::wire {

template <class Layout>
Layout load(std::span<const uint8_t, sizeof(Layout)> bytes) {
  static_assert(alignof(Layout) == 1 && std::is_trivially_copyable_v<Layout>);
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof(Layout));
  return layout;
}

template <class Layout>
void store(const Layout& layout, std::span<uint8_t, sizeof(Layout)> bytes) {
  static_assert(alignof(Layout) == 1 && std::is_trivially_copyable_v<Layout>);
  std::memcpy(bytes.data(), &layout, sizeof(Layout));
}

}  // namespace rocemu::wire
