// Scenario files: what they mean, and what is said of wrong ones (docs/scenarios.md).
#include "emulator/scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace rocemu::scenario {
namespace {

using namespace std::chrono_literals;
using engine::faults::Answer;
using engine::faults::Range;
using engine::faults::Rule;
using engine::faults::Where;

Rule rule(std::string_view text) {
  return parse_rule(text)->rules.at(0);
}

/// What is said of the text, without the file's name.
std::string error_of(std::string_view text) {
  try {
    parse_scenario(text, "f");
  } catch (const ScenarioError& error) {
    return std::string(error.what()).substr(2);
  }
  return "no error";
}
std::string rule_error(const std::string& keys) {
  return error_of("rules:\n- {" + keys + "}");
}

TEST(Scenario, HasANameADescriptionAndRules) {
  const Scenario scenario = parse_scenario(R"(
name: lost-ack
description: The first ACK is lost.
rules:
  - on: frame
    opcode: ACK
    nth: 1
    do: drop
  - name: slow
    on: link
    from: rocemu0
    do: {latency: 10us, bandwidth: 1Gbit/s, loss: 1%}
)",
                                           "f");
  EXPECT_EQ(scenario.name, "lost-ack");
  EXPECT_EQ(scenario.description, "The first ACK is lost.");
  ASSERT_EQ(scenario.rules->rules.size(), 2u);
  EXPECT_EQ(scenario.rules->rules[0].name, "rule 1");
  EXPECT_TRUE(scenario.rules->rules[0].effects.drop);
  const Rule& slow = scenario.rules->rules[1];
  EXPECT_EQ(slow.name, "slow");
  EXPECT_EQ(slow.effects.latency, 10us);
  EXPECT_EQ(slow.effects.bits_per_second, 1'000'000'000u);
  EXPECT_DOUBLE_EQ(slow.effects.loss, 0.01);
}

TEST(Scenario, WithoutRulesIsOne) {
  EXPECT_TRUE(parse_scenario("rules: []", "f").rules->rules.empty());
  EXPECT_TRUE(parse_scenario("rules:", "f").rules->rules.empty());
}

TEST(Scenario, KeepsItsTextForAJournal) {
  const std::string text = "rules: [{on: frame, do: drop}]";
  EXPECT_EQ(parse_scenario(text, "f").rules->text, text);
  EXPECT_EQ(parse_rule("{on: frame, do: drop}")->rules[0].name, "{on: frame, do: drop}");
}

TEST(Scenario, ReadsRangesInEveryForm) {
  const auto psn = [](const std::string& text) {
    return rule("{on: frame, psn: " + text + ", do: drop}").which.psn;
  };
  EXPECT_THAT(psn("5"), testing::ElementsAre(Range{5, 5}));
  EXPECT_THAT(psn("0x10-0x20"), testing::ElementsAre(Range{16, 32}));
  EXPECT_THAT(psn("7-"), testing::ElementsAre(Range{7, 0xffffff}));
  EXPECT_THAT(psn("[1, 3-4]"), testing::ElementsAre(Range{1, 1}, Range{3, 4}));
}

TEST(Scenario, KnowsOpcodesByGroupAndName) {
  const auto which = [](const std::string& text) {
    return rule("{on: frame, opcode: " + text + ", do: drop}").which;
  };
  EXPECT_EQ(which("SEND").kinds->count(), 8u + 6u + 2u + 8u);
  EXPECT_EQ(which("RC_SEND_FIRST").kinds->count(), 1u);
  EXPECT_TRUE(which("rc-send-first").kinds->test(0x00));
  EXPECT_TRUE(which("[RC_SEND_ONLY, NAK]").answers->test(static_cast<size_t>(Answer::kNak)));
  EXPECT_FALSE(which("NAK").answers->test(static_cast<size_t>(Answer::kAck)));
  EXPECT_EQ(rule("{on: frame, transport: UC, opcode: SEND, do: drop}").which.kinds->count(), 6u);
}

TEST(Scenario, NamesMayHaveTheirHeadersPrefix) {
  EXPECT_EQ(rule("{on: completion, do: {status: IBV_WC_REM_OP_ERR}}").effects.status,
            abi::WcStatus::kRemOpErr);
  EXPECT_EQ(rule("{on: completion, do: {status: rem_op_err}}").effects.status,
            abi::WcStatus::kRemOpErr);
  EXPECT_EQ(rule("{on: verb, verb: ibv_create_qp, do: {errno: ENOMEM}}").effects.error, ENOMEM);
}

TEST(Scenario, ReadsEveryEffectOnFrames) {
  const Rule all = rule(R"({on: frame, do: {delay: 1.5ms, duplicate: 2, reorder: 3,
    corrupt: {bits: [0, 95], random_bits: 4}, rewrite: {psn: -1, opcode: RC_SEND_ONLY},
    inject: {to: sender, opcode: ACK, psn: +100, syndrome: remote_access_error}}})");
  EXPECT_EQ(all.effects.delay, 1500us);
  EXPECT_EQ(all.effects.duplicate, 2u);
  EXPECT_EQ(all.effects.reorder, 3u);
  EXPECT_EQ(all.effects.corrupt->random_bits, 4u);
  ASSERT_EQ(all.effects.rewrite.size(), 2u);
  EXPECT_TRUE(all.effects.rewrite[0].relative);
  ASSERT_EQ(all.effects.inject.size(), 1u);
  EXPECT_TRUE(all.effects.inject[0].to_sender);
  EXPECT_EQ(all.effects.inject[0].changes[2].value, 0x62u);
}

