// Tests the cost of empty polls on simulated machines, and how they affect threads that need the
// caller's lock (docs/design/waiting.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/waiting/machine.h"
#include "verbs_provider/polling/wait_policy.h"

namespace rocemu::test {
namespace {

using Kind = Action::Kind;
using provider::kBudgetConstants;
using provider::PollMode;
using provider::WaitPolicy;

constexpr Nanoseconds kEmptyPoll = 50, kSecond = 1'000'000'000;

/// A thread that polls and never finds a completion.
class Poller {
 public:
  explicit Poller(Machine& machine, PollMode mode = PollMode::kAdaptive)
      : machine_(machine), mode_(mode) {}

  Action poll() {
    if (++polls_ % 1'000 == 0) {
      worst_ = std::max(worst_, machine_.now() - std::exchange(thousand_began_, machine_.now()));
    }
    began_ = machine_.now();
    policy_.finds_nothing(1);
    way_ = policy_.next(mode_);
    switch (way_) {
      case WaitPolicy::Way::kPollOn:
        break;
      case WaitPolicy::Way::kGiveWay:
        return {Kind::kYield};
      case WaitPolicy::Way::kSleep:
        return {Kind::kSleep, kBudgetConstants.most_ns};
    }
    return {Kind::kRun, kEmptyPoll};
  }
  /// Records how long the latest poll's yield or sleep took.
  void end_poll() {
    const Nanoseconds took = machine_.now() - began_;
    if (way_ == WaitPolicy::Way::kGiveWay) policy_.gave_way(took);
    if (way_ == WaitPolicy::Way::kSleep) policy_.slept(took);
  }
  int64_t polls() const { return polls_; }
  /// Returns the longest time of a thousand consecutive polls.
  Nanoseconds worst() const { return worst_; }

 private:
  Machine& machine_;
  PollMode mode_;
  WaitPolicy policy_;
  WaitPolicy::Way way_ = WaitPolicy::Way::kPollOn;
  Nanoseconds began_ = 0, thousand_began_ = 0, worst_ = 0;
  int64_t polls_ = 0;
};

struct Cost {
  Nanoseconds of_a_poll;          // the average time
  Nanoseconds worst_of_thousand;  // the longest time of a thousand polls in a row
};

/// Returns the cost of polls while other threads compute, on two processors.
Cost cost(size_t hogs, PollMode mode) {
  Machine machine({.processors = 2});
  Poller poller(machine, mode);
  machine.add(0, [&] {
    if (poller.polls() != 0) poller.end_poll();
    return poller.poll();
  });
  for (size_t i = 0; i < hogs; ++i) {
    machine.add(i % 2, [] { return Action{Kind::kRun, 1'000'000}; });
  }
  machine.run(3 * kSecond);
  return {3 * kSecond / poller.polls(), poller.worst()};
}

TEST(EmptyPolls, OnAnIdleMachineTakeLessThanTwoMicroseconds) {
  EXPECT_LT(cost(0, PollMode::kAdaptive).worst_of_thousand, 1'000 * 2'000);
}

TEST(EmptyPolls, BesideOtherWorkTakeAtMostTenTimesAsLongAsThoseThatSpin) {
  for (const size_t hogs : {2u, 4u, 8u, 16u, 32u}) {
    const Cost adaptive = cost(hogs, PollMode::kAdaptive), spin = cost(hogs, PollMode::kSpin);
    EXPECT_LE(adaptive.of_a_poll, 10 * spin.of_a_poll) << hogs;
    EXPECT_LE(adaptive.worst_of_thousand, 10 * spin.worst_of_thousand) << hogs;
  }
}

// One thread polls under a spin lock, again and again. Another thread on the same processor needs
// the lock. It runs only while the first thread waits or when the time slice of the first thread
// has ended, and gets the lock only if the first thread is then between two polls.
TEST(EmptyPolls, AThreadThatWantsTheCallersLockGetsIt) {
  for (const size_t hogs : {0u, 4u}) {
    Machine machine({.processors = 1});
    Poller poller(machine);
    enum class Owner { kNone, kPoller, kOther } owner = Owner::kNone;
    int had_it = 0;
    machine.add(0, [&] {
      if (owner == Owner::kPoller) {
        poller.end_poll();
        owner = Owner::kNone;
      } else if (owner == Owner::kNone) {
        owner = Owner::kPoller;
        return poller.poll();
      }
      return Action{Kind::kRun, 20};
    });
    machine.add(0, [&] {
      if (owner == Owner::kOther) {
        owner = Owner::kNone;
      } else if (owner == Owner::kNone) {
        owner = Owner::kOther;
        ++had_it;
      }
      return Action{Kind::kRun, 30};
    });
    for (size_t i = 0; i < hogs; ++i) {
      machine.add(0, [] { return Action{Kind::kRun, 1'000'000}; });
    }
    machine.run(3 * kSecond);
    EXPECT_GE(had_it, 3) << hogs << " other threads";
  }
}

}  // namespace
}  // namespace rocemu::test
