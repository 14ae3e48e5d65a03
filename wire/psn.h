// Packet sequence numbers: 24 bits, which wrap. The shorter way around the circle decides which of
// two PSNs is older, so they have a distance but no operator<.
#pragma once

#include <cstdint>

namespace rocemu::wire {

inline constexpr uint32_t kPsnMask = 0xffffff;

struct Psn {
 public:
  constexpr Psn() = default;
  constexpr explicit Psn(uint32_t value) : value_(value & kPsnMask) {}

  constexpr uint32_t value() const { return value_; }

  friend constexpr bool operator==(Psn, Psn) = default;
  friend constexpr Psn operator+(Psn psn, uint32_t n) { return Psn(psn.value_ + n); }
  friend constexpr Psn operator-(Psn psn, uint32_t n) { return Psn(psn.value_ - n); }
  constexpr Psn& operator+=(uint32_t n) { return *this = *this + n; }
  constexpr Psn& operator-=(uint32_t n) { return *this = *this - n; }
  constexpr Psn& operator++() { return *this += 1; }

 private:
  uint32_t value_ = 0;
};

// Returns how far `to` is ahead of `from`: positive if it is later, negative if it is earlier, in
// [-2^23, 2^23). from + distance == to always holds.
constexpr int32_t psn_distance(Psn from, Psn to) {
  const uint32_t difference = (to.value() - from.value()) & kPsnMask;
  return difference < 0x800000 ? static_cast<int32_t>(difference)
                               : static_cast<int32_t>(difference) - 0x1000000;
}

// Returns whether `a` is older than `b`. IBTA vol 1, 9.7.2: the 2^23 values before the expected PSN
// are duplicates, so a PSN exactly half the circle away counts as older (from either side).
constexpr bool psn_before(Psn a, Psn b) {
  return psn_distance(b, a) < 0;
}

}  // namespace rocemu::wire
