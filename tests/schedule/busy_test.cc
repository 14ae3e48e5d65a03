// Scripts of threads that are always busy and never wait. For example, a thread's event channel is
// readable, but another thread holds the lock, and the first thread checks again and again. Each
// check finds something, so the thread does not count as polling. On hardware, time passes
// meanwhile.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/schedule/script.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBusyPlace = 2;
/// The number of turns that a thread may have at one instant: kBusyTurns in
/// emulator/schedule/scheduler.cc.
constexpr int kTurns = 1000;

TEST(BusyThread, DoesNotKeepTheNicFromWhatIsDue) {
  Script s;
  s.starts(1).nic_is_due(2us);
  s.gives(1).polls(2);
  s.starts(kBusyPlace);
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) {
      if (script.now() >= Instant(2us)) return false;
      script.polls(1);
      return true;
    }
    script.ends_turn({.progressed = true}).starts(kBusyPlace);
    return ++turns < 100 * kTurns;
  });
  EXPECT_GE(s.now(), Instant(2us));
  EXPECT_LE(turns, 2 * kTurns);
}

TEST(BusyThread, DoesNotKeepAnotherFromTheEndOfItsSleep) {
  Script s;
  s.starts(1);
  s.gives(1).sleeps_until(5ms);
  s.starts(kBusyPlace);
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) {
      if (script.now() >= Instant(5ms)) return false;
      script.ends_turn({});
      return true;
    }
    script.ends_turn({.progressed = true}).starts(kBusyPlace);
    return ++turns < 100'000;
  });
  EXPECT_EQ(s.now(), Instant(5ms));  // time does not advance beyond what is due
  EXPECT_LE(turns, 6 * kTurns);      // a millisecond passes for each thousand turns
}

TEST(BusyThread, HasItsTurnsAtOneInstantWhileOnlyARuleIsDue) {
  Script s;
  s.starts(1).starts(kBusyPlace);
  s.nic_is_due(2us).with([](Facts& facts) { facts.is_only_rule_due = true; });
  s.gives(1).waits();
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    EXPECT_EQ(script.now(), Instant());
    if (thread == 1) {
      script.ends_turn({});
      return true;
    }
    script.ends_turn({.progressed = true}).starts(kBusyPlace);
    return ++turns < 5 * kTurns;
  });
  EXPECT_EQ(turns, 5 * kTurns);
}

TEST(BusyThread, HasItsTurnsAtOneInstantWhileNothingIsDue) {
  Script s;
  s.starts(1).starts(kBusyPlace);
  s.gives(1).waits();
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) {
      script.ends_turn({});
      return true;
    }
    script.ends_turn({.progressed = true}).starts(kBusyPlace);
    return ++turns < 5 * kTurns;
  });
  EXPECT_EQ(turns, 5 * kTurns);
  EXPECT_EQ(s.now(), Instant{});
}

TEST(BusyThread, HasAThousandTurnsBeforeTimeMoves) {
  Script s;
  s.starts(1);
  s.gives(1).sleeps_until(1us);
  s.starts(kBusyPlace);
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) {
      if (script.now() != Instant{}) return false;
      script.ends_turn({});
      return true;
    }
    EXPECT_EQ(script.now(), Instant{});
    script.ends_turn({.progressed = true}).starts(kBusyPlace);
    return ++turns < 2 * kTurns;
  });
  EXPECT_GE(turns, kTurns - 1);  // the sleeper has one of the turns
  EXPECT_LT(turns, 2 * kTurns);
}

TEST(BusyThread, HasItsTurnsWhileTimeStandsStill) {
  Script s;
  s.starts(1).nic_is_due(1us);
  s.gives(1).waits();
  s.with([](Facts& facts) { facts.is_held = true; }).starts(kBusyPlace);
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == kBusyPlace) {
      script.ends_turn({.progressed = true}).starts(kBusyPlace);
      ++turns;
    } else {
      script.ends_turn({});
    }
    return turns < 3 * kTurns;
  });
  EXPECT_EQ(turns, 3 * kTurns);
  EXPECT_EQ(s.now(), Instant{});
}

}  // namespace
}  // namespace rocemu::test
