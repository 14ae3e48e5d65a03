// What rules do to frames, requests, completions, events and calls (docs/scenarios.md). The rules
// are in the words of a scenario.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/scenario/scenario.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "wire/identification.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::QpState;
using abi::WcStatus;
using engine::Counter;
using engine::VendorError;
using wire::NakCode;

constexpr engine::Duration kTimeout = ack_timeout(14);

void add_rules(Bench& bench, const std::string& text) {
  bench.step(engine::AddRules{scenario::parse_rule(text)});
}

Expected fired() {
  return Expected("a rule that acts", [](const engine::Output& output) {
    return std::holds_alternative<engine::RuleFired>(output) ? "" : "it is something else";
  });
}

uint32_t status(WcStatus value) {
  return static_cast<uint32_t>(value);
}

// ---- Frames on their way ------------------------------------------------------------------------

TEST(FrameFault, DropLosesTheFrameAndItIsSentAgain) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 1, do: drop}");
  s.at(0ms).app_posts_send(1).expect({fired()});
  s.at(kTimeout).expect({send_only(psn(0))});
  s.at(100ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, DropLosesWhatComesFromOutside) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: outside, opcode: ACK, count: 1, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({fired()});
  s.at(2ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(FrameFault, WhatIsDelayedOnItsWayFromOutsideIsStillFromOutside) {
  ScriptOptions options;
  options.outside = true;
  Script s(options);
  add_rules(s.bench(), "{on: frame, from: outside, do: {delay: 5ms}}");
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0)).from(s.device_ip())).expect({fired()});
  s.at(5ms).expect_silence().expect_counter(Counter::kDroppedWrongSource, 1);
}

TEST(FrameFault, AFrameFromOutsideIsDisturbedWithTheIdentificationThatWasFound) {
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

TEST(FrameFault, DelayKeepsTheFrameThatLong) {
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

TEST(FrameFault, ReorderLetsSoManyOvertake) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: {reorder: 2}}");
  s.at(0ms).app_posts_send(1, 4096).expect(
      {fired(), send_middle(psn(1)), send_middle(psn(2)), send_first(psn(0)), send_last(psn(3))});
  s.at(6ms).wire_delivers(ack(psn(3))).expect({completion(1)});
}

TEST(FrameFault, WhatNobodyOvertakesComesInTheEnd) {
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
  // 1082 bytes of frame and 24 of Ethernet are 8.848 us each.
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

TEST(Trigger, CountsEachFlowByItself) {
  Pair pair;  // both directions are flows of their own
  add_rules(pair.bench, "{name: r, on: frame, opcode: SEND, nth: 1, do: drop}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_recv({.wr_id = 1, .sges = {pair.left.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.right.post_send({.wr_id = 2, .sges = {pair.right.send_sge(64)}});
  EXPECT_TRUE(pair.take_left().empty());
  EXPECT_TRUE(pair.take_right().empty());
  const auto report = pair.bench.engine().rule_reports();
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].name, "r");
  EXPECT_EQ(report[0].matched, 2u);
  EXPECT_EQ(report[0].fired, 2u);
}

