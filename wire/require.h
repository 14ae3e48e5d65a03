// The assertion that stays on: for conditions only our own mistake can break, never a peer's.
#pragma once

#include <cstdlib>

namespace rocemu::wire {

constexpr void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace rocemu::wire