// ---- What is wrong, where, and what would be right ---------------------------------------------

TEST(ScenarioError, NamesLineAndColumn) {
  EXPECT_EQ(error_of("rules:\n  - on: frame\n    do: dorp\n"),
            "3:9: there is no 'dorp' for 'on: frame'; did you mean 'drop'?");
  EXPECT_EQ(error_of("rules:\n  - on: fram\n    do: drop\n"),
            "2:9: there is no place 'fram'; did you mean 'frame'?");
  EXPECT_EQ(error_of("rulez: []"), "1:1: a scenario has no key 'rulez'; did you mean 'rules'?");
}

TEST(ScenarioError, SaysWhatIsAllowed) {
  EXPECT_EQ(rule_error("on: frame, psn: 99999999, do: drop"),
            "2:20: expected a number from 0 to 16777215, a range such as 3-7 or 3-, or a list of "
            "these, found '99999999'");
  EXPECT_EQ(rule_error("on: frame, psn: 7-3, do: drop"),
            "2:20: the range '7-3' ends before it begins");
  EXPECT_EQ(rule_error("on: frame, do: {delay: 5}"),
            "2:27: expected a time such as 250us or 1.5ms (units: ns, us, ms, s, min), found '5'");
  EXPECT_EQ(rule_error("on: frame, probability: 2, do: drop"),
            "2:28: expected a probability from 0 to 1, or 0% to 100%, found '2'");
  EXPECT_EQ(rule_error("on: frame, opcode: SENT, do: drop"),
            "2:23: there is no opcode 'SENT'; did you mean 'SEND'?");
}

TEST(ScenarioError, SaysForWhatAKeyIs) {
  EXPECT_THAT(rule_error("on: verb, psn: 3, do: {errno: EIO}"),
              testing::StartsWith("2:14: 'psn' is not for 'on: verb' but for frame and request"));
  EXPECT_THAT(rule_error("on: frame, do: {errno: EIO}"),
              testing::StartsWith("2:20: 'errno' is not for 'on: frame' but for verb"));
}

TEST(ScenarioError, NeedsAPlaceAndSomethingToDo) {
  EXPECT_THAT(rule_error("do: drop"), testing::StartsWith("2:3: a rule says where it looks"));
  EXPECT_THAT(rule_error("on: frame"), testing::StartsWith("2:3: a rule says what to do"));
  EXPECT_THAT(rule_error("on: frame, do: {}"), testing::HasSubstr("nothing is to be done"));
}

TEST(ScenarioError, FindsContradictions) {
  EXPECT_THAT(rule_error("on: frame, do: {drop: true, delay: 1ms}"),
              testing::HasSubstr("what is dropped"));
  EXPECT_THAT(rule_error("on: request, do: {rnr: true, silent: true}"),
              testing::HasSubstr("one of rnr, nak and silent"));
  EXPECT_THAT(rule_error("on: completion, do: {status: SUCCESS}"),
              testing::HasSubstr("a rule makes failures"));
  EXPECT_THAT(rule_error("on: frame, transport: UD, opcode: READ, do: drop"),
              testing::HasSubstr("no such opcode"));
  EXPECT_THAT(error_of("rules:\n- {name: a, on: frame, do: drop}\n- {name: a, on: cm, do: drop}"),
              testing::StartsWith("3:3: the rule in line 2 is named 'a' too"));
  EXPECT_THAT(rule_error("on: frame, nth: 1, nth: 2, do: drop"),
              testing::HasSubstr("'nth' is there twice"));
}

TEST(ScenarioError, IsSaidOfTextThatIsNoYaml) {
  EXPECT_THAT(error_of("rules: [\n"), testing::HasSubstr("this is no YAML"));
  EXPECT_THAT(error_of("- a\n"), testing::HasSubstr("a scenario is a mapping"));
  EXPECT_THAT(error_of(""), testing::HasSubstr("found nothing"));
  EXPECT_THAT(error_of(std::string(2 << 20, ' ')), testing::HasSubstr("at most 1048576 bytes"));
  EXPECT_THAT(error_of(std::string(100000, '[')), testing::Not("no error"));
}

TEST(ScenarioError, IsSaidOfDevicesThatThereAreNot) {
  const std::vector<std::string> devices{"rocemu0", "rocemu1"};
  EXPECT_NO_THROW(check_devices(*parse_rule("{on: frame, from: rocemu1, do: drop}"), devices, "f"));
  EXPECT_NO_THROW(check_devices(*parse_rule("{on: frame, to: outside, do: drop}"), devices, "f"));
  EXPECT_THROW(check_devices(*parse_rule("{on: frame, from: mlx5_0, do: drop}"), devices, "f"),
               ScenarioError);
}

}  // namespace
}  // namespace rocemu::scenario
