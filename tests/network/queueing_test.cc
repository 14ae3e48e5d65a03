// Compares throughput and queue lengths with queueing theory.
#include <gtest/gtest.h>

#include <cmath>

#include "emulator/engine/base/random.h"
#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

constexpr PfcThresholds kPfc{.xoff_bytes = 100'000, .xon_bytes = 60'000};

TEST(Incast, FillsTheReceiversLinkToATenthOfAPercent) {
  for (const uint32_t senders : {2u, 15u}) {
    Patterns patterns;
    patterns.switches.pfc = kPfc;
    Network network(star(senders + 1, patterns), 1);
    std::vector<Flow> flows;
    for (uint32_t i = 0; i < senders; ++i)
      flows.push_back({.from = i, .to = senders, .bytes = 4200, .ecn = 0, .hash = i});
    Saturation load(network, flows);
    load.run_until(at_ns(1'000'000));
    load.forget();
    load.run_until(at_ns(11'000'000));
    uint64_t payload = 0;
    for (const Flow& flow : load.flows) {
      payload += flow.delivered_frames * 4096;
      EXPECT_EQ(flow.lost_frames, 0u);
    }
    // Of each 4200 bytes on the wire, 4096 are payload. 10 ms at 100 Gbit/s are 125,000,000 bytes.
    const double expected = 125'000'000.0 * 4096 / 4200;
    EXPECT_NEAR(static_cast<double>(payload), expected, expected / 1000) << senders << ":1";
  }
}

TEST(Incast, GivesEachOfEqualSendersTheSameShare) {
  Patterns patterns;
  patterns.switches.pfc = kPfc;
  Network network(star(5, patterns), 1);
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 4; ++i) flows.push_back({.from = i, .to = 4});
  Saturation load(network, flows);
  load.run_until(at_ns(20'000'000));
  for (const Flow& flow : load.flows)
    EXPECT_NEAR(static_cast<double>(flow.delivered_bytes), 250'000'000.0 / 4, 250'000'000.0 / 40);
}

/// Measures the mean time in a port's queue. The port gets Poisson traffic of frames of one size
/// from many fast links.
class PoissonLoad : public Sink {
 public:
  PoissonLoad(double load, uint64_t seed) : load_(load), random_(seed) {}

  double mean_wait_ns() {
    Patterns patterns;
    patterns.hosts.rate_bps = 1'000'000'000'000;
    patterns.hosts.delay = 0ns;
    patterns.switches.buffer_bytes = 1u << 30;
    Topology topology = star(kSenders + 1, patterns);
    topology.links[kSenders].rate_bps = kRate;
    topology.nic.queue_bytes = 1u << 30;
    Network network(topology, 1);
    double next_ns = 0;
    for (uint64_t i = 0; i < kFrames; ++i) {
      next_ns += -std::log(uniform()) * kServiceNs / load_;
      const Instant now = at_ns(std::llround(next_ns));
      network.advance(now, *this);
      injected_[i % injected_.size()] = now;
      network.inject({.token = i,
                      .from = static_cast<HostId>(random_.next() % kSenders),
                      .to = kSenders,
                      .bytes_on_wire = kBytes},
                     now);
    }
    run(network, *this, at_ns(INT64_MAX / 2000));
    return wait_ns_ / kFrames;
  }

  void deliver(uint64_t token, HostId, Instant at, bool) override {
    const auto total = static_cast<double>((at - injected_[token % injected_.size()]).count());
    wait_ns_ += total - kServiceNs - kNicNs;
  }
  void drop(uint64_t, PortId, DropReason) override { FAIL(); }
  void host_resumed(HostId) override {}

  static constexpr uint64_t kRate = 10'000'000'000;
  static constexpr uint32_t kBytes = 1250;
  static constexpr double kServiceNs = 1000;  // 1250 bytes at 10 Gbit/s
  static constexpr double kNicNs = 10;        // 1250 bytes at 1 Tbit/s

 private:
  static constexpr uint32_t kSenders = 100;
  static constexpr uint64_t kFrames = 2'000'000;

  double uniform() { return (static_cast<double>(random_.next() >> 11) + 1) * 0x1p-53; }

  double load_;
  engine::Random random_;
  double wait_ns_ = 0;
  std::vector<Instant> injected_ = std::vector<Instant>(100'000);
};

// Pollaczek and Khinchine: if frames arrive as a Poisson process at a port that needs the same time
// for each, then rho^2 / (2 (1 - rho)) frames wait on average (Kleinrock, Queueing Systems, volume
// 1, 5.6).
TEST(Queue, OfPoissonTrafficHasTheLengthOfMD1) {
  for (const double rho : {0.5, 0.7, 0.8}) {
    const double wait = PoissonLoad(rho, 42).mean_wait_ns();
    const double length = wait * rho / PoissonLoad::kServiceNs;  // Little's law
    const double expected = rho * rho / (2 * (1 - rho));
    EXPECT_NEAR(length, expected, expected * 0.02) << "rho " << rho;
  }
}

TEST(Priorities, StrictOnesGoFirst) {
  Patterns patterns;
  patterns.switches.pfc = kPfc;
  Topology topology = star(3, patterns);
  topology.priorities.lossless = 1u << 3 | 1u << 6;
  Network network(topology, 1);
  Saturation load(network, {{.from = 0, .to = 2, .dscp = 0}, {.from = 1, .to = 2, .dscp = 48}});
  load.run_until(at_ns(1'000'000));
  load.forget();
  load.run_until(at_ns(11'000'000));
  EXPECT_EQ(load.flows[0].delivered_frames, 0u);
  EXPECT_NEAR(static_cast<double>(load.flows[1].delivered_bytes), 125e6, 125e3);
}

TEST(Priorities, ShareAPortByTheirWeights) {
  Patterns patterns;
  patterns.switches.pfc = kPfc;
  Topology topology = star(3, patterns);
  topology.priorities.of_dscp[10] = 1;
  topology.priorities.lossless = 1u << 1 | 1u << 3;
  topology.priorities.weights[3] = 3;
  Network network(topology, 1);
  Saturation load(network, {{.from = 0, .to = 2, .bytes = 4200, .dscp = 0},
                            {.from = 1, .to = 2, .bytes = 700, .dscp = 10}});
  load.run_until(at_ns(1'000'000));
  load.forget();
  load.run_until(at_ns(11'000'000));
  EXPECT_NEAR(static_cast<double>(load.flows[0].delivered_bytes), 125e6 * 3 / 4, 125e3);
  EXPECT_NEAR(static_cast<double>(load.flows[1].delivered_bytes), 125e6 * 1 / 4, 125e3);
}

TEST(Nic, HasRoomForAShortQueueOnly) {
  Network network(star(2), 1);
  Log log;
  EXPECT_TRUE(network.can_inject(0, 3));
  network.inject({.token = 1, .from = 0, .to = 1, .bytes_on_wire = 4200}, at_ns(0));
  EXPECT_TRUE(network.can_inject(0, 3));
  network.inject({.token = 2, .from = 0, .to = 1, .bytes_on_wire = 4200}, at_ns(0));
  EXPECT_FALSE(network.can_inject(0, 3));  // 8400 bytes wait, and the limit is 8192
  EXPECT_TRUE(network.can_inject(0, 6));
  EXPECT_TRUE(network.can_inject(1, 3));
  EXPECT_EQ(network.next_event(), at_ns(0));
  network.advance(at_ns(0), log);  // the first frame begins to leave
  EXPECT_TRUE(network.can_inject(0, 3));
  EXPECT_EQ(log.resumed, std::vector<HostId>{0});
}

}  // namespace
}  // namespace rocemu::network::testing
