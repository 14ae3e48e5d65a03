// Tests priority flow control, IEEE 802.1Qbb: nothing is lost with the computed headroom, and a
// frame is lost with one byte less.
#include <gtest/gtest.h>

#include "emulator/engine/base/random.h"
#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kFrame = 4200;
constexpr uint64_t kXoff = 10 * kFrame;

/// Returns a star with a sender at full rate, and a receiver that pauses the switch.
Topology paused_star(uint64_t rate_bps, Duration delay, uint64_t headroom) {
  Patterns patterns;
  patterns.hosts.rate_bps = rate_bps;
  patterns.hosts.delay = delay;
  patterns.switches.pfc = {.xoff_bytes = kXoff, .xon_bytes = kXoff / 2, .headroom_bytes = headroom};
  return star(2, patterns);
}

struct Outcome {
  uint64_t lost = 0;
  uint64_t buffered = 0;
};

/// Lets host 0 send frames of kFrame bytes without end to a host that pauses the switch. Returns
/// what happened.
Outcome fill_paused_port(const Topology& topology, bool is_reverse_busy = false) {
  Network network(topology, 1);
  Log quiet;
  network.set_pause_storm(1, 3, true, at_ns(0));
  run(network, quiet);
  std::vector<Flow> flows = {{.from = 0, .to = 1, .bytes = kFrame}};
  // The frames in the other direction have another priority, so that each PFC frame to host 0 waits
  // for a large frame.
  if (is_reverse_busy) flows.push_back({.from = 1, .to = 0, .bytes = kFrame, .dscp = 48});
  Saturation load(network, flows);
  load.run_until(at_ns(3'000'000));
  return {load.flows[0].lost_frames, network.buffered_bytes(0)};
}

/// Returns the number of frames that arrive after the frame that reaches xoff. The sender begins a
/// frame every `ser`. Those that it began between that frame and the arrival of the pause still
/// arrive. The pause arrives after the PFC frame's serialization and the delay d; the frame that
/// reaches xoff was begun a serialization and a delay before it arrived. So the result is the
/// largest whole number n with n * ser < ser + pfc + 2 d.
uint64_t frames_after_xoff(uint64_t ps_per_byte, uint64_t delay_ps) {
  const uint64_t ser = kFrame * ps_per_byte;
  return (ser + kPfcFrameBytes * ps_per_byte + 2 * delay_ps - 1) / ser;
}

TEST(Pfc, LosesNothingWithTheComputedHeadroomAndAFrameOneByteBelow) {
  struct Case {
    uint64_t rate_bps, ps_per_byte;
    Duration delay;
  };
  for (const Case& one : {Case{100'000'000'000, 80, 500ns}, Case{100'000'000'000, 80, 0ns},
                          Case{400'000'000'000, 20, 1500ns}, Case{25'000'000'000, 320, 100us}}) {
    const auto delay_ps = static_cast<uint64_t>(one.delay.count()) * 1000;
    const uint64_t frames = frames_after_xoff(one.ps_per_byte, delay_ps);
    const uint64_t needed = frames * kFrame;
    Topology topology = paused_star(one.rate_bps, one.delay, needed);
    topology.switches[0].parameters.buffer_bytes = kXoff + 2 * needed;
    Outcome outcome = fill_paused_port(topology);
    EXPECT_EQ(outcome.lost, 0u) << one.rate_bps;
    EXPECT_EQ(outcome.buffered, kXoff + needed) << one.rate_bps;

    topology.switches[0].parameters.pfc->headroom_bytes = needed - 1;
    EXPECT_EQ(fill_paused_port(topology).lost, 1u) << one.rate_bps;
  }
}