TEST(Process, IsSelectedByProgramAndNumber) {
  Pair pair;
  pair.bench.step(engine::NameProcess{pair.left.client.id(), "peer", 1});
  pair.bench.step(engine::NameProcess{pair.right.client.id(), "peer", 2});
  add_rules(pair.bench, "{name: second, on: frame, opcode: SEND, process: peer#2, do: drop}");
  add_rules(pair.bench, "{name: any, on: frame, opcode: SEND, process: peer, do: duplicate}");
  add_rules(pair.bench, "{name: other, on: frame, opcode: SEND, process: other, do: drop}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_recv({.wr_id = 1, .sges = {pair.left.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.right.post_send({.wr_id = 2, .sges = {pair.right.send_sge(64)}});
  const auto report = pair.bench.engine().rule_reports();
  ASSERT_EQ(report.size(), 3u);
  EXPECT_EQ(report[0].fired, 1u);
  EXPECT_EQ(report[1].fired, 2u);
  EXPECT_EQ(report[2].fired, 0u);
}

TEST(Process, IsKilledByTheRuleThatItMeets) {
  Pair pair;
  pair.bench.step(engine::NameProcess{pair.left.client.id(), "peer", 1});
  add_rules(pair.bench, "{on: work_request, process: peer#1, nth: 1, do: kill}");
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  const auto killed = std::ranges::find_if(pair.bench.log, [](const Timed& one) {
    return std::holds_alternative<engine::KillProcess>(one.output);
  });
  ASSERT_NE(killed, pair.bench.log.end());
  EXPECT_EQ(std::get<engine::ClientId>(std::get<engine::KillProcess>(killed->output).of),
            pair.left.client.id());
}

TEST(Pause, OfARuleHoldsWhatHasNotArrived) {
  Pair pair;
  add_rules(pair.bench, "{on: frame, opcode: SEND, nth: 1, total: 1, do: pause}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  EXPECT_TRUE(pair.bench.engine().paused());
  EXPECT_TRUE(pair.bench.engine().has_frames_under_way());
  EXPECT_FALSE(pair.bench.engine().next_deadline().has_value());
  pair.bench.step(engine::Pause{false});
  EXPECT_FALSE(pair.bench.engine().paused());
  pair.bench.step(engine::Tick{});
  EXPECT_FALSE(pair.bench.engine().has_frames_under_way());
}

TEST(Trigger, ABurstIsOfThoseThatFollow) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 2, burst: 2, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.app_posts_send(2).expect({fired()});
  s.app_posts_send(3).expect({fired()});
  s.app_posts_send(4).expect({send_only(psn(3))});
}

TEST(Trigger, AfterATimeCountsFromThenOn) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 1, after: 5ms, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(5ms).app_posts_send(2).expect({fired()});
  s.app_posts_send(3).expect({send_only(psn(2))});
}

TEST(Trigger, LoggingDoesNothingElse) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, do: log}");
  s.at(0ms).app_posts_send(1).expect({fired(), send_only(psn(0))});
}

