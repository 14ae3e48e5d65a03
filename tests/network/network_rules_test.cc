// Tests rules of a scenario for the simulated network (`on: network`), with two connected QPs on
// the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/network/file/file_plan.h"
#include "emulator/scenario/scenario.h"
#include "tests/support/pair.h"

namespace rocemu::test::network_rules {
namespace {

using engine::Counter;
using ::testing::HasSubstr;

std::shared_ptr<const engine::NetworkPlan> plan(const std::string& more = "") {
  std::vector<std::string> warnings;
  return network::parse_plan("topology: {star: 2}\nlinks: {rate: 100Gbps, delay: 500ns}\n" + more,
                             "test", warnings);
}

PairOptions on_star(const std::string& more = "") {
  PairOptions options;
  options.network = plan(more);
  options.left.buffer_size = options.right.buffer_size = 1 << 20;
  return options;
}

void add_rule(Pair& pair, const std::string& text) {
  pair.bench.step(engine::AddRules{scenario::parse_rule(text)});
}

void send(Pair& pair, uint32_t bytes) {
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(bytes)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(bytes)}});
}

/// Returns the times at which messages arrived at the right side.
std::vector<engine::Duration> arrivals(const Pair& pair) {
  std::vector<engine::Duration> times;
  for (const Timed& one : pair.bench.log) {
    const auto* completion = std::get_if<engine::Completion>(&one.output);
    if (completion != nullptr && completion->client == pair.right.client.id())
      times.push_back(one.at.time_since_epoch());
  }
  return times;
}

std::vector<engine::Duration> firings(const Pair& pair) {
  std::vector<engine::Duration> times;
  for (const Timed& one : pair.bench.log) {
    if (std::holds_alternative<engine::RuleFired>(one.output))
      times.push_back(one.at.time_since_epoch());
  }
  return times;
}

uint64_t counter(Pair& pair, size_t device, Counter which) {
  return pair.bench.engine().snapshot().devices[device].counters.get(which);
}

/// Bytes of Ethernet, IPv4, UDP, BTH, ICRC, FCS, preamble and gap.
constexpr int64_t kOverhead = 14 + 20 + 8 + 12 + 4 + 4 + 20;
constexpr int64_t kPsPerByte = 80;  // the rate is 100 Gbit/s
constexpr engine::Duration kAckTimeout(int64_t{4096} << 14);

constexpr engine::Duration rounded_up(int64_t ps) {
  return engine::Duration((ps + 999) / 1000);
}
/// Returns the time of a frame on an idle path: store and forward over two links.
constexpr engine::Duration idle_path(int64_t payload) {
  return 2 * 500ns + rounded_up(2 * (kOverhead + payload) * kPsPerByte);
}

TEST(NetworkRule, ALinkIsDownForItsTimeAndLosesFrames) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, link: h1-s1, after: 10us, for: 100us, do: down}");
  pair.bench.advance_to(20us);
  send(pair, 64);
  pair.bench.advance_to(200ms);
  EXPECT_EQ(firings(pair), std::vector<engine::Duration>{10us});
  // IBTA vol 1, 9.7.6.1.3: the requester sends the message again when its timer expires.
  const auto found = arrivals(pair);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GE(found[0], 20us + kAckTimeout + idle_path(64));
  EXPECT_FALSE(pair.bench.engine().has_frames_under_way());
}

TEST(NetworkRule, ALinkFlapsAsOftenAsItSays) {
  Pair pair(on_star());
  add_rule(pair,
           "{on: network, port: 's1:1', after: 10us, do: {flap: {down: 5us, up: 20us, times: 3}}}");
  pair.bench.advance_to(12us);
  send(pair, 64);  // the link is down at this time
  pair.bench.advance_to(1ms);
  EXPECT_EQ(firings(pair), (std::vector<engine::Duration>{10us, 35us, 60us}));
  EXPECT_TRUE(arrivals(pair).empty());
  pair.bench.advance_to(200ms);
  EXPECT_EQ(arrivals(pair).size(), 1u);
  EXPECT_EQ(pair.bench.engine().rule_reports()[0].fired, 3u);
}

