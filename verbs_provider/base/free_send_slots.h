// The free slots among a context's abi::SendSlots. Slots of unfinished WQEs are not free.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "emulator/abi/rings.h"

namespace rocemu::provider {

class FreeSendSlots {
 public:
  /// Takes the lowest free slot, which is likely to be in a cache, and returns 1 + its number.
  /// Returns 0 if no slot is free.
  uint32_t take() {
    for (uint32_t word = 0; word < kWords; ++word) {
      uint64_t free = free_[word].load(std::memory_order_relaxed);
      while (free != 0) {
        if (free_[word].compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire)) {
          return 1 + word * kBits + static_cast<uint32_t>(std::countr_zero(free));
        }
      }
    }
    return 0;
  }
  void give_back(uint32_t slot) {
    const uint32_t number = (slot - 1) % abi::SendSlots::kCount;
    free_[number / kBits].fetch_or(uint64_t{1} << number % kBits, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kBits = 64, kWords = abi::SendSlots::kCount / kBits;
  static_assert(abi::SendSlots::kCount == 4 * kBits);  // all are free at first

  std::atomic<uint64_t> free_[kWords] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
};

}  // namespace rocemu::provider