TEST(LinkFault, JitterIsUpToSoMuch) {
  Script s;
  add_rules(s.bench(), "{on: link, from: dut, do: {latency: 100us, jitter: 50us}}");
  s.at(0ms).app_posts_send(1);
  s.at(100us).expect_silence();
  s.at(102527ns).expect({send_only(psn(0))});  // by chance, of the script's seed
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

TEST(Trigger, TotalIsAcrossAllFlows) {
  Pair pair;
  add_rules(pair.bench, "{on: frame, opcode: SEND, total: 1, do: drop}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_recv({.wr_id = 1, .sges = {pair.left.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.right.post_send({.wr_id = 2, .sges = {pair.right.send_sge(64)}});
  EXPECT_TRUE(pair.take_right().size() == 1u);  // its own send
  EXPECT_TRUE(pair.take_left().size() == 1u);   // and what it received
}

// Chance is drawn from a stream of the flow's own.
TEST(Trigger, NoFlowsTrafficChangesAnothersChance) {
  const auto drops_of_first_flow = [](uint32_t frames_of_others) {
    engine::faults::RuleMatcher faults(7, {"rocemu0"});
    faults.add(*scenario::parse_rule("{on: frame, probability: 0.5, do: drop}"));
    engine::faults::Occurrence frame{.where = engine::faults::Where::kFrame,
                                     .flow = {},
                                     .device = engine::DeviceIndex{0},
                                     .to = {}};
    std::vector<bool> drops;
    for (uint32_t i = 0; i < 64; ++i) {
      frame.flow = {engine::faults::Flow::Kind::kQp, 0, 1};
      drops.push_back(!faults.act(frame, {}).empty());
      frame.flow = {engine::faults::Flow::Kind::kQp, 0, 2};
      for (uint32_t j = 0; j < frames_of_others; ++j) faults.act(frame, {});
    }
    return drops;
  };
  const auto alone = drops_of_first_flow(0);
  EXPECT_EQ(alone, drops_of_first_flow(3));
  EXPECT_GT(std::ranges::count(alone, true), 16);
  EXPECT_LT(std::ranges::count(alone, true), 48);
}

TEST(Trigger, ALaterRuleDoesNotChangeAnEarliersChance) {
  const auto drops = [](bool with_other) {
    engine::faults::RuleMatcher faults(7, {"rocemu0"});
    if (with_other) faults.add(*scenario::parse_rule("{on: frame, probability: 0.5, do: drop}"));
    faults.add(*scenario::parse_rule("{name: r, on: frame, probability: 0.5, do: drop}"));
    std::vector<uint64_t> fired;
    for (uint32_t i = 0; i < 64; ++i) {
      faults.act({.where = engine::faults::Where::kFrame, .flow = {}, .device = {}, .to = {}}, {});
      fired.push_back(faults.report().back().fired);
    }
    return fired;
  };
  EXPECT_EQ(drops(false), drops(true));
}

// ---- The responder ------------------------------------------------------------------------------

TEST(RequestFault, RnrIsAnsweredSoOftenAndThenNoMore) {
  Script s;
  add_rules(s.bench(), "{on: request, opcode: SEND, count: 2, do: {rnr: 12}}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired(), rnr_nak(psn(0), 12)});
  s.at(2ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired(), rnr_nak(psn(0), 12)});
  s.at(3ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({received(1), ack(psn(0)).with_msn(1)});
}

TEST(RequestFault, ANakForGoodFailsBothSides) {
  Script s;
  add_rules(s.bench(), "{on: request, do: {nak: remote_operational_error}}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({fired(), nak(psn(0), NakCode::kRemoteOperationalError),
               event(EventType::kQpAccessErr, Endpoint::kQpHandle),
               received(1).status(WcStatus::kWrFlushErr)});
  s.expect_state(QpState::kErr);
}

TEST(RequestFault, SilenceIsNoAnswer) {
  Script s;
  add_rules(s.bench(), "{on: request, message: 1, count: 1, do: silent}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired()});
  s.at(2ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({received(1), ack(psn(0)).with_msn(1)});
}

// ---- Work requests and completions --------------------------------------------------------------

TEST(WorkRequestFault, FailsWithoutHavingBeenSent) {
  Script s;
  add_rules(s.bench(), "{on: work_request, wr_id: 2, do: {status: LOC_PROT_ERR, vendor_err: 77}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), fired()});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1),
               completion(2).status(WcStatus::kLocProtErr).vendor(static_cast<VendorError>(77)),
               completion(3).status(WcStatus::kWrFlushErr)});
  s.expect_state(QpState::kErr);
}

// A rule is asked once for each work request, however often what is before it is sent again.
TEST(WorkRequestFault, OutlastsARetransmission) {
  Script s;
  add_rules(s.bench(), "{on: work_request, nth: 2, do: {status: FATAL_ERR}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), fired()});
  s.at(kTimeout).expect({send_only(psn(0))});
  s.at(kTimeout + 1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1), completion(2).status(WcStatus::kFatalErr)});
}

TEST(CompletionFault, EveryStatusCanBeHad) {
  for (uint32_t value = 1; value <= status(WcStatus::kTmRndvIncomplete); ++value) {
    SCOPED_TRACE(to_string(static_cast<WcStatus>(value)));
    engine::faults::RuleSet set = *scenario::parse_rule(
        "{on: completion, queue: send, do: {status: GENERAL_ERR, vendor_err: 5}}");
    set.rules[0].effects.status = static_cast<WcStatus>(value);
    Script s;
    s.bench().step(engine::AddRules{std::make_shared<const engine::faults::RuleSet>(set)});
    s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
    s.at(1ms)
        .wire_delivers(ack(psn(1)))
        .expect({fired(), completion(1).status(static_cast<WcStatus>(value)),
                 completion(2).status(WcStatus::kWrFlushErr)});
    s.expect_state(QpState::kErr);
  }
}

// IBTA vol 1, 10.3.1.5: in the error state work requests complete as flushed in error. They are the
// failure's consequence, not what the rule is for: it neither changes nor counts them.
TEST(CompletionFault, WithAStatusLeavesTheFlushThatFollowsAlone) {
  for (const char* when : {"", "every: 1, ", "nth: 1-, ", "probability: 1, ", "total: 9, "}) {
    SCOPED_TRACE(when);
    Script s;
    add_rules(s.bench(), std::string("{name: r, on: completion, ") + when +
                             "do: {status: REM_ABORT_ERR, vendor_err: 5}}");
    s.at(0ms).app_posts_recv(7).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
        {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
    s.at(1ms)
        .wire_delivers(ack(psn(1)))
        .expect({fired(), completion(1).status(WcStatus::kRemAbortErr),
                 completion(2).status(WcStatus::kWrFlushErr),
                 completion(3).status(WcStatus::kWrFlushErr),
                 received(7).status(WcStatus::kWrFlushErr)});
    EXPECT_EQ(s.bench().engine().rule_reports()[0].matched, 1u);
  }
}

TEST(CompletionFault, ForWrFlushErrIsForTheFlush) {
  Script s;
  add_rules(s.bench(), "{on: completion, status: WR_FLUSH_ERR, nth: 2, do: {status: GENERAL_ERR}}");
  add_rules(s.bench(), "{name: f, on: completion, do: {status: REM_ABORT_ERR}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), completion(1).status(WcStatus::kRemAbortErr),
               completion(2).status(WcStatus::kWrFlushErr), fired(),
               completion(3).status(WcStatus::kGeneralErr)});
}

TEST(CompletionFault, ThatRaisesAnEventThatFailsTheQpDoesSoOnce) {
  Script s;
  add_rules(s.bench(), "{on: completion, do: {raise: QP_FATAL}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), event(EventType::kQpFatal, Endpoint::kQpHandle), completion(1),
               completion(2).status(WcStatus::kWrFlushErr)});
}

TEST(CompletionFault, AReceiveFailsWithItsQp) {
  Script s;
  add_rules(s.bench(), "{on: completion, queue: recv, nth: 1, do: {status: LOC_LEN_ERR}}");
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({fired(), received(1).status(WcStatus::kLocLenErr),
               received(2).status(WcStatus::kWrFlushErr), ack(psn(0)).with_msn(1)});
  s.expect_state(QpState::kErr);
}

TEST(CompletionFault, AnUnsignalledSuccessCanFail) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {status: REM_ABORT_ERR}}");
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = 0, .sges = {s.app().send_sge(8)}})
      .expect({send_only(psn(0))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), completion(1).status(WcStatus::kRemAbortErr)});
}