TEST(Pfc, LosesNothingWithTheHeadroomForTheCable) {
  for (const bool is_reverse_busy : {false, true}) {
    for (const int64_t delay_ns : {0, 37, 500, 4999, 100'000}) {
      Topology topology = paused_star(100'000'000'000, Duration(delay_ns), 0);
      EXPECT_EQ(fill_paused_port(topology, is_reverse_busy).lost, 0u) << delay_ns;
    }
  }
}

// needed_headroom() is an upper bound for frames of any sizes at any times.
TEST(Pfc, LosesNothingWhateverTheSizesAndTimesAre) {
  engine::Random random(7);
  for (int round = 0; round < 200; ++round) {
    Patterns patterns;
    patterns.hosts.rate_bps = (1 + random.next() % 400) * 1'000'000'000;
    patterns.hosts.delay = Duration(static_cast<int64_t>(random.next() % 5000));
    patterns.switches.pfc = {.xoff_bytes = 5000 + random.next() % 50'000, .xon_bytes = 3000};
    const uint32_t hosts = 3 + static_cast<uint32_t>(random.next() % 4);
    Network network(star(hosts, patterns), random.next());
    std::vector<Flow> flows;
    for (uint32_t i = 0; i < 2 * hosts; ++i) {
      const auto from = static_cast<HostId>(random.next() % hosts);
      flows.push_back({.from = from,
                       .to = static_cast<HostId>((from + 1 + random.next() % 2) % hosts),
                       .bytes = 84 + static_cast<uint32_t>(random.next() % 4117)});
    }
    Saturation load(network, flows);
    load.run_until(at_ns(300'000));
    EXPECT_EQ(total(network, &PriorityCounters::drops), 0u) << "round " << round;
  }
}

TEST(Pfc, LosesNothingWhenTheSharedBufferIsUsedUpBeforeXoff) {
  Patterns patterns;
  patterns.switches.pfc = {.xoff_bytes = 90'000, .xon_bytes = 60'000};
  Topology topology = star(9, patterns);
  const uint64_t reserved = 9 * needed_headroom(topology.links[0], topology.largest_frame_bytes);
  // 100,000 bytes for 8 senders are 12,500 bytes each, far less than an xoff of 90,000 bytes
  topology.switches[0].parameters.buffer_bytes = reserved + 100'000;
  Network network(topology, 1);
  std::vector<Flow> flows;
  for (HostId i = 0; i < 8; ++i) flows.push_back({.from = i, .to = 8});
  Saturation load(network, flows);
  load.run_until(at_ns(5'000'000));
  EXPECT_EQ(total(network, &PriorityCounters::drops), 0u);
  EXPECT_LE(network.buffered_bytes(0), reserved + 100'000);
}

TEST(Pfc, DropsFramesThatDoNotFitInTheBufferWhenItIsOff) {
  Patterns patterns;
  patterns.switches.buffer_bytes = 20 * kFrame;
  Network network(star(3, patterns), 1);
  Log log;
  // Two hosts each send 50 frames at once to the same port. Meanwhile, one frame leaves for every
  // two that arrive.
  for (uint64_t i = 0; i < 100; ++i)
    network.inject(
        {.token = i, .from = static_cast<HostId>(i % 2), .to = 2, .bytes_on_wire = kFrame},
        at_ns(0));
  run(network, log);
  // Frames arrive in pairs, pair k after k serialization times. At each of these times, a frame
  // begins to leave before the pair of that time arrives. The buffer counts a frame until it begins
  // to leave: when pair k has arrived, 2k frames have arrived and k have begun to leave. So the
  // buffer is full after 20 pairs, and one frame of each of the remaining 30 pairs fits.
  EXPECT_EQ(log.losses.size(), 30u);
  for (const Loss& loss : log.losses) EXPECT_EQ(loss.why, DropReason::kBufferFull);
  EXPECT_EQ(log.deliveries.size(), 70u);
}

TEST(Pfc, PausesOnlyTheCongestedPriority) {
  Patterns patterns;
  patterns.switches.pfc = {.xoff_bytes = kXoff, .xon_bytes = kXoff / 2};
  Topology topology = star(3, patterns);
  topology.priorities.of_dscp[10] = 1;
  topology.priorities.lossless = 1u << 1 | 1u << 3;
  Network network(topology, 1);
  network.set_pause_storm(1, 3, true, at_ns(0));
  Saturation load(network, {{.from = 0, .to = 1, .dscp = 0}, {.from = 0, .to = 1, .dscp = 10}});
  load.run_until(at_ns(10'000'000));
  EXPECT_EQ(load.flows[0].delivered_frames, 0u);
  EXPECT_GT(load.flows[1].delivered_bytes, 120'000'000u);
  EXPECT_TRUE(network.is_paused(0, 3));
  EXPECT_FALSE(network.is_paused(0, 1));
  EXPECT_EQ(network.counters(0, 3).rx_pauses, 1u);
}

TEST(Pfc, ResumesWhenTheQueueIsDownToXon) {
  Patterns patterns;
  patterns.switches.pfc = {.xoff_bytes = kXoff, .xon_bytes = kXoff / 2};
  Network network(star(2, patterns), 1);
  Log quiet;
  network.set_pause_storm(1, 3, true, at_ns(0));
  run(network, quiet);
  Saturation load(network, {{.from = 0, .to = 1, .bytes = kFrame, .frames = 1000}});
  load.run_until(at_ns(1'000'000));
  EXPECT_EQ(load.flows[0].delivered_frames, 0u);
  network.set_pause_storm(1, 3, false, at_ns(1'000'000));
  load.run_until(at_ns(2'000'000));
  EXPECT_EQ(load.flows[0].delivered_frames, 1000u);
  EXPECT_FALSE(network.is_paused(0, 3));
  EXPECT_EQ(network.counters(0, 3).rx_pauses, 1u);
  EXPECT_GT(network.counters(0, 3).paused, 900us);
  EXPECT_EQ(network.counters(network.port(0).peer, 3).tx_pauses, 1u);
}

TEST(Headroom, IsTheSumOfWhatMayBeUnderWay) {
  // The needed headroom at 100 Gbit/s, or 12.5 bytes per nanosecond, is twice the delay of 500 ns,
  // three frames, and the PFC frame.
  const Link link{.a = {}, .b = {}, .rate_bps = 100'000'000'000, .delay = 500ns};
  const uint64_t expected = 2 * 500 * 100 / 8 + 3 * 4200 + 84;
  EXPECT_GE(needed_headroom(link, 4200), expected);
  EXPECT_LE(needed_headroom(link, 4200), expected + 1);
}

}  // namespace
}  // namespace rocemu::network::testing
