// Pseudorandom numbers that are computed from other numbers
#pragma once

#include <cstdint>

namespace rocemu::schedule {

/// Returns a pseudorandom number for `value`: mix64variant13 of Steele, Lea, Flood, "Fast
/// splittable pseudorandom number generators", 2014.
constexpr uint64_t mixed(uint64_t value) {
  value += 0x9e37'79b9'7f4a'7c15;
  value = (value ^ (value >> 30)) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ (value >> 27)) * 0x94d0'49bb'1331'11eb;
  return value ^ (value >> 31);
}

}  // namespace rocemu::schedule
