// What the man pages leave undefined after a verb: errno, and attributes that were not asked for.
// `rocemu run --sanitize` and `--adversarial=undefined` fill it.
#pragma once

#include <atomic>

namespace rocemu::provider {

/// errno where it has no meaning: a program that looks there relies on more than the man pages say.
inline constexpr int kUnusableErrno = 0x5a5a;
/// What bytes without a meaning are filled with.
inline constexpr int kUnusableByte = 0x5a;

/// Whether a NIC that this process has opened was started with `--adversarial=undefined`.
inline std::atomic<bool> is_undefined_filled{false};

inline bool fills_undefined() {
  return is_undefined_filled.load(std::memory_order_relaxed);
}

}  // namespace rocemu::provider
