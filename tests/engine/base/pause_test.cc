// Tests a NIC that is paused and continues frame by frame (`rocemu pause`, `rocemu step`).
#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

TEST(Pause, FramesArriveOnlyWhenTheyAreReleased) {
  Pair pair;
  pair.bench.step(engine::Pause{true});
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  EXPECT_FALSE(pair.bench.engine().next_frame().empty());
  EXPECT_TRUE(pair.take_right().empty());
  pair.bench.step(engine::ReleaseFrames{1});  // the SEND
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_TRUE(pair.take_left().empty());
  pair.bench.step(engine::ReleaseFrames{1});  // the ACK
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_TRUE(pair.bench.engine().next_frame().empty());
}

TEST(Pause, NoTimePassesForTimeouts) {
  Pair pair;
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});  // an RNR NAK
  pair.bench.step(engine::Pause{true});
  pair.bench.advance_to(3600s);
  EXPECT_TRUE(pair.bench.engine().next_frame().empty());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  // releases no frame, but runs until the RNR timer has expired
  pair.bench.step(engine::ReleaseFrames{0});
  EXPECT_FALSE(pair.bench.engine().next_frame().empty());
  pair.bench.step(engine::Pause{false});
  pair.bench.advance_to(3601s);
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.take_right().size(), 1u);
}

/// Every frame takes a microsecond here, as on the virtual clock.
TEST(Pause, AFrameThatTakesItsTimeArrivesWhenItIsReleased) {
  PairOptions options;
  options.link_latency = 1us;
  Pair pair(options);
  pair.bench.step(engine::Pause{true});
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.step(engine::ReleaseFrames{0});
  EXPECT_TRUE(pair.take_right().empty());
  pair.bench.step(engine::ReleaseFrames{1});  // the SEND
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_FALSE(pair.bench.engine().next_frame().empty());
  pair.bench.step(engine::ReleaseFrames{1});  // the ACK
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_TRUE(pair.bench.engine().next_frame().empty());
  EXPECT_FALSE(pair.bench.engine().has_next_event());
}

TEST(Pause, ATimeoutBeforeTheNextFrameComesFirst) {
  PairOptions options;
  options.link_latency = 1s;
  options.left.connection.timeout = 1;  // 8.192 us
  Pair pair(options);
  pair.bench.step(engine::Pause{true});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  EXPECT_TRUE(pair.bench.engine().next_frame().empty());
  EXPECT_TRUE(pair.bench.engine().has_next_event());
}

}  // namespace
}  // namespace rocemu::test
