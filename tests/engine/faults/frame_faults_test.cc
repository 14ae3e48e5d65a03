// Tests the effects of rules on frames in flight.
#include <gtest/gtest.h>

#include "emulator/engine/faults/rule_matcher.h"
#include "tests/engine/faults/rules.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "wire/identification.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcStatus;
using engine::Counter;
using engine::VendorError;

TEST(FrameFault, DropLosesTheFrameAndItIsSentAgain) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 1, do: drop}");
  s.at(0ms).app_posts_send(1).expect({fired()});
  s.at(kAckTimeout).expect({send_only(psn(0))});
  s.at(100ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, DropLosesWhatComesFromOutside) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: outside, opcode: ACK, count: 1, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({fired()});
  s.at(2ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, ADelayedFrameFromOutsideIsStillFromOutside) {
  ScriptOptions options;
  options.outside = true;
  Script s(options);
  add_rules(s.bench(), "{on: frame, from: outside, do: {delay: 5ms}}");
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0)).from(s.device_ip())).expect({fired()});
  s.at(5ms).expect_silence().expect_counter(Counter::kDroppedWrongSource, 1);
}

TEST(FrameFault, AFrameFromOutsideKeepsItsIdentificationUnderFaults) {
  ScriptOptions options;
  options.outside = true;
  Script s(options);
  add_rules(s.bench(), "{on: frame, from: outside, do: {delay: 5ms}}");
  s.at(0ms).app_posts_recv(1);
  auto bytes = s.frame(send_only(psn(0)).of_length(64));
  wire::change_identification(bytes, 0x4711);
  wire::write_identification(bytes, 0);
  s.bench().step(engine::ReceivedFrame{engine::DeviceIndex{0}, bytes, false});
  s.expect({fired()});
  s.at(5ms).expect({received(1), ack(psn(0))});
}

TEST(FrameFault, PsnsCountFromTheConnectionsStart) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, psn: 1, count: 1, do: drop}");
  s.at(0ms).app_posts_send(1, 3072).expect({send_first(psn(0)), fired(), send_last(psn(2))});
  s.at(1ms).wire_delivers(sequence_nak(psn(1))).expect({send_middle(psn(1)), send_last(psn(2))});
  s.at(2ms).wire_delivers(ack(psn(2))).expect({completion(1)});
}

TEST(FrameFault, DelayKeepsTheFrameForTheGivenTime) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {delay: 5ms}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({fired(), send_only(psn(1))});
  s.at(5ms).expect({send_only(psn(0))});
  s.at(6ms).wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

TEST(FrameFault, DuplicateSendsCopies) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {duplicate: 2}}");
  s.at(0ms).app_posts_send(1).expect(
      {fired(), send_only(psn(0)), send_only(psn(0)), send_only(psn(0))});
  s.at(6ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, ReorderLetsTheGivenNumberOvertake) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {reorder: 2}}");
  s.at(0ms).app_posts_send(1, 4096).expect(
      {fired(), send_middle(psn(1)), send_middle(psn(2)), send_first(psn(0)), send_last(psn(3))});
  s.at(6ms).wire_delivers(ack(psn(3))).expect({completion(1)});
}

