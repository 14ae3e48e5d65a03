// Poisons, for AddressSanitizer, the memory of posted receives, which the program may not access
// until it has polled the completion. It is poisoned as by __asan_poison_memory_region(), so that
// an access causes an ordinary report of AddressSanitizer. The shadow is written directly, because
// the runtime's own function for unpoisoning does not restore earlier poisoning, such as heap
// redzones and memory that the program poisoned.
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
  /// Takes the address where the shadow of address 0 would be.
  explicit PoisonedMemory(uint64_t shadow) : shadow_(shadow) {}

  /// Adds a posted request as a holder of the memory, which can have several.
  void hold(const MemoryRange& range);
  void release(const MemoryRange& range);
  void release_all();

  /// Removes the poison of [begin, end). Called when the memory was unmapped: afterwards nothing
  /// there is poisoned, even if the program maps other memory in its place. Takes no lock and
  /// allocates no memory.
  static void forget(uint64_t shadow, uint64_t begin, uint64_t end);

 private:
  using Granule = uint64_t;  // its address / 8
  /// Granules up to `end` that have the same holders
  struct Segment {
    Granule end;
    uint64_t holders;
    std::vector<std::pair<Granule, uint8_t>> before;  // granules whose shadow was not 0
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

/// Returns the address where the shadow of address 0 would be, if the program has AddressSanitizer
/// and permits poisoning.
std::optional<uint64_t> address_sanitizer_shadow();

}  // namespace rocemu::sanitizer
