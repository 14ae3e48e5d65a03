// Tests the decisions of `rocemu run` about signals, with scripts of times and signals.
#include "emulator/command/run/ending.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace rocemu::command {
namespace {

using namespace std::chrono_literals;
using Action = Ending::Action;

constexpr Ending::Time kStart{};
constexpr bool kCaught = true, kNotCaught = false;

TEST(Ending, PassesTermOnAndKillsAfterTheGrace) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Ending ending;
    EXPECT_EQ(ending.kill_at(), std::nullopt);
    // The program catches SIGTERM, cleans up, and ends a little later.
    EXPECT_EQ(ending.on_signal(signal, kCaught, kStart), Action::kPassOn);
    EXPECT_EQ(ending.signal(), signal);
    EXPECT_EQ(ending.kill_at(), kStart + kEndingGrace);
  }
}

TEST(Ending, GivesNoNewGraceForASecondTerm) {
  Ending ending;
  ending.on_signal(SIGTERM, kNotCaught, kStart);
  EXPECT_EQ(ending.on_signal(SIGTERM, kNotCaught, kStart + 1s), Action::kNone);
  EXPECT_EQ(ending.on_signal(SIGHUP, kNotCaught, kStart + 1s), Action::kNone);
  EXPECT_EQ(ending.signal(), SIGTERM);
  EXPECT_EQ(ending.kill_at(), kStart + kEndingGrace);
}

TEST(Ending, LeavesAnInterruptToACommandThatCatchesIt) {
  for (const int signal : {SIGINT, SIGQUIT}) {
    Ending ending;
    EXPECT_EQ(ending.on_signal(signal, kCaught, kStart), Action::kPassOn);
    EXPECT_EQ(ending.signal(), std::nullopt);
    EXPECT_EQ(ending.kill_at(), std::nullopt);
    // In a debugger session, there are many interrupts, with much time between them.
    EXPECT_EQ(ending.on_signal(signal, kCaught, kStart + 1min), Action::kPassOn);
    EXPECT_EQ(ending.kill_at(), std::nullopt);
  }
}

TEST(Ending, KillsAfterTheGraceIfTheCommandDoesNotCatchTheInterrupt) {
  Ending ending;
  EXPECT_EQ(ending.on_signal(SIGINT, kNotCaught, kStart), Action::kPassOn);
  EXPECT_EQ(ending.signal(), SIGINT);
  EXPECT_EQ(ending.kill_at(), kStart + kEndingGrace);
}

TEST(Ending, KillsAtOnceAtTheSecondInterrupt) {
  for (const bool is_caught : {kCaught, kNotCaught}) {
    Ending ending;
    ending.on_signal(SIGINT, is_caught, kStart);
    EXPECT_EQ(ending.on_signal(SIGINT, is_caught, kStart + 1s), Action::kKill);
    EXPECT_EQ(ending.signal(), SIGINT);
  }
  Ending ending;
  ending.on_signal(SIGTERM, kCaught, kStart);
  EXPECT_EQ(ending.on_signal(SIGINT, kCaught, kStart + 500ms), Action::kKill);
  EXPECT_EQ(ending.signal(), SIGTERM);
}

TEST(Ending, CountsTheTwoSignalsOfTimeout1AsOne) {
  // timeout(1) signals its child, and then its own process group, which contains the child: one
  // timeout causes two signals.
  Ending ending;
  ending.on_signal(SIGINT, kNotCaught, kStart);
  EXPECT_EQ(ending.on_signal(SIGINT, kNotCaught, kStart + 1ms), Action::kNone);
  EXPECT_EQ(ending.on_signal(SIGINT, kNotCaught, kStart + 1s), Action::kKill);
}

TEST(Ending, PassesTermOnAfterAnInterruptLeftToTheCommand) {
  Ending ending;
  ending.on_signal(SIGINT, kCaught, kStart);
  EXPECT_EQ(ending.on_signal(SIGTERM, kCaught, kStart + 1s), Action::kPassOn);
  EXPECT_EQ(ending.kill_at(), kStart + 1s + kEndingGrace);
}

}  // namespace
}  // namespace rocemu::command
