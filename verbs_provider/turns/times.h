// Conversion of the times in calls to deadlines in virtual time
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

/// Returns the time in nanoseconds, or a value beyond any deadline if the time does not fit.
inline int64_t ns_of(const timespec& time) {
  if (time.tv_sec >= abi::kNever / kBillion) return abi::kNever;
  return time.tv_sec * kBillion + time.tv_nsec;
}

inline timespec timespec_of(int64_t ns) {
  return {static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
}

/// Returns the deadline for a relative time; a null pointer means none.
inline int64_t deadline_of(const timespec* time) {
  return time == nullptr ? abi::kNever : deadline_after(ns_of(*time));
}

/// Returns the deadline for the timeout of poll(2) and similar calls; a negative timeout means
/// forever.
inline int64_t deadline_of_milliseconds(int timeout) {
  return timeout < 0 ? abi::kNever : deadline_after(int64_t{timeout} * 1'000'000);
}

/// Returns the deadline for an absolute time on that clock.
inline int64_t deadline_at(clockid_t clock, const timespec& time) {
  const bool is_real =
      clock == CLOCK_REALTIME || clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM;
  const int64_t start = is_real ? abi::kRealtimeStartNs : abi::kMonotonicStartNs;
  const int64_t ns = ns_of(time);
  if (ns == abi::kNever) return abi::kNever;
  return ns <= start ? 0 : ns - start;
}

}  // namespace rocemu::turns
