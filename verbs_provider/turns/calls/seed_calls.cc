// In lockstep a random generator that a program seeds with its process number, which the system
// chooses, is seeded with the number that it would have if the run's processes were numbered in
// order. ibv_rc_pingpong and perftest choose their first PSNs in this way: srand48(getpid() *
// time(NULL)).
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<void(long)> next_srand48("srand48");
shim::Next<void(unsigned)> next_srand("srand");
shim::Next<void(unsigned)> next_srandom("srandom");

constexpr int64_t kFirstNumber = 1000;

/// The ways in which programs mix a process number with the time.
constexpr int64_t (*kMixtures[])(int64_t pid, int64_t time) = {
    [](int64_t pid, int64_t) { return pid; },
    [](int64_t pid, int64_t time) { return pid * time; },
    [](int64_t pid, int64_t time) { return time + pid; },
    [](int64_t pid, int64_t time) { return time - pid; },
    [](int64_t pid, int64_t time) { return time ^ pid; },
    [](int64_t pid, int64_t time) { return time ^ (pid << 16); },
};

/// Returns the seed to use. Only the low 32 bits of a seed matter (drand48(3), random(3)).
int64_t seed_for(int64_t seed) {
  if (!active()) return seed;
  const int64_t pid = getpid();
  const int64_t number = kFirstNumber + own_slot()->serial.load();
  const int64_t now = abi::kRealtimeStartNs + now_ns();
  const int64_t seconds = now / kBillion, microseconds = now % kBillion / 1000;
  for (const int64_t time : {seconds, microseconds}) {
    for (const auto mixture : kMixtures) {
      if (static_cast<uint32_t>(mixture(pid, time)) == static_cast<uint32_t>(seed))
        return mixture(number, time);
    }
  }
  return seed;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(void, srand48, (long seed)) {
  next_srand48(seed_for(seed));
}

ROCEMU_REPLACE(void, srand, (unsigned seed)) {
  next_srand(static_cast<unsigned>(seed_for(seed)));
}

ROCEMU_REPLACE(void, srandom, (unsigned seed)) {
  next_srandom(static_cast<unsigned>(seed_for(seed)));
}
