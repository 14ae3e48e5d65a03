// Values that the man pages leave undefined after a verb: errno, and attributes that were not
// requested. `rocemu run --sanitize` and `--adversarial=undefined` fill them.
#pragma once

#include <atomic>

namespace rocemu::provider {

/// The value of errno where it has no meaning: a program that reads it relies on more than the man
/// pages guarantee.
inline constexpr int kUnusableErrno = 0x5a5a;
/// The value that is written to bytes without a meaning.
inline constexpr int kUnusableByte = 0x5a;

/// If true, this process has opened a NIC that was started with `--adversarial=undefined`.
inline std::atomic<bool> is_undefined_filled{false};

inline bool fills_undefined() {
  return is_undefined_filled.load(std::memory_order_relaxed);
}

}  // namespace rocemu::provider
