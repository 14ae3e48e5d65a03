// Tests published behavior. Each test computes the figure that its source predicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "emulator/network/buffer_cycles.h"
#include "emulator/network/traffic/flow_run.h"
#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kRate = 40'000'000'000;  // the rate in both papers
constexpr uint64_t kForever = 1ull << 40;
constexpr PfcThresholds kPausing{.xoff_bytes = 200'000, .xon_bytes = 150'000};

/// Returns the fixed point of DCQCN, that is, the probability p at which the decrease and the
/// increase of a flow's rate cancel. Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of
/// DCQCN and TIMELY", CoNEXT 2016, theorem 1: equation (11), with the terms of equations (5) to
/// (7). Rates are in frames per second.
double fixed_point(double flows, const DcqcnParameters& of, double frame_bytes) {
  const double rate = static_cast<double>(kRate) / flows / (8 * frame_bytes);
  const double tau = static_cast<double>(of.cnp_interval.count()) * 1e-9;
  const double tau_alpha = static_cast<double>(of.alpha_interval.count()) * 1e-9;
  const double timer = static_cast<double>(of.increase_interval.count()) * 1e-9;
  const double counter = static_cast<double>(of.byte_counter) / frame_bytes;
  const double step = static_cast<double>(of.additive_increase_bps) / (8 * frame_bytes);
  const double recovery = of.fast_recovery_steps;
  const auto excess = [&](double p) {
    const double a = 1 - std::pow(1 - p, tau * rate);
    const double b = p / (std::pow(1 - p, -counter) - 1);
    const double c = std::pow(1 - p, recovery * counter) * b;
    const double d = p / (std::pow(1 - p, -timer * rate) - 1);
    const double e = std::pow(1 - p, recovery * timer * rate) * d;
    const double alpha = 1 - std::pow(1 - p, tau_alpha * rate);
    return a * a * alpha / ((b + d) * (c + e)) - tau * tau * step * rate;
  };
  double low = 1e-9, high = 0.999;
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(low * high);
    (excess(middle) > 0 ? high : low) = middle;
  }
  return low;
}