TEST(FrameFault, AReorderedFrameArrivesAlthoughNoFrameOvertakesIt) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {reorder: 5}}");
  s.at(0ms).app_posts_send(1).expect({fired()});
  s.at(10ms).expect({send_only(psn(0))});
  s.at(11ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, RewriteChangesAFieldAndTheIcrcIsRight) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {rewrite: {psn: +3}}}");
  s.at(0ms).app_posts_send(1).expect({fired(), send_only(psn(3))});
  s.at(6ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, AnInjectedGhostAckIsIgnored) {
  Script s;
  add_rules(s.bench(),
            "{on: frame, opcode: SEND, nth: 1, do: {inject: {to: sender, opcode: ACK, syndrome: "
            "ACK, psn: +9}}}");
  s.at(0ms).app_posts_send(1).expect({fired(), send_only(psn(0))});
  s.expect_counter(Counter::kGhostAcks, 1);
  s.at(6ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, AForgedNakIsBelieved) {
  Script s;
  add_rules(s.bench(),
            "{on: frame, opcode: SEND, nth: 1, do: {inject: "
            "{to: sender, opcode: ACK, syndrome: remote_access_error}}}");
  s.at(0ms).app_posts_send(1).expect(
      {fired(), send_only(psn(0)),
       completion(1).status(WcStatus::kRemAccessErr).vendor(VendorError::kNakRemoteAccess)});
  s.expect_state(QpState::kErr);
}

TEST(FrameFault, CorruptionInsideTheFabricIsFoundByTheIcrc) {
  for (const char* how : {"icrc", "{bits: [40]}", "{random_bits: 3}"}) {
    SCOPED_TRACE(how);
    Pair pair;
    add_rules(pair.bench,
              std::string("{on: frame, opcode: SEND, nth: 1, do: {corrupt: ") + how + "}}");
    pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
    pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
    EXPECT_TRUE(pair.take_right().empty());
    pair.bench.advance_to(1s);
    EXPECT_EQ(pair.take_right().size(), 1u);
    EXPECT_EQ(pair.take_left().size(), 1u);
  }
}

TEST(LinkFault, LatencyAndBandwidthSetTheTimeOfArrival) {
  Script s;
  add_rules(s.bench(), "{on: link, from: dut, do: {latency: 100us, bandwidth: 1Gbit/s}}");
  s.at(0ms).app_posts_send(1, 2048).expect_silence();
  // A frame has 1082 bytes and 24 more on Ethernet, which take 8.848 us at 1 Gbit/s.
  s.at(108848ns).expect({send_first(psn(0))});
  s.at(117696ns).expect({send_last(psn(1))});
  s.at(6ms).wire_delivers(ack(psn(1))).expect({completion(1)});
}

TEST(LinkFault, APartitionHealsWhenItsRuleGoes) {
  PairOptions options;
  options.left.connection.retry_cnt = 7;
  Pair pair(options);
  add_rules(pair.bench, "{name: cut, on: link, between: [right, left], do: partition}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.advance_to(100ms);
  EXPECT_TRUE(pair.take_right().empty());
  pair.bench.step(engine::RemoveRules{"cut"});
  pair.bench.advance_to(1s);
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_EQ(pair.take_left().size(), 1u);
}

TEST(LinkFault, APartitionHealsAfterItsTime) {
  Pair pair;
  add_rules(pair.bench, "{on: link, between: [left, right], for: 100ms, do: partition}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.advance_to(90ms);
  EXPECT_TRUE(pair.take_right().empty());
  pair.bench.advance_to(1s);
  EXPECT_EQ(pair.take_right().size(), 1u);
  pair.take_left();
}

TEST(LinkFault, JitterIsAtMostTheGivenTime) {
  Script s;
  add_rules(s.bench(), "{on: link, from: dut, do: {latency: 100us, jitter: 50us}}");
  s.at(0ms).app_posts_send(1);
  s.at(100us).expect_silence();
  s.at(102527ns).expect({send_only(psn(0))});  // a random time, which depends on the script's seed
}

TEST(LinkFault, JitterIsWithinItsRangeAndUsesAllOfIt) {
  engine::Random random(1);
  engine::Duration least = 1h;
  engine::Duration most{};
  for (int i = 0; i < 1000; ++i) {
    const engine::Duration one = engine::faults::chosen(random, 1ms);
    least = std::min(least, one);
    most = std::max(most, one);
  }
  EXPECT_GE(least, 0ms);
  EXPECT_LT(least, 10us);
  EXPECT_GT(most, 990us);
  EXPECT_LE(most, 1ms);
  EXPECT_EQ(engine::faults::chosen(random, {}), engine::Duration{});
}

}  // namespace
}  // namespace rocemu::test
