// Random numbers from one seed. The generator and the conversion to ranges are our own, since those
// of <random> differ between standard libraries, and a replay must not differ.
#pragma once

#include <cstdint>

namespace rocemu::engine {

/// SplitMix64 (Steele, Lea, Flood 2014): it has one 64-bit state, and every seed is good.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace rocemu::engine
