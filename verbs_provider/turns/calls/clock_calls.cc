// Replacements of the functions that read a clock. During the run they return virtual time.
#include <cerrno>
#include <ctime>

#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(clockid_t, timespec*)> next_clock_gettime("clock_gettime");
shim::Next<int(timeval*, void*)> next_gettimeofday("gettimeofday");
shim::Next<time_t(time_t*)> next_time("time");
shim::Next<int(timespec*, int)> next_timespec_get("timespec_get");
shim::Next<clock_t(tms*)> next_times("times");
shim::Next<int(struct sysinfo*)> next_sysinfo("sysinfo");

/// Stores the value of the clock at the start of the run. Returns false for clocks that count
/// processor time.
bool start_of(clockid_t clock, int64_t* start) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
      *start = abi::kRealtimeStartNs;
      return true;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
      *start = abi::kMonotonicStartNs;
      return true;
    default:
      return false;
  }
}

bool has_virtual_time() {
  join_early();
  if (!joined()) return false;
  read_clock();
  return joined();
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, clock_gettime, (clockid_t clock, timespec* time)) {
  int64_t start = 0;
  if (!start_of(clock, &start) || !has_virtual_time()) return next_clock_gettime(clock, time);
  const int64_t ns = start + now_ns();
  *time = {static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
  return 0;
}

ROCEMU_REPLACE(int, gettimeofday, (timeval * time, void* zone)) {
  if (!has_virtual_time()) return next_gettimeofday(time, zone);
  if (zone != nullptr) next_gettimeofday(time, zone);
  const int64_t us = (rocemu::abi::kRealtimeStartNs + now_ns()) / 1000;
  if (time != nullptr) *time = {us / 1'000'000, us % 1'000'000};
  return 0;
}

ROCEMU_REPLACE(time_t, time, (time_t * result)) {
  if (!has_virtual_time()) return next_time(result);
  const auto seconds = static_cast<time_t>((rocemu::abi::kRealtimeStartNs + now_ns()) / kBillion);
  if (result != nullptr) *result = seconds;
  return seconds;
}

ROCEMU_REPLACE(int, timespec_get, (timespec * time, int base)) {
  if (base != TIME_UTC || !has_virtual_time()) return next_timespec_get(time, base);
  const int64_t ns = rocemu::abi::kRealtimeStartNs + now_ns();
  *time = {static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
  return base;
}

/// Returns virtual time, since times(2) returns "the number of clock ticks that have elapsed since
/// an arbitrary point in the past". The processor times are the kernel's.
ROCEMU_REPLACE(clock_t, times, (tms * processor_times)) {
  const clock_t ticks = next_times(processor_times);
  if (!has_virtual_time()) return ticks;
  static const int64_t ns_of_tick = kBillion / sysconf(_SC_CLK_TCK);
  return (rocemu::abi::kMonotonicStartNs + now_ns()) / ns_of_tick;
}

ROCEMU_REPLACE(int, sysinfo, (struct sysinfo * info)) {
  const int result = next_sysinfo(info);
  if (result == 0 && has_virtual_time())
    info->uptime = (rocemu::abi::kMonotonicStartNs + now_ns()) / kBillion;
  return result;
}
