// With AddressSanitizer: the memory of posted receives, which the program may not touch until it
// has polled the completion. It is poisoned as by __asan_poison_memory_region(), so that an access
// is an ordinary report of AddressSanitizer. The shadow is written directly, since the runtime's
// own function for the way back forgets what was poisoned before: heap redzones, and what the
// program poisoned.
//
// AddressSanitizer has one byte of shadow for a granule of 8 bytes: 0, all of them may be touched;
// 1 to 7, so many of them; more, none. Bytes that share a granule with bytes of others stay as they
// are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/sanitizer/requests.h"

namespace rocemu::sanitizer {

class PoisonedMemory {
 public:
  /// `shadow` is where the shadow of address 0 would be.
  explicit PoisonedMemory(uint64_t shadow) : shadow_(shadow) {}

  /// The memory is a posted request's, once more if it is another's already.
  void hold(const MemoryRange& range);
  void release(const MemoryRange& range);
  void release_all();

  /// The memory was unmapped: nothing there is poisoned, also if the program maps other memory in
  /// its place. Needs no lock and no memory.
  static void forget(uint64_t shadow, uint64_t begin, uint64_t end);

 private:
  using Granule = uint64_t;  // its address / 8
  /// Granules that have the same holders, up to `end`.
  struct Segment {
    Granule end;
    uint64_t holders;
    std::vector<std::pair<Granule, uint8_t>> before;  // those whose shadow was not 0
  };

  uint8_t& shadow_of(Granule granule) const;
  uint8_t value_before(Granule granule) const;
  std::pair<Granule, Granule> granules_of(const MemoryRange& range) const;
  void split(Granule at);
  Segment poisoned(Granule begin, Granule end) const;
  void restore(Granule begin, const Segment& segment) const;

  uint64_t shadow_;
  std::map<Granule, Segment> segments_;  // by their first granule
};

/// Where the shadow of address 0 would be; nothing unless the program has AddressSanitizer, and
/// lets memory be poisoned.
std::optional<uint64_t> address_sanitizer_shadow();

}  // namespace rocemu::sanitizer
