#include "emulator/daemon/client/idle_policy.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// With nothing to do for so long the daemon sleeps.
constexpr engine::Duration kSpinTime = 50us;
/// In which the peer answers, on another processor, what came from a client on this one.
constexpr engine::Duration kAnswerTime = 3us;
/// Where messages come over a network, the next is here after less than this.
constexpr engine::Duration kPause = 20us;
/// A yield that took less let nobody in.
constexpr engine::Duration kMinTurn = 1us;
/// A yield that took longer gave the processor to a thread with work of its own.
constexpr engine::Duration kLongYield = 300us;
/// For so long after a long yield the daemon sleeps instead of yielding: a thread that is woken
/// runs soon, but one that yields waits for the time slices of all others. Doubled each time that
/// this was too short.
constexpr engine::Duration kMinCrowd = 20ms;
constexpr engine::Duration kMaxCrowd = 1s;

}  // namespace

bool IdlePolicy::is_idle(engine::Instant now) const {
  return now - last_work_ >= kPause;
}

IdlePolicy::Way IdlePolicy::next(engine::Instant now, const Clients& clients) const {
  if (clients.both_sides) {
    // The one beside us waits for the processor, perhaps to look at memory and for as long as its
    // slice lasts: to yield would be to miss what the others do meanwhile.
    return clients.rung_beside && now - last_work_ < kAnswerTime ? Way::kLookAgain : Way::kSleep;
  }
  if (now - last_work_ >= kSpinTime || now < crowded_until_) return Way::kSleep;
  return Way::kGiveWay;
}

void IdlePolicy::gave_way(engine::Instant begin, engine::Instant end) {
  const engine::Duration took = end - begin;
  if (took > kLongYield) {
    crowd_ = std::clamp(2 * crowd_, kMinCrowd, kMaxCrowd);
    crowded_until_ = end + crowd_;
  } else if (took >= kMinTurn || begin - crowded_until_ > crowd_) {
    crowd_ = engine::Duration(0);  // the other thread yielded too, or none ran for long
  }
}

}  // namespace rocemu::daemon
