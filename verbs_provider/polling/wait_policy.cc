#include "verbs_provider/polling/wait_policy.h"

#include <algorithm>
#include <cstring>

namespace rocemu::provider {

bool parse_poll_mode(const char* text, PollMode* mode) {
  *mode = PollMode::kAdaptive;
  if (text == nullptr || strcmp(text, "adaptive") == 0) return true;
  if (strcmp(text, "yield") == 0) {
    *mode = PollMode::kYield;
  } else if (strcmp(text, "spin") == 0) {
    *mode = PollMode::kSpin;
  } else {
    return false;
  }
  return true;
}

WaitPolicy::Way WaitPolicy::next(PollMode mode, int64_t longest_sleep_ns) {
  if (mode == PollMode::kSpin) return Way::kPollOn;
  if (mode == PollMode::kYield) return Way::kGiveWay;
  if (sleeps_left_ == 0) return budget_.allows_yield() ? Way::kGiveWay : Way::kPollOn;
  if (!budget_.allows_sleep(longest_sleep_ns)) return Way::kPollOn;
  --sleeps_left_;
  return Way::kSleep;
}

void WaitPolicy::gave_way(int64_t took_ns, Then then) {
  budget_.yielded(took_ns);
  if (took_ns < kWaitConstants.shortest_yield_ns) return;
  const int64_t dear_ns = kWaitConstants.dear_switch_ns * (1 + int64_t{pollers_});
  if (took_ns < std::max(kWaitConstants.long_yield_ns, dear_ns)) {
    long_yields_ = 0;
  } else if (++long_yields_ >= kWaitConstants.long_yields) {
    return begin_sleeps();
  }
  if (took_ns < dear_ns) {
    dear_yields_ = sleeps_ = 0;
  } else if (then == Then::kPollsOn && ++dear_yields_ >= kWaitConstants.dear_yields) {
    begin_sleeps();
  }
}

/// Begins a series of sleeps. If the first yield after the series is long or expensive again, a
/// series of twice as many sleeps follows, up to `many_sleeps`.
void WaitPolicy::begin_sleeps() {
  sleeps_ = std::clamp(2 * sleeps_, kWaitConstants.few_sleeps, kWaitConstants.many_sleeps);
  sleeps_left_ = sleeps_;
}

}  // namespace rocemu::provider
