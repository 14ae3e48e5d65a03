// Tests the engine on a simulated network: times, marks, CNPs and rates of two connected QPs.
#include <gtest/gtest.h>

#include "emulator/network/file/file_plan.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using engine::Counter;

std::shared_ptr<const engine::NetworkPlan> plan(const std::string& yaml) {
  std::vector<std::string> warnings;
  return network::parse_plan(yaml, "test", warnings);
}

/// Returns options for two hosts at one switch. The links have 100 Gbit/s, so that a byte takes 80
/// ps, and a delay of 500 ns.
PairOptions on_star(const std::string& more = "") {
  PairOptions options;
  options.network = plan("topology: {star: 2}\nlinks: {rate: 100Gbps, delay: 500ns}\n" + more);
  options.left.buffer_size = options.right.buffer_size = 1 << 20;
  return options;
}

uint64_t counter(Pair& pair, size_t device, Counter which) {
  return pair.bench.engine().snapshot().devices[device].counters.get(which);
}

std::vector<engine::Duration> completion_times(const Pair& pair, const Endpoint& of) {
  std::vector<engine::Duration> times;
  for (const Timed& one : pair.bench.log) {
    const auto* completion = std::get_if<engine::Completion>(&one.output);
    if (completion != nullptr && completion->client == of.client.id())
      times.push_back(one.at.time_since_epoch());
  }
  return times;
}

/// Bytes of a frame that has only a BTH and no payload: Ethernet, IPv4, UDP, BTH, ICRC, FCS,
/// preamble and gap.
constexpr int64_t kOverhead = 14 + 20 + 8 + 12 + 4 + 4 + 20;

/// Returns the time of a frame on an idle path: store and forward over two links, rounded up to
/// nanoseconds.
constexpr engine::Duration idle_path(int64_t bytes) {
  return engine::Duration(2 * 500 + (2 * bytes * 80 + 999) / 1000);
}

TEST(PairOnNetwork, ASendArrivesWhenItsLastBitDoes) {
  Pair pair(on_star());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.advance_to(100us);
  const engine::Duration there = idle_path(kOverhead + 64);
  const engine::Duration back = idle_path(kOverhead + 4);  // 4 bytes for the AETH of the ACK
  EXPECT_EQ(completion_times(pair, pair.right), std::vector{there});
  EXPECT_EQ(completion_times(pair, pair.left), std::vector{there + back});
  EXPECT_FALSE(pair.bench.engine().has_frames_under_way());
}

TEST(PairOnNetwork, PacketsOfAMessageFollowEachOtherAtTheRateOfTheLink) {
  Pair pair(on_star());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(1 << 20)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(1 << 20)}});
  pair.bench.advance_to(1ms);
  const int64_t mtu = abi::mtu_bytes(Connection().mtu);
  const int64_t packets = (1 << 20) / mtu;
  // The sender's link carries one packet after another, without a pause. Then the last packet
  // crosses the second link.
  const int64_t ps = (packets + 1) * (kOverhead + mtu) * 80;
  EXPECT_EQ(completion_times(pair, pair.right),
            std::vector{engine::Duration(2 * 500 + (ps + 999) / 1000)});
}

constexpr char kSlowReceiver[] =
    "overrides: {h1-s1: {rate: 10Gbps}}\n"
    "switch: {buffer: 4MiB, ecn: {kmin: 20KiB, kmax: 80KiB, pmax: 0.2}, "
    "pfc: {xoff: 512KiB, xon: 384KiB}}\n";

void send_for_a_while(Pair& pair) {
  for (uint64_t i = 0; i < 8; ++i) {
    pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(1 << 20)}});
    pair.left.post_send({.wr_id = i, .sges = {pair.left.send_sge(1 << 20)}});
  }
  pair.bench.advance_to(100ms);
  EXPECT_EQ(pair.take_left().size(), 8u);
  EXPECT_EQ(counter(pair, 0, Counter::kRetransmittedFrames), 0u);
}

TEST(PairOnNetwork, MarksMakeTheReceiverNotifyAndTheSenderSlowDown) {
  Pair pair(on_star(std::string(kSlowReceiver) + "nics: {dcqcn: default}\n"));
  send_for_a_while(pair);
  EXPECT_GT(counter(pair, 1, Counter::kCongestionMarks), 0u);
  const uint64_t cnps = counter(pair, 1, Counter::kCnpsSent);
  EXPECT_GT(cnps, 1u);
  // Sending 8 MiB at 10 Gbit/s takes more than 6.7 ms. A NIC sends at most one CNP in 50 us, so
  // there are fewer CNPs than the 100 ms of the test allow.
  EXPECT_LT(cnps, 100'000u / 50);
  EXPECT_EQ(counter(pair, 0, Counter::kCnpsReceived), cnps);
  EXPECT_EQ(counter(pair, 0, Counter::kCnpsHandled), cnps);
}

TEST(PairOnNetwork, WithoutCongestionControlMarksAreNeitherAskedForNorAnswered) {
  Pair pair(on_star(kSlowReceiver));
  send_for_a_while(pair);
  EXPECT_EQ(counter(pair, 1, Counter::kCongestionMarks), 0u);
  EXPECT_EQ(counter(pair, 1, Counter::kCnpsSent), 0u);
}

TEST(PairOnNetwork, ALostPacketIsSentAgain) {
  // Without PFC, a queue of 20 KiB soon overflows.
  Pair pair(on_star("overrides: {h1-s1: {rate: 10Gbps}}\nswitch: {queue: 20KiB}\n"));
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(1 << 20)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(1 << 20)}});
  pair.bench.advance_to(10s);
  EXPECT_GT(counter(pair, 0, Counter::kRetransmittedFrames), 0u);
}

TEST(PairOnNetwork, ADeviceReachesItselfWithoutTheNetwork) {
  PairOptions options = on_star();
  options.same_device = true;
  options.link_latency = 1us;
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.advance_to(100us);
  EXPECT_EQ(completion_times(pair, pair.right), std::vector<engine::Duration>{1us});
}

}  // namespace
}  // namespace rocemu::test
