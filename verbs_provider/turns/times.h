// Times as calls have them, as deadlines in virtual time.
#pragma once

#include <cstdint>
#include <ctime>

#include <sys/time.h>

#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {

inline constexpr int64_t kBillion = 1'000'000'000;

inline bool is_valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < kBillion;
}

/// Beyond any deadline if it does not fit.
inline int64_t ns_of(const timespec& time) {
  if (time.tv_sec >= abi::kNever / kBillion) return abi::kNever;
  return time.tv_sec * kBillion + time.tv_nsec;
}

inline timespec timespec_of(int64_t ns) {
  return {static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
}

/// Of a relative time; null: none.
inline int64_t deadline_of(const timespec* time) {
  return time == nullptr ? abi::kNever : deadline_after(ns_of(*time));
}

/// Of poll(2) and the like: below 0 is for ever.
inline int64_t deadline_of_milliseconds(int timeout) {
  return timeout < 0 ? abi::kNever : deadline_after(int64_t{timeout} * 1'000'000);
}

/// Of an absolute time on that clock.
inline int64_t deadline_at(clockid_t clock, const timespec& time) {
  const bool is_real =
      clock == CLOCK_REALTIME || clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM;
  const int64_t start = is_real ? abi::kRealtimeStartNs : abi::kMonotonicStartNs;
  const int64_t ns = ns_of(time);
  if (ns == abi::kNever) return abi::kNever;
  return ns <= start ? 0 : ns - start;
}

}  // namespace rocemu::turns
