// The processor's instruction for loops that only check a value.
#pragma once

namespace rocemu::determinism {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace rocemu::determinism