TEST(NetworkRule, ASlowLinkHasItsRateForItsTime) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, link: h0-s1, for: 10ms, do: {bandwidth: 10Gbit/s}}");
  pair.bench.advance_to(1us);
  send(pair, 1 << 20);
  pair.bench.advance_to(9ms);
  const int64_t mtu = abi::mtu_bytes(Connection().mtu);
  const int64_t packet = kOverhead + mtu, packets = (1 << 20) / mtu;
  // All packets leave at a tenth of the rate. The last packet crosses the second link at the full
  // rate.
  const int64_t slow_ps = packets * packet * 10 * kPsPerByte + packet * kPsPerByte;
  EXPECT_EQ(arrivals(pair), std::vector{1us + 2 * 500ns + rounded_up(slow_ps)});
  pair.bench.advance_to(20ms);
  send(pair, 64);
  pair.bench.advance_to(30ms);
  EXPECT_EQ(arrivals(pair).back(), 20ms + idle_path(64));
}

TEST(NetworkRule, ALinkThatCorruptsEveryFrameDeliversNone) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, link: h0-s1, for: 50us, do: {corruption: 100%}}");
  pair.bench.advance_to(1us);
  send(pair, 64);
  pair.bench.advance_to(60ms);
  EXPECT_TRUE(arrivals(pair).empty());
  pair.bench.advance_to(200ms);
  EXPECT_EQ(arrivals(pair).size(), 1u);
  EXPECT_GT(counter(pair, 0, Counter::kRetransmittedFrames), 0u);
}

TEST(NetworkRule, ASwitchThatRebootsLosesFramesUntilItIsBack) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, switch: s1, after: 10us, do: {reboot: 1ms}}");
  pair.bench.advance_to(500us);
  send(pair, 64);
  pair.bench.advance_to(60ms);
  EXPECT_TRUE(arrivals(pair).empty());
  pair.bench.advance_to(200ms);
  EXPECT_EQ(arrivals(pair).size(), 1u);
}

TEST(NetworkRule, APauseStormHoldsFramesUntilItEnds) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, host: h1, for: 1ms, do: pause_storm}");
  pair.bench.advance_to(10us);
  send(pair, 64);
  pair.bench.advance_to(2ms);
  // The NIC ends its pause by a PFC frame of 84 bytes, and then the message crosses the link.
  const int64_t ps = (84 + kOverhead + 64) * kPsPerByte;
  EXPECT_EQ(arrivals(pair), std::vector{1ms + 2 * 500ns + rounded_up(ps)});
  EXPECT_EQ(counter(pair, 0, Counter::kRetransmittedFrames), 0u);
}

TEST(NetworkRule, APauseStormOfAnotherPriorityStopsNothing) {
  Pair pair(on_star());
  add_rule(pair, "{on: network, host: h1, do: {pause_storm: 5}}");
  pair.bench.advance_to(10us);
  send(pair, 64);
  pair.bench.advance_to(1ms);
  EXPECT_EQ(arrivals(pair), std::vector{10us + idle_path(64)});
}

constexpr char kSlowReceiver[] =
    "overrides: {h1-s1: {rate: 10Gbps}}\nnics: {dcqcn: default}\n"
    "switch: {buffer: 4MiB, ecn: {kmin: 20KiB, kmax: 80KiB, pmax: 0.2}, "
    "pfc: {xoff: 512KiB, xon: 384KiB}}\n";

