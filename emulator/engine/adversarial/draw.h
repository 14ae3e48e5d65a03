// The random choices of the adversary. Each class has its own generator, so that its choices do not
// depend on other enabled classes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::adversarial {

/// The longest delay of a byte or a completion. Connections survive a delay of 1 ms: an ACK timeout
/// below 1 ms (`timeout` below 8) is rare, and no request waits that long for its response.
inline constexpr Duration kLongest = std::chrono::milliseconds(1);
/// The longest delay of data for which the peer waits, such as the data of a READ
inline constexpr Duration kLongestResponse = std::chrono::microseconds(50);

class Draw {
 public:
  Draw(uint64_t seed, Class of)
      : random_(Random(seed ^ (uint64_t{0xad} << 56 | (uint64_t{static_cast<uint8_t>(of)} << 48)))
                    .next()) {}

  uint64_t bits() { return random_.next(); }
  /// Returns a random number from 0 to `end` - 1.
  uint32_t below(uint32_t end) { return static_cast<uint32_t>((random_.next() >> 32) % end); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  /// Returns a random delay from 1 us to kLongest. Each order of magnitude has the same
  /// probability, since programs wait at different paces.
  Duration delay() {
    constexpr std::array<int64_t, 4> kUs = {1, 10, 100, 1000};
    return std::chrono::microseconds(kUs[below(kUs.size())]);
  }
  /// Returns a random delay from 1 us to kLongestResponse, with the same probability for each order
  /// of magnitude.
  Duration response_delay() {
    constexpr std::array<int64_t, 3> kUs = {1, 10, 50};
    return std::chrono::microseconds(kUs[below(kUs.size())]);
  }

 private:
  Random random_;
};

}  // namespace rocemu::engine::adversarial
