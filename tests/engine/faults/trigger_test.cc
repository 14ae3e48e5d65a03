// Tests on which of the matching occurrences a rule acts.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/scenario/scenario.h"
#include "tests/engine/faults/rules.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

TEST(Trigger, CountsEachFlowByItself) {
  Pair pair;  // each direction is a separate flow
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

TEST(Trigger, ABurstIncludesTheFollowingFrames) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 2, burst: 2, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.app_posts_send(2).expect({fired()});
  s.app_posts_send(3).expect({fired()});
  s.app_posts_send(4).expect({send_only(psn(3))});
}

TEST(Trigger, AfterATimeCountingBegins) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, nth: 1, after: 5ms, do: drop}");
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(5ms).app_posts_send(2).expect({fired()});
  s.app_posts_send(3).expect({send_only(psn(2))});
}

// docs/scenarios.md, `for`: the time is counted from the first occurrence on which the rule acts.
TEST(Trigger, EndsWhenItsTimeAfterTheFirstActionHasPassed) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, for: 5ms, do: log}");
  s.at(1ms).app_posts_send(1).expect({fired(), send_only(psn(0))});
  s.at(1ms + 5ms - 1ns).app_posts_send(2).expect({fired(), send_only(psn(1))});
  s.at(1ms + 5ms).app_posts_send(3).expect({send_only(psn(2))});
}

TEST(Trigger, LoggingHasNoOtherEffect) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, opcode: SEND, do: log}");
  s.at(0ms).app_posts_send(1).expect({fired(), send_only(psn(0))});
}

TEST(Trigger, TotalIsAcrossAllFlows) {
  Pair pair;
  add_rules(pair.bench, "{on: frame, opcode: SEND, total: 1, do: drop}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_recv({.wr_id = 1, .sges = {pair.left.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.right.post_send({.wr_id = 2, .sges = {pair.right.send_sge(64)}});
  EXPECT_TRUE(pair.take_right().size() == 1u);  // its own send
  EXPECT_TRUE(pair.take_left().size() == 1u);   // the completion of its receive
}

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

}  // namespace
}  // namespace rocemu::test
