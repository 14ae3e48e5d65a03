// What the daemon's threads have to do with each other: frames, being woken, standing still.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "emulator/daemon/base/waker.h"
#include "emulator/daemon/net/frame_inbox.h"
#include "emulator/daemon/net/shard_link.h"
#include "emulator/daemon/run/parking.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using engine::DeviceIndex;

constexpr engine::Instant kNow{};

engine::ForwardFrame frame_of(engine::FramePool& pool, uint32_t number, DeviceIndex to = {1}) {
  engine::Frame frame = pool.allocate();
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kRcSendOnly;
  packet.bth.psn = wire::Psn(number);
  frame.set_packet(packet, 5);
  std::ranges::fill(frame.storage().subspan(wire::payload_offset(packet), 5),
                    static_cast<uint8_t>(number));
  return {.to = to, .to_connections = false, .check_icrc = false, .frame = std::move(frame)};
}

class InboxTest : public testing::Test {
 protected:
  engine::FramePool pool;
  EventLoop loop;
  Waker waker{loop};
  FrameInbox inbox{waker};
};

TEST_F(InboxTest, GivesWhatAFrameSaysAndCarries) {
  ASSERT_TRUE(inbox.put(frame_of(pool, 7)));
  const auto frames = inbox.take();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].to, DeviceIndex{1});
  ASSERT_NE(frames[0].packet, nullptr);
  EXPECT_EQ(frames[0].packet->bth.psn, wire::Psn(7));
  EXPECT_TRUE(std::ranges::equal(frames[0].packet->payload, std::vector<uint8_t>(5, 7)));
  inbox.done();
  EXPECT_TRUE(inbox.take().empty());
}

TEST_F(InboxTest, GivesTheBytesOfAFrameThatWasChanged) {
  engine::ForwardFrame forward{
      .to = {0}, .to_connections = false, .check_icrc = true, .frame = pool.allocate()};
  forward.frame.set_size(100);
  std::iota(forward.frame.bytes().begin(), forward.frame.bytes().end(), uint8_t{0});
  ASSERT_TRUE(inbox.put(forward));
  const auto frames = inbox.take();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_TRUE(frames[0].check_icrc);
  EXPECT_EQ(frames[0].packet, nullptr);
  EXPECT_TRUE(std::ranges::equal(frames[0].bytes, forward.frame.bytes()));
}

TEST_F(InboxTest, HasRoomAgainForWhatWasTaken) {
  uint32_t count = 0;
  while (inbox.put(frame_of(pool, count))) ++count;
  ASSERT_GT(count, 0u);
  const size_t taken = inbox.take().size();
  EXPECT_FALSE(inbox.put(frame_of(pool, count))) << "it is still being looked at";
  inbox.done();
  for (size_t i = 0; i < taken; ++i) EXPECT_TRUE(inbox.put(frame_of(pool, count)));
  EXPECT_FALSE(inbox.put(frame_of(pool, count)));
}

TEST_F(InboxTest, WakesOnlyWhoSleeps) {
  ASSERT_TRUE(inbox.put(frame_of(pool, 1)));
  inbox.notify();
  EXPECT_EQ(loop.wait(0ns), 0);
  EXPECT_FALSE(inbox.fall_asleep()) << "something has come";
  inbox.take();
  inbox.done();
  ASSERT_TRUE(inbox.fall_asleep());
  inbox.notify();
  EXPECT_EQ(loop.wait(0ns), 1);
  inbox.notify();
  EXPECT_EQ(loop.wait(0ns), 0) << "once is enough";
}