TEST(NetworkRule, EcnThatIsOffMarksNothingUntilTheRuleEnds) {
  Pair pair(on_star(kSlowReceiver));
  add_rule(pair, "{name: off, on: network, switch: s1, do: {ecn: off}}");
  pair.bench.advance_to(1us);
  send(pair, 1 << 20);
  pair.bench.advance_to(10ms);
  ASSERT_EQ(arrivals(pair).size(), 1u);
  EXPECT_EQ(counter(pair, 1, Counter::kCongestionMarks), 0u);
  pair.bench.step(engine::RemoveRules{"off"});
  send(pair, 1 << 20);
  pair.bench.advance_to(20ms);
  EXPECT_GT(counter(pair, 1, Counter::kCongestionMarks), 0u);
}

TEST(NetworkRule, WrongEcnThresholdsMarkEveryQueue) {
  Pair pair(on_star(kSlowReceiver));
  add_rule(pair, "{on: network, switch: s1, do: {ecn: {kmin: 0, kmax: 1B}}}");
  pair.bench.advance_to(1us);
  send(pair, 8192);
  pair.bench.advance_to(1ms);
  // With the kmin of 20 KiB in the file, none of these packets would be marked. When the last
  // packet leaves, the queue is empty, so it is not marked even with the rule.
  const auto packets = 8192 / static_cast<uint64_t>(abi::mtu_bytes(Connection().mtu));
  EXPECT_GT(counter(pair, 1, Counter::kCongestionMarks), 0u);
  EXPECT_LT(counter(pair, 1, Counter::kCongestionMarks), packets);
}

TEST(NetworkRule, IsEndedByItsRemovalAndByARuleOfItsName) {
  Pair pair(on_star());
  add_rule(pair, "{name: cut, on: network, link: h0-s1, do: down}");
  pair.bench.advance_to(1us);
  pair.bench.step(engine::RemoveRules{"cut"});
  pair.bench.advance_to(2us);
  send(pair, 64);
  pair.bench.advance_to(100us);
  EXPECT_EQ(arrivals(pair), std::vector{2us + idle_path(64)});

  add_rule(pair, "{name: cut, on: network, link: h0-s1, do: down}");
  pair.bench.advance_to(150us);
  add_rule(pair, "{name: cut, on: frame, opcode: NAK, do: log}");
  pair.bench.advance_to(200us);
  send(pair, 64);
  pair.bench.advance_to(300us);
  EXPECT_EQ(arrivals(pair).back(), 200us + idle_path(64));
}

TEST(NetworkRule, AsksForNoStepWithoutANetwork) {
  Pair pair{PairOptions{}};
  add_rule(pair, "{on: network, link: h0-s1, do: down}");
  EXPECT_TRUE(firings(pair).empty());
  EXPECT_FALSE(pair.bench.engine().next_deadline());
}

void expect_refused(const std::string& rule, const engine::NetworkPlan* network,
                    const std::string& message) {
  try {
    scenario::check_network(*scenario::parse_rule(rule), network, "file.yaml");
    ADD_FAILURE() << rule;
  } catch (const scenario::ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_THAT(error.what(), HasSubstr("file.yaml: rule '"));
  }
}

TEST(NetworkRule, NamesPartsThatTheNetworkHas) {
  const auto network = plan();
  const auto check = [&](const std::string& rule, const std::string& message) {
    expect_refused(rule, network.get(), message);
  };
  check("{on: network, link: h7-s1, do: down}", "has no link 'h7-s1'; a link is named by its ends");
  check("{on: network, port: 's1:9', do: down}", "has no port 's1:9'");
  check("{on: network, switch: s2, do: {reboot: 1ms}}", "has no switch 's2'; its switches are s1");
  check("{on: network, host: h2, do: pause_storm}", "has no host 'h2'; its hosts are h0 to h1");
  expect_refused("{on: network, link: h0-s1, do: down}", nullptr, "give one with --fabric");
  scenario::check_network(*scenario::parse_rule("{on: network, port: 's1:1', do: down}"),
                          network.get(), "file.yaml");
  scenario::check_network(*scenario::parse_rule("{on: frame, do: drop}"), nullptr, "file.yaml");
}

}  // namespace
}  // namespace rocemu::test::network_rules