// The pool that the frames belong to goes last.
TEST(FrameFault, ANicMayEndWhileFramesAreDelayed) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, do: {delay: 1s}}");
  s.at(0ms).app_posts_send(1, 4096).app_posts_send(2, 4096);
  s.bench().log.clear();
}

TEST(CompletionFault, DelayKeepsTheOrderOfTheCq) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {delay: 4ms}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({fired()});
  s.at(5ms).expect({completion(1), completion(2)});
}

TEST(CompletionFault, HoldWaitsUntilSoManyAreThere) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {hold: 3}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({fired()});
  s.at(9ms).wire_delivers(ack(psn(2))).expect({completion(1), completion(2), completion(3)});
}

TEST(CompletionFault, OverrunFailsTheCqAndItsQps) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 2, do: overrun}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms)
      .wire_delivers(ack(psn(1)))
      .expect({completion(1), fired(), cq_failed(),
               event(EventType::kCqErr, Endpoint::kSendCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle)});
  s.expect_state(QpState::kErr);
}

// As when the CQ is full: nobody has received the message, and so it is not acknowledged.
TEST(CompletionFault, AnOverrunLeavesItsMessageUnacknowledged) {
  Script s;
  add_rules(s.bench(), "{on: completion, queue: recv, nth: 2, do: overrun}");
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1)))
      .expect({fired(), cq_failed(), event(EventType::kCqErr, Endpoint::kRecvCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle)});
  s.expect_state(QpState::kErr);
}

// ---- Events, calls, and what happens by the way
// --------------------------------------------------