TEST_F(InboxTest, KeepsEachThreadsOrder) {
  constexpr uint32_t kThreads = 3, kFrames = 20'000;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      engine::FramePool own;
      for (uint32_t i = 0; i < kFrames;) {
        if (inbox.put(frame_of(own, i, {thread}))) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::vector<uint32_t> next(kThreads);
  bool in_order = true;
  for (uint32_t all = 0; all < kThreads * kFrames;) {
    const auto frames = inbox.take();
    for (const engine::ForwardedFrame& frame : frames) {
      in_order &= frame.packet->bth.psn.value() == next[frame.to.value]++;
      in_order &= frame.packet->payload[4] == static_cast<uint8_t>(frame.packet->bth.psn.value());
    }
    all += static_cast<uint32_t>(frames.size());
    inbox.done();
    if (frames.empty()) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(in_order);
}

// ---- ShardLink -------------------------------------------------------------------------------

/// Counts frames.
class CountingEngine : public EnginePort {
 public:
  void submit(const engine::Input& input) override {
    frames += std::get<engine::ForwardedFrames>(input).frames.size();
  }
  abi::Reply command(engine::ClientId, const abi::Request&) override { return {}; }
  engine::CmReply cm_command(const engine::CmCommand&) override { return {}; }
  size_t frames = 0;
};

class CrossingTest : public testing::Test {
 protected:
  CrossingTest() {
    const Inboxes inboxes{.connections = &connections.inbox(),
                          .devices = {&devices[0].inbox(), &devices[1].inbox()}};
    for (ShardLink& device : devices) device.connect(inboxes);
    connections.connect(inboxes);
  }
  size_t frames_at(ShardLink& crossing) {
    const size_t before = engine.frames;
    while (crossing.receive(kNow)) {
    }
    return engine.frames - before;
  }

  engine::FramePool pool;
  EventLoop loop;
  Waker waker{loop};
  CountingEngine engine;
  int arrivals = 0;
  ShardLink connections{waker, engine, [this] { ++arrivals; }};
  ShardLink devices[2]{{waker, engine, [this] { ++arrivals; }},
                       {waker, engine, [this] { ++arrivals; }}};
};

TEST_F(CrossingTest, FramesGoToTheDeviceOrItsConnections) {
  devices[0].forward(frame_of(pool, 1));
  engine::ForwardFrame mad = frame_of(pool, 2);
  mad.to_connections = true;
  devices[0].forward(mad);
  EXPECT_EQ(frames_at(devices[1]), 1u);
  EXPECT_EQ(arrivals, 1);
  EXPECT_EQ(frames_at(connections), 1u);
  EXPECT_EQ(frames_at(devices[0]), 0u);
  EXPECT_EQ(arrivals, 2);
}

TEST_F(CrossingTest, WhatTheOtherHasNoRoomForWaits) {
  uint32_t sent = 0;
  while (!devices[0].is_congested()) devices[0].forward(frame_of(pool, sent++));
  for (int i = 0; i < 10; ++i) devices[0].forward(frame_of(pool, sent++));
  EXPECT_TRUE(devices[0].flush(kNow));
  EXPECT_TRUE(devices[0].is_congested());
  size_t arrived = 0;
  while (devices[0].is_congested()) {
    arrived += frames_at(devices[1]);
    devices[0].flush(kNow);
  }
  arrived += frames_at(devices[1]);
  EXPECT_EQ(arrived, sent);
  EXPECT_FALSE(devices[0].flush(kNow)) << "nothing is left";
}

TEST_F(CrossingTest, ASleeperIsWokenWhenFramesAreFlushed) {
  ASSERT_TRUE(devices[1].fall_asleep());
  devices[0].forward(frame_of(pool, 1));
  devices[0].flush(kNow);
  EXPECT_EQ(loop.wait(0ns), 1);
}

TEST_F(CrossingTest, IsSettledWhenAllThatWasSentIsAnswered) {
  EXPECT_TRUE(devices[0].has_settled(kNow, kNow)) << "nothing was sent";
  for (uint32_t number = 0; number < 100; ++number) devices[0].forward(frame_of(pool, number));
  EXPECT_FALSE(devices[0].has_settled(kNow, kNow));
  devices[0].forward(frame_of(pool, 100));  // after it was asked: is not waited for
  for (int i = 0; i < 3; ++i) devices[1].forward(frame_of(pool, 0, {0}));
  EXPECT_FALSE(devices[0].has_settled(kNow, kNow));
  EXPECT_EQ(frames_at(devices[1]), 101u);
  devices[0].forward(frame_of(pool, 101));
  EXPECT_TRUE(devices[0].has_settled(kNow, kNow));
  EXPECT_EQ(engine.frames, 104u) << "with what was answered";
  EXPECT_FALSE(devices[0].has_settled(kNow, kNow)) << "of the latest frame";
  EXPECT_EQ(frames_at(devices[1]), 1u);
  devices[0].forward(frame_of(pool, 102));
  EXPECT_FALSE(devices[0].has_settled(kNow, kNow + 1ms)) << "another timer, of another frame";
}

// ---- Parking --------------------------------------------------------------------------------

TEST(Parking, TheThreadStandsStillUntilItIsReleased) {
  Parking parking;
  std::atomic<bool> stop{false};
  uint64_t rounds = 0;  // only one of the two touches it at a time
  std::thread thread([&] {
    while (!stop.load()) {
      if (parking.is_asked()) parking.park();
      ++rounds;
    }
  });
  for (int i = 0; i < 1000; ++i) {
    parking.ask();
    parking.wait_until_parked();
    const uint64_t seen = rounds;
    rounds += 1000;
    EXPECT_EQ(rounds, seen + 1000);
    if (i == 999) stop = true;
    parking.release();
  }
  thread.join();
  EXPECT_GE(rounds, 1'000'000u);
}

}  // namespace
}  // namespace rocemu::daemon
