#include "emulator/os/run_lifetime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <optional>
#include <utility>

#include "tests/os/child.h"

namespace rocemu {
namespace {

/// Reads until the run is over. Returns its last state.
RunState last_state(RunFollower& follower) {
  RunState state = RunState::kAlive;
  while (state == RunState::kAlive) state = follower.read();
  return state;
}

TEST(RunLifetime, TellsAnEndFromAKill) {
  RunLifetimeEnds ended = make_run_lifetime();
  ended.run.end();
  EXPECT_EQ(last_state(ended.follower), RunState::kEnded);

  RunLifetimeEnds killed = make_run_lifetime();
  killed.run = RunLifetime();  // closes the pipe without a message, as the kernel does
  EXPECT_EQ(last_state(killed.follower), RunState::kKilled);
}

TEST(RunLifetime, IsOverWhenItsProcessIsKilled) {
  RunLifetimeEnds ends = make_run_lifetime();
  {
    const Child run([] { pause(); });
    ends.run.forget();
    pollfd entry{ends.follower.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 0), 0) << "the child has its copy";
  }
  EXPECT_EQ(last_state(ends.follower), RunState::kKilled);
}

TEST(RunLifetime, LastsAsLongAsNothingIsSaid) {
  RunLifetimeEnds ends = make_run_lifetime();
  ASSERT_EQ(fcntl(ends.follower.fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(ends.follower.read(), RunState::kAlive);
}

TEST(RunLifetime, EndsWithoutASignalWhenItsFollowerIsGone) {
  RunLifetimeEnds ends = make_run_lifetime();
  ends.follower.forget();
  ends.run.end();  // without special care, SIGPIPE would end the test
  EXPECT_FALSE(ends.run);
}

TEST(RunFollower, TakesADescriptorThatCannotBeReadForAKill) {
  RunFollower follower{UniqueFd()};
  EXPECT_EQ(follower.read(), RunState::kKilled);
}

}  // namespace
}  // namespace rocemu