TEST(EventFault, EveryEventCanBeRaisedAtOnce) {
  for (uint32_t value = 0; value <= static_cast<uint32_t>(EventType::kWqFatal); ++value) {
    SCOPED_TRACE(to_string(static_cast<EventType>(value)));
    engine::faults::RuleSet set =
        *scenario::parse_rule("{on: now, device: dut, do: {raise: COMM_EST}}");
    set.rules[0].effects.raise = static_cast<EventType>(value);
    ScriptOptions options;
    options.srq_wr = 4;
    Script s(options);
    const size_t before = s.bench().log.size();
    s.bench().step(engine::AddRules{std::make_shared<const engine::faults::RuleSet>(set)});
    bool raised = false;
    for (size_t i = before; i < s.bench().log.size(); ++i) {
      const auto* event = std::get_if<engine::AsyncEvent>(&s.bench().log[i].output);
      raised |= event != nullptr && static_cast<uint32_t>(event->type) == value;
    }
    EXPECT_TRUE(raised);
    s.bench().log.clear();
  }
}

TEST(EventFault, AnEventCanBecomeAnotherOrNone) {
  for (const char* what : {"{on: event, event: PORT_ERR, do: {event: LID_CHANGE}}",
                           "{on: event, event: PORT_ERR, do: drop}"}) {
    Script s;
    add_rules(s.bench(), what);
    s.bench().step(engine::SetPort{engine::DeviceIndex{0}, false});
    const bool lost = std::string(what).ends_with("drop}");
    s.expect_list(lost ? std::vector<Expected>{fired()}
                       : std::vector<Expected>{fired(), event(EventType::kLidChange, 1)});
  }
}

TEST(VerbFault, TheNthCallFails) {
  Bench bench(engine::default_fabric(1));
  add_rules(bench, "{on: verb, verb: alloc_pd, nth: 2, do: {errno: ENOMEM}}");
  Client client(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  EXPECT_NE(client.alloc_pd(), 0u);
  EXPECT_EQ(client.alloc_pd(), 0u);
  EXPECT_NE(client.alloc_pd(), 0u);
  bench.log.clear();
}

// Each context is a flow: with nth its first call is 1, with nth_total that of all of them.
TEST(VerbFault, NthOfAllContextsFails) {
  Bench bench(engine::default_fabric(1));
  add_rules(bench, "{on: verb, verb: alloc_pd, nth_total: 3, do: {errno: ENOMEM}}");
  Client one(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  Client other(bench, engine::ClientId{2}, engine::DeviceIndex{0});
  EXPECT_NE(one.alloc_pd(), 0u);
  EXPECT_NE(other.alloc_pd(), 0u);
  EXPECT_EQ(other.alloc_pd(), 0u);
  EXPECT_NE(one.alloc_pd(), 0u);
  bench.log.clear();
}

TEST(VerbFault, WhatClientsDoThemselvesIsAskedForWhileARuleIsThere) {
  Bench bench(engine::default_fabric(1));
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  add_rules(bench, "{name: a, on: verb, verb: alloc_pd, do: {errno: ENOMEM}}");
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  add_rules(bench, "{name: b, on: verb, verb: [post_send, poll_cq], nth: 2, do: {errno: EIO}}");
  EXPECT_EQ(bench.engine().asked_for(),
            abi::asked_for_bit(abi::Op::kPostSend) | abi::asked_for_bit(abi::Op::kPollCq));
  add_rules(bench, "{name: c, on: verb, verb: dealloc_pd, nth: 9, do: {errno: EBUSY}}");
  EXPECT_TRUE((bench.engine().asked_for() & abi::asked_for_bit(abi::Op::kDeallocParentDomain)) !=
              0);
  bench.step(engine::RemoveRules{"c"});
  Client client(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  abi::Request::Body body{};
  EXPECT_EQ(client.command(abi::Op::kPostSend, body).error, 0);
  EXPECT_EQ(client.command(abi::Op::kPollCq, body).error, EIO) << "the rule's second call";
  bench.step(engine::RemoveRules{"b"});
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  bench.log.clear();
}

TEST(Port, GoesDownAtAChosenFrame) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, psn: 0, nth: 1, do: {drop: true, port: down}}");
  s.at(0ms).app_posts_send(1);
  s.expect({fired(), event(EventType::kPortErr, 1), Expected("device changed", [](const auto& o) {
              return std::holds_alternative<engine::DeviceChanged>(o) ? "" : "something else";
            })});
}

}  // namespace
}  // namespace rocemu::test
