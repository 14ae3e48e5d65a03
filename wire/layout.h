// Moves layout structs (structs of big_endian.h fields) in and out of frames. The span's extent is
// the layout's size, so neither direction can fail: the caller checked the length at the door.
//
// The headers that every frame has are made where they belong (::new (bytes.data()) Layout{...}):
// a processor waits for what was written in small pieces before it reads them in larger ones, as a
// copy does.
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