TEST(Published, DcqcnComesToRestAtItsFixedPoint) {
  constexpr uint32_t kPayload = 1024;
  constexpr double kFrameBytes = kPayload + kFrameOverhead;
  for (const uint32_t flows : {3u, 4u, 8u, 16u}) {
    Patterns patterns;
    patterns.hosts.rate_bps = kRate;
    patterns.hosts.delay = 1us;
    patterns.switches.buffer_bytes = 64u << 20;
    // The marking probability grows by a percent for each 400 KB, a gentle slope for which the
    // paper finds DCQCN stable (section 3.2).
    patterns.switches.ecn = {.kmin_bytes = 5'000, .kmax_bytes = 2'005'000, .pmax = 0.05};
    const Topology topology = star(flows + 1, patterns);
    FlowRun run(topology, 1, {.scheme = RateScheme::kDcqcn, .payload_bytes = kPayload});
    for (HostId i = 0; i < flows; ++i) run.add({i, flows, kForever, at_ns(i * 1000)});
    run.run_until(at_ns(100'000'000));
    const auto frames = [&](uint64_t FlowResult::*field) {
      double sum = 0;
      for (const FlowResult& one : run.results()) sum += static_cast<double>(one.*field);
      return sum;
    };
    const double marked_before = frames(&FlowResult::marked_frames);
    const double before = frames(&FlowResult::received_frames);
    const PortId port = run.network().port(flows).peer;
    double queue = 0;
    constexpr int kSamples = 40'000;
    for (int i = 1; i <= kSamples; ++i) {
      run.run_until(at_ns(100'000'000 + i * 5000));
      queue += static_cast<double>(run.network().counters(port, 3).queue_bytes) / kSamples;
    }
    const double marked = (frames(&FlowResult::marked_frames) - marked_before) /
                          (frames(&FlowResult::received_frames) - before);
    const double p = fixed_point(flows, DcqcnParameters(), kFrameBytes);
    EXPECT_NEAR(marked, p, p / 10) << flows;
    const double expected_queue = 5'000 + p / 0.05 * 2'000'000;
    EXPECT_NEAR(queue, expected_queue, expected_queue / 10) << flows;
  }
}

// Zhu et al., CoNEXT 2016, section 4 (theorem 2), and SIGCOMM 2015, figure 13: flows converge to
// equal rates from any initial rates.
TEST(Published, TwoDcqcnFlowsConvergeToAFairShare) {
  Patterns patterns;
  patterns.hosts.rate_bps = kRate;
  patterns.switches.ecn = {.kmin_bytes = 5'000, .kmax_bytes = 2'005'000, .pmax = 0.05};
  const Topology topology = star(3, patterns);
  FlowRun run(topology, 1, {.scheme = RateScheme::kDcqcn, .payload_bytes = 1024});
  run.add({0, 2, kForever, at_ns(0)});
  // the second flow starts when the first one has the whole link
  run.add({1, 2, kForever, at_ns(20'000'000)});
  run.run_until(at_ns(200'000'000));
  const uint64_t first = run.results()[0].received_bytes;
  const uint64_t second = run.results()[1].received_bytes;
  run.run_until(at_ns(600'000'000));
  const auto a = static_cast<double>(run.results()[0].received_bytes - first);
  const auto b = static_cast<double>(run.results()[1].received_bytes - second);
  EXPECT_NEAR(a / (a + b), 0.5, 0.05);
  EXPECT_GT((a + b) * 8 / 0.4, 0.95 * kRate * 1024 / (1024 + kFrameOverhead));
}

/// Returns the mean rate of each flow on the wire from 20 to 100 ms, in Gbit/s.
std::vector<double> rates(const Topology& topology, RateScheme scheme,
                          const std::vector<FlowSpec>& flows) {
  FlowRun run(topology, 1, {.scheme = scheme, .payload_bytes = 1024});
  for (const FlowSpec& flow : flows) run.add(flow);
  run.run_until(at_ns(20'000'000));
  std::vector<uint64_t> before;
  for (const FlowResult& one : run.results()) before.push_back(one.received_frames);
  run.run_until(at_ns(100'000'000));
  std::vector<double> result;
  for (size_t i = 0; i < flows.size(); ++i) {
    result.push_back(static_cast<double>(run.results()[i].received_frames - before[i]) *
                     (1024 + kFrameOverhead) * 8 / 80e-3 / 1e9);
    EXPECT_EQ(run.results()[i].lost_frames, 0u);
  }
  return result;
}

// SIGCOMM 2015, section 2.2 and figure 3, the parking lot: H1 to H3 share a link to the receiver's
// switch, and H4 is at that switch. PFC divides the rate by ports, so H4 gets half of it, and each
// other host a sixth.
TEST(Published, PfcAloneIsUnfairAndDcqcnIsNot) {
  Patterns patterns;
  patterns.hosts.rate_bps = patterns.trunks.rate_bps = kRate;
  patterns.switches.pfc = kPausing;
  patterns.switches.ecn = {.kmin_bytes = 5'000, .kmax_bytes = 1'000'000, .pmax = 0.05};
  const Topology topology = dumbbell(3, 2, patterns);
  std::vector<FlowSpec> flows;
  for (HostId i = 0; i < 4; ++i) flows.push_back({i, 4, kForever, at_ns(i * 100)});

  const std::vector<double> paused = rates(topology, RateScheme::kNone, flows);
  EXPECT_NEAR(paused[3], 40.0 / 2, 40.0 / 2 * 0.1);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(paused[i], 40.0 / 6, 40.0 / 6 * 0.1) << i;

  const std::vector<double> controlled = rates(topology, RateScheme::kDcqcn, flows);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(controlled[i], 40.0 / 4, 40.0 / 4 * 0.2) << i;
}

// SIGCOMM 2015, section 2.2 and figure 4, the victim flow: H0 to H3 send to a receiver. The victim
// sends over the same trunk to another host, whose link is idle. PFC stops the trunk, and the
// victim gets no more than each of the others.
TEST(Published, PfcAloneHurtsAVictimAndDcqcnSparesIt) {
  Patterns patterns;
  patterns.hosts.rate_bps = kRate;
  patterns.trunks.rate_bps = 4 * kRate;  // the trunk is not the bottleneck
  patterns.switches.pfc = kPausing;
  patterns.switches.ecn = {.kmin_bytes = 5'000, .kmax_bytes = 1'000'000, .pmax = 0.05};
  const Topology topology = dumbbell(5, 2, patterns);
  std::vector<FlowSpec> flows = {{4, 6, kForever, at_ns(0)}};
  for (HostId i = 0; i < 4; ++i) flows.push_back({i, 5, kForever, at_ns(0)});
  EXPECT_NEAR(rates(topology, RateScheme::kNone, flows)[0], 40.0 / 4, 40.0 / 4 * 0.1);
  EXPECT_GT(rates(topology, RateScheme::kDcqcn, flows)[0], 40.0 * 0.95);
}

// In a ring of five switches, each host sends to a host two switches away, so that each buffer
// waits for the next (Hu et al., "Deadlocks in Datacenter Networks: Why Do They Form, and How to
// Avoid Them", HotNets 2016). Up-down routing has no cycle (Schroeder et al., Autonet, 1991).
TEST(Published, PfcDeadlocksInARingAndNotWithUpDownRouting) {
  Patterns patterns;
  patterns.switches.pfc = kPausing;
  Topology topology = ring(5, 1, patterns);
  std::vector<Flow> flows;
  for (HostId i = 0; i < 5; ++i) flows.push_back({.from = i, .to = (i + 2) % 5});

  EXPECT_EQ(find_buffer_cycle(topology).size(), 5u);
  {
    Network network(topology, 1);
    Saturation load(network, flows);
    load.run_until(at_ns(20'000'000));
    load.forget();
    load.run_until(at_ns(40'000'000));
    for (const Flow& flow : load.flows) EXPECT_EQ(flow.delivered_frames, 0u);
    EXPECT_GT(network.packets_in_flight(), 0u);
    EXPECT_EQ(total(network, &PriorityCounters::drops), 0u);
  }
  topology.routing = Routing::kUpDown;
  EXPECT_TRUE(find_buffer_cycle(topology).empty());
  Network network(topology, 1);
  Saturation load(network, flows);
  load.run_until(at_ns(20'000'000));
  load.forget();
  load.run_until(at_ns(40'000'000));
  for (const Flow& flow : load.flows) EXPECT_GT(flow.delivered_frames, 1000u);
  EXPECT_EQ(total(network, &PriorityCounters::drops), 0u);
}

// The interface also allows schemes that react to delays: TIMELY keeps the delay of a queue between
// T_low and T_high, 50 and 500 us (SIGCOMM 2015, section 4.3). Without TIMELY, the flows would fill
// the buffer.
TEST(Published, TimelyKeepsTheDelayInItsBounds) {
  Patterns patterns;
  patterns.hosts.rate_bps = 10'000'000'000;
  patterns.switches.pfc = {.xoff_bytes = 2'000'000, .xon_bytes = 1'500'000};
  const Topology topology = star(5, patterns);
  FlowRun run(topology, 1, {.scheme = RateScheme::kTimely, .payload_bytes = 4096});
  for (HostId i = 0; i < 4; ++i) run.add({i, 4, kForever, at_ns(i * 1000)});
  run.run_until(at_ns(100'000'000));
  const uint64_t pauses = total(run.network(), &PriorityCounters::tx_pauses);
  const PortId port = run.network().port(4).peer;
  for (int i = 1; i <= 1000; ++i) {
    run.run_until(at_ns(100'000'000 + i * 100'000));
    const double queue_us =
        static_cast<double>(run.network().counters(port, 3).queue_bytes) * 8 / 10e9 * 1e6;
    ASSERT_LT(queue_us, 500) << i;
  }
  EXPECT_EQ(total(run.network(), &PriorityCounters::tx_pauses), pauses);
}

}  // namespace
}  // namespace rocemu::network::testing
