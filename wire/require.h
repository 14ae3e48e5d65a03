// An assertion that is always enabled. It is for conditions that only a mistake of rocemu can
// violate, and never a peer.
#pragma once

#include <cstdlib>

namespace rocemu::wire {

constexpr void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace rocemu::wire
