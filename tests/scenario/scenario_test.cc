// Tests the meaning of scenario files, and the messages about wrong files (docs/scenarios.md).
#include "emulator/scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

/// Returns all messages about the text, one per line, without the name of the file and the quoted
/// lines.
std::string error_of(std::string_view text) {
  try {
    parse_scenario(text, "f");
  } catch (const ScenarioError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("f:"));
    std::string lines;
    for (const Problem& problem : error.problems()) {
      if (!lines.empty()) lines += '\n';
      const auto [line, column] = problem.location;
      if (line != 0) lines += std::to_string(line) + ":" + std::to_string(column) + ": ";
      lines += problem.message;
    }
    return lines;
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

TEST(Scenario, CanHaveNoRules) {
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

// ---- Messages: the error, its place, and the correction ----------------------------------------

TEST(ScenarioError, NamesLineAndColumn) {
  EXPECT_EQ(error_of("rules:\n  - on: frame\n    do: dorp\n"),
            "3:9: there is no 'dorp' for 'on: frame'; did you mean 'drop'?");
  EXPECT_EQ(error_of("rules:\n  - on: fram\n    do: drop\n"),
            "2:9: there is no place 'fram'; did you mean 'frame'?");
  EXPECT_EQ(error_of("rulez: []"), "1:1: a scenario has no key 'rulez'; did you mean 'rules'?");
}

TEST(ScenarioError, ListsTheAllowedValues) {
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

TEST(ScenarioError, SaysWhereAKeyIsAllowed) {
  EXPECT_THAT(rule_error("on: verb, psn: 3, do: {errno: EIO}"),
              testing::StartsWith(
                  "2:14: 'psn' cannot be used with 'on: verb', only with frame and request"));
  EXPECT_THAT(rule_error("on: frame, do: {errno: EIO}"),
              testing::StartsWith("2:20: 'errno' cannot be used with 'on: frame', only with verb"));
}

TEST(ScenarioError, NeedsAPlaceAndSomethingToDo) {
  EXPECT_THAT(rule_error("do: drop"), testing::StartsWith("2:3: a rule needs a place"));
  EXPECT_THAT(rule_error("on: frame"), testing::StartsWith("2:3: a rule needs an effect"));
  EXPECT_THAT(rule_error("on: frame, do: {}"), testing::HasSubstr("'do' is empty"));
}

TEST(ScenarioError, FindsContradictions) {
  EXPECT_THAT(rule_error("on: frame, do: {drop: true, delay: 1ms}"),
              testing::HasSubstr("a dropped object"));
  EXPECT_THAT(rule_error("on: request, do: {rnr: true, silent: true}"),
              testing::HasSubstr("one of rnr, nak and silent"));
  EXPECT_THAT(rule_error("on: completion, do: {status: SUCCESS}"),
              testing::HasSubstr("a rule can only make work requests fail"));
  EXPECT_THAT(rule_error("on: frame, transport: UD, opcode: READ, do: drop"),
              testing::HasSubstr("none of the rule's opcodes"));
  EXPECT_THAT(error_of("rules:\n- {name: a, on: frame, do: drop}\n- {name: a, on: cm, do: drop}"),
              testing::StartsWith("3:3: the rule in line 2 is named 'a' too"));
  EXPECT_THAT(rule_error("on: frame, nth: 1, nth: 2, do: drop"),
              testing::HasSubstr("'nth' is given twice"));
}

TEST(ScenarioError, IsSaidOfTextThatIsNoYaml) {
  EXPECT_THAT(error_of("rules: [\n"), testing::HasSubstr("this is not YAML"));
  EXPECT_THAT(error_of("- a\n"), testing::HasSubstr("a scenario must be a mapping"));
  EXPECT_THAT(error_of(""), testing::HasSubstr("found nothing"));
  EXPECT_THAT(error_of(std::string(2 << 20, ' ')), testing::HasSubstr("at most 1048576 bytes"));
  EXPECT_THAT(error_of(std::string(100000, '[')), testing::Not("no error"));
}

TEST(ScenarioError, IsSaidOfAllMistakesEachWithItsLine) {
  const std::string text = R"(name: [a]
rules:
  - on: frame
    opcode: [SEND, SENT]   # ü
    nth: 0
    do: dorp
  - {on: fram, do: drop}
  - just text
  - {on: completion, do: {status: FATAL_ER, vendor_err: -1}}
  - {name: "ü", on: fram, do: drop}
)";
  try {
    parse_scenario(text, "f.yaml");
    FAIL();
  } catch (const ScenarioError& error) {
    EXPECT_STREQ(error.what(), R"(f.yaml:1:7: expected a text, found a list
    name: [a]
          ^
f.yaml:4:20: there is no opcode 'SENT'; did you mean 'SEND'?
        opcode: [SEND, SENT]   # ü
                       ^
f.yaml:5:10: expected a number from 1 to 18446744073709551615, a range such as 3-7 or 3-, or a list of these, found '0'
        nth: 0
             ^
f.yaml:6:9: there is no 'dorp' for 'on: frame'; did you mean 'drop'?
        do: dorp
            ^
f.yaml:7:10: there is no place 'fram'; did you mean 'frame'?
      - {on: fram, do: drop}
             ^
f.yaml:8:5: expected a rule such as {on: frame, opcode: ACK, do: drop}, found 'just text'
      - just text
        ^
f.yaml:9:35: there is no completion status 'FATAL_ER'; did you mean 'FATAL_ERR'?
      - {on: completion, do: {status: FATAL_ER, vendor_err: -1}}
                                      ^
f.yaml:9:57: expected a number from 0 to 4294967295, found '-1'
      - {on: completion, do: {status: FATAL_ER, vendor_err: -1}}
                                                            ^
f.yaml:10:21: there is no place 'fram'; did you mean 'frame'?
      - {name: "ü", on: fram, do: drop}
                        ^)");
  }
}

TEST(ScenarioError, EndsAfterAHundredMistakes) {
  std::string text = "rules:\n";
  for (int i = 0; i < 9000; ++i) text += "- {on: frame, nth: x, do: drop}\n";
  try {
    parse_scenario(text, "f");
    FAIL();
  } catch (const ScenarioError& error) {
    EXPECT_EQ(error.problems().size(), 100u);
    EXPECT_THAT(error.what(), testing::EndsWith("\nf: there may be more errors"));
  }
}

TEST(ScenarioError, RefusesValuesThatAreWiderThanTheirField) {
  const std::pair<const char*, uint64_t> kFields[] = {
      {"opcode", 0xff},     {"solicited", 1},
      {"mig_req", 1},       {"tver", 0xf},
      {"pkey", 0xffff},     {"fecn", 1},
      {"becn", 1},          {"dest_qp", 0xffffff},
      {"ack_req", 1},       {"psn", 0xffffff},
      {"rkey", 0xffffffff}, {"dma_length", 0xffffffff},
      {"syndrome", 0xff},   {"msn", 0xffffff},
      {"qkey", 0xffffffff}, {"src_qp", 0xffffff},
      {"imm", 0xffffffff},  {"inv_rkey", 0xffffffff},
      {"srq", 0xffffff},    {"traffic_class", 0xff},
      {"hop_limit", 0xff},  {"udp_src_port", 0xffff}};
  for (const auto& [field, most] : kFields) {
    for (const std::string change : {"rewrite: {", "inject: {to: sender, "}) {
      for (const std::string sign : {"", "+", "-"}) {
        if (!sign.empty() && std::string(field) == "syndrome") continue;
        const std::string start = "on: frame, do: {" + change + field + ": " + sign;
        const auto error = [&start](uint64_t value) {
          return rule_error(start + std::to_string(value) + "}}");
        };
        EXPECT_EQ(error(most), "no error") << field;
        EXPECT_THAT(error(most + 1), testing::HasSubstr("found '" + sign)) << field;
      }
    }
  }
  EXPECT_EQ(rule_error("on: frame, do: {rewrite: {va: 0xffffffffffffffff}}"), "no error");
  EXPECT_THAT(rule_error("on: frame, do: {rewrite: {va: 0x10000000000000000}}"),
              testing::HasSubstr("va must be a number from 0 to 18446744073709551615"));
  EXPECT_THAT(rule_error("on: frame, do: {rewrite: {psn: true}}"), testing::HasSubstr("'true'"));
  EXPECT_THAT(rule_error("on: frame, size: 4097, do: drop"), testing::HasSubstr("0 to 4096"));
  EXPECT_THAT(rule_error("on: completion, size: 2147483649, do: drop"),
              testing::HasSubstr("0 to 2147483648"));
}

TEST(ScenarioError, RefusesSecondDocumentsRepeatedKeysAndAnchors) {
  EXPECT_EQ(error_of("rules: []\n---\nrules: []\n"),
            "2:1: the line begins a second YAML document, but a scenario has only one; "
            "remove the line '---'");
  EXPECT_EQ(error_of("---\nrules: []\n...\n"), "no error");
  EXPECT_EQ(error_of("rules: []\nname: a\nrules: []\n"),
            "3:1: 'rules' is given twice, first in line 1");
  EXPECT_EQ(rule_error("on: frame, do: drop, on: frame"),
            "2:25: 'on' is given twice, first in line 2");
  EXPECT_EQ(rule_error("on: frame, do: {rewrite: {psn: 1, psn: 2}}"),
            "2:38: 'psn' is given twice, first in line 2");
  EXPECT_EQ(rule_error("on: frame, do: [{delay: 1ms}, duplicate, {delay: 2ms}]"),
            "2:46: 'delay' is given twice");
  EXPECT_EQ(rule_error("on: frame, do: [reorder, reorder]"), "2:29: 'reorder' is given twice");
  EXPECT_EQ(error_of("rules:\n- &a {on: frame, do: drop}\n- *a\n"),
            "2:3: anchors ('&') are not allowed: write out the value\n3:3: aliases ('*') are not "
            "allowed: write out the value");
  EXPECT_EQ(rule_error("<<: {on: frame}, on: cm, do: drop"),
            "2:4: merge keys ('<<') are not allowed: write out the keys");
  EXPECT_EQ(rule_error("on: !!str frame, do: drop"),
            "2:8: tags ('tag:yaml.org,2002:str') are not allowed");
  EXPECT_EQ(rule_error("on: 'frame', do: \"drop\""), "no error");
}

TEST(ScenarioError, NamesTabs) {
  EXPECT_EQ(error_of("rules:\n\t- {on: frame, do: drop}\n"),
            "2:1: the indentation has a tab; YAML needs spaces");
  EXPECT_EQ(error_of("rules:\n  - on: frame\n\tdo: drop\n"),
            "3:1: the indentation has a tab; YAML needs spaces");
  try {
    parse_scenario("rules: [{on: \"fr\tame\", do: drop}]", "f");
    FAIL();
  } catch (const ScenarioError& error) {
    EXPECT_STREQ(error.what(),
                 "f:1:14: there is no place 'fr\\tame'; did you mean 'frame'?\n"
                 "    rules: [{on: \"fr\tame\", do: drop}]\n"
                 "                 ^");
  }
}

TEST(ScenarioError, IsSaidOfEveryTextWhateverItIs) {
  EXPECT_THAT(error_of("# only\n# comments\n"), testing::HasSubstr("found nothing"));
  EXPECT_THAT(error_of(std::string(10 << 20, '#')), testing::HasSubstr("at most 1048576 bytes"));
  EXPECT_THAT(error_of("rules: [{on: frame, do: drop}]\n\x04\n"),
              testing::StartsWith("2:1: the control"));
  EXPECT_THAT(error_of(std::string("rules: []\n\0", 11)), testing::StartsWith("2:1: the control"));
  EXPECT_THAT(error_of("name: \xff\nrules: []"),
              testing::StartsWith("1:7: the byte 0xff is not UTF-8"));
  EXPECT_THAT(error_of("\xff\xfer\0u\0"), testing::HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of("rules:\r- {}"), testing::HasSubstr("control character 0x0d"));
  for (const char* piece :
       {"[", "{a: ", "- ", "? ", "{? ", "[{", "'", "\"", "&a ", "*a ", "|\n ", "%\n"}) {
    std::string text;
    while (text.size() < 500'000) text += piece;
    EXPECT_NE(error_of(text), "no error") << piece;
  }
}

TEST(Scenario, CanHaveTheLineEndsOfWindows) {
  const Scenario scenario = parse_scenario(
      "\xef\xbb\xbfname: a\r\nrules:\r\n  - {name: b, on: frame, do: drop}\r\n", "f");
  EXPECT_EQ(scenario.name, "a");
  EXPECT_EQ(scenario.rules->rules[0].name, "b");
  EXPECT_EQ(error_of("\xef\xbb\xbfnam: a\r\nrules:\r\n"),
            "1:1: a scenario has no key 'nam'; did you mean 'name'?");
}

// YAML 1.1 has numbers and booleans that YAML 1.2 does not have; a value whose type is unclear is
// refused.
TEST(ScenarioError, TakesNoNumberForAnother) {
  for (const char* number :
       {"0777", "00", "0o17", "1_000", "1e3", "+5", "-1", "-0", "1.0", ".5", "0x",
        "18446744073709551616", "nan", ".inf", "~", "''", "yes", "0b1"}) {
    EXPECT_THAT(rule_error(std::string("on: frame, count: ") + number + ", do: drop"),
                testing::StartsWith("2:22: expected a number from 1 to 18446744073709551615"))
        << number;
  }
  EXPECT_EQ(rule_error("on: frame, count: 18446744073709551615, do: drop"), "no error");
  for (const char* time : {"5", "1 hour", "-1ms", "nanms", "infs", "1e3ms", "0ms", "0.1ns",
                           "1ms ago", "99999999999999999999s", "1,5ms", "ms", "1MS"}) {
    EXPECT_NE(rule_error(std::string("on: frame, do: {delay: ") + time + "}"), "no error") << time;
  }
  for (const char* chance : {"-1", "1.5", "101%", "nan", "1e-3", "half", "0.5.5"}) {
    EXPECT_NE(rule_error(std::string("on: frame, probability: ") + chance + ", do: drop"),
              "no error")
        << chance;
  }
  for (const char* flag : {"no", "off", "false", "0", "1", "y", "n", "~"}) {
    EXPECT_NE(rule_error(std::string("on: frame, do: {drop: ") + flag + "}"), "no error") << flag;
  }
}

TEST(ScenarioError, RefusesErrnosAndStatusesThatCannotBe) {
  for (const char* error : {"0", "41", "58", "134", "512", "4095", "EDROP", "-5", "SUCCESS"}) {
    EXPECT_NE(rule_error(std::string("on: verb, do: {errno: ") + error + "}"), "no error") << error;
  }
  EXPECT_EQ(rule("{on: verb, do: {errno: 133}}").effects.error, EHWPOISON);
  EXPECT_EQ(rule("{on: verb, do: {errno: EPIPE}}").effects.error, EPIPE);
  EXPECT_EQ(rule("{on: verb, do: {errno: ENOTSUP}}").effects.error, EOPNOTSUPP);
  const auto cm = [](const std::string& event, const std::string& status) {
    return rule_error("on: cm_event, event: ADDR_RESOLVED, do: {event: " + event +
                      ", status: " + status + "}");
  };
  EXPECT_EQ(cm("ADDR_ERROR", "-ETIMEDOUT"), "no error");
  EXPECT_EQ(cm("ADDR_ERROR", "-110"), "no error");
  EXPECT_EQ(cm("REJECTED", "28"), "no error");
  EXPECT_EQ(cm("REJECTED", "CONSUMER"), "no error");
  EXPECT_THAT(cm("ADDR_ERROR", "110"),
              testing::HasSubstr("is a reject reason, which only REJECTED has"));
  EXPECT_NE(cm("ADDR_ERROR", "-512"), "no error");
  EXPECT_NE(cm("REJECTED", "65536"), "no error");
  EXPECT_EQ(cm("USER", "-5"), "no error");
  EXPECT_THAT(cm("INTERNAL", "0"), testing::HasSubstr("librdmacm itself generates INTERNAL"));
  EXPECT_THAT(rule_error("on: cm_event, do: {raise_cm: ADDRINFO_RESOLVED}"),
              testing::HasSubstr("librdmacm itself generates ADDRINFO_RESOLVED"));
  EXPECT_EQ(rule_error("on: event, event: QP_FATAL, do: {event: COMM_EST}"), "no error");
  EXPECT_THAT(rule_error("on: event, event: QP_FATAL, do: {event: CQ_ERR}"),
              testing::HasSubstr("a rule cannot turn an event of one kind"));
  EXPECT_THAT(rule_error("on: event, do: {event: PORT_ERR}"),
              testing::HasSubstr("a rule cannot turn an event of one kind"));
  EXPECT_THAT(rule_error("on: completion, queue: send, opcode: RECV, do: drop"),
              testing::HasSubstr("the rule's queue has none of the rule's opcodes"));
  EXPECT_THAT(rule_error("on: frame, from: a, between: [a, b], do: drop"),
              testing::HasSubstr("between"));
}

std::vector<std::string> warnings_of(const std::string& keys) {
  return parse_scenario("rules:\n- {" + keys + "}", "f").warnings;
}

TEST(ScenarioWarning, IsSaidOfAStatusThatTheOperationNeverHas) {
  EXPECT_THAT(
      warnings_of("on: completion, queue: recv, do: {status: RETRY_EXC_ERR}"),
      testing::ElementsAre("f:2:37: warning: a receive never completes with RETRY_EXC_ERR\n"
                           "    - {on: completion, queue: recv, do: {status: RETRY_EXC_ERR}}\n"
                           "                                        ^"));
  EXPECT_EQ(warnings_of("on: work_request, opcode: SEND, do: {status: MW_BIND_ERR}").size(), 1u);
  EXPECT_EQ(warnings_of("on: work_request, opcode: LOCAL_INV, do: {status: REM_OP_ERR}").size(),
            1u);
  EXPECT_EQ(
      warnings_of("on: completion, opcode: RDMA_READ, do: {status: RNR_RETRY_EXC_ERR}").size(), 1u);
  EXPECT_TRUE(warnings_of("on: work_request, do: {status: MW_BIND_ERR}").empty());
  EXPECT_TRUE(warnings_of("on: completion, queue: recv, do: {status: LOC_LEN_ERR}").empty());
}

TEST(ScenarioWarning, IsSaidOfAnErrnoThatTheManPageDoesNotHave) {
  EXPECT_EQ(warnings_of("on: verb, verb: advise_mr, do: {errno: EBUSY}").size(), 1u);
  EXPECT_EQ(warnings_of("on: verb, verb: next_poll, do: {errno: ENOENT}").size(), 1u);
  EXPECT_TRUE(warnings_of("on: verb, verb: advise_mr, do: {errno: EFAULT}").empty());
  EXPECT_TRUE(warnings_of("on: verb, verb: reg_mr, do: {errno: EBUSY}").empty());
}

TEST(ScenarioWarning, IsNoMistakeHoweverManyThereAre) {
  std::string text = "rules:\n";
  for (int i = 0; i < 300; ++i) {
    text += "- {on: completion, queue: recv, do: {status: REM_OP_ERR}}\n";
  }
  EXPECT_EQ(parse_scenario(text, "f").rules->rules.size(), 300u);
}

// ---- Several files -----------------------------------------------------------------------------

class SeveralScenarios : public testing::Test {
 protected:
  SeveralScenarios() {
    std::string name = testing::TempDir() + "rocemu-scenarios-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~SeveralScenarios() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_ / (name + ".yaml");
    std::ofstream(path) << text;
    return path;
  }
  static std::vector<std::string> names(const engine::faults::RuleSet& set) {
    std::vector<std::string> result;
    for (const Rule& one : set.rules) result.push_back(one.name);
    return result;
  }

 private:
  std::filesystem::path directory_;
};

TEST_F(SeveralScenarios, HaveAllRulesUnderNamesOfTheirOwn) {
  const std::string files[] = {
      file("a", "name: one\nrules:\n- {on: frame, do: drop}\n- {name: lost, on: cm, do: drop}\n"),
      file("b",
           "name: two\nrules:\n- {name: lost, on: cm, do: drop}\n- {name: x, on: cm, do: drop}"),
      file("c", "rules:\n- {on: frame, nth: 9, do: drop}\n")};
  const Scenario all = load_scenarios(files);
  EXPECT_EQ(all.name, "one + two");
  EXPECT_THAT(names(*all.rules),
              testing::ElementsAre("rule 1", "lost", "lost (b)", "x", "rule 1 (c)"));
  const auto again = parse_rules(all.rules->text);  // reads the rules as they are in a journal
  EXPECT_EQ(names(*again), names(*all.rules));
  EXPECT_EQ(again->text, all.rules->text);
  for (size_t length = 0; length < all.rules->text.size(); ++length) {
    try {
      EXPECT_LT(parse_rules(all.rules->text.substr(0, length))->rules.size(), 5u) << length;
    } catch (const ScenarioError&) {
    }
  }
}

TEST_F(SeveralScenarios, CannotContainAFileOrNameTwice) {
  const std::string a = file("a", "rules:\n- {on: frame, do: drop}\n");
  const std::string twice[] = {a, a};
  EXPECT_THROW(load_scenarios(twice), ScenarioError);
  const std::string named[] = {file("x", "name: n\nrules: []\n"),
                               file("y", "name: n\nrules: []\n")};
  try {
    load_scenarios(named);
    FAIL();
  } catch (const ScenarioError& error) {
    EXPECT_EQ(error.what(),
              named[0] + " and " + named[1] + " are both named 'n'; name them differently");
  }
}

TEST(NetworkRule, HasAPlaceATimeAndAChange) {
  const Rule flap =
      rule("{on: network, link: h3-s1, after: 1ms, do: {flap: {down: 50us, up: 2ms, times: 3}}}");
  EXPECT_EQ(flap.where, Where::kNetwork);
  EXPECT_EQ(flap.which.network->name, "h3-s1");
  EXPECT_EQ(flap.which.network->kind, engine::NetworkElement::Kind::kLink);
  EXPECT_EQ(flap.when.after, 1ms);
  EXPECT_EQ(flap.effects.network.flap->down, 50us);
  EXPECT_EQ(flap.effects.network.flap->up, 2ms);
  EXPECT_EQ(flap.effects.network.flap->times, 3u);

  const Rule slow = rule("{on: network, port: 's1:3', for: 1s, do: {bandwidth: 1Gbit/s}}");
  EXPECT_EQ(slow.effects.network.bits_per_second, 1'000'000'000u);
  EXPECT_EQ(slow.effects.bits_per_second, 0u) << "which is of rules for a link between devices";
  EXPECT_EQ(slow.when.lifetime, 1s);

  const Rule also_slow = rule("{on: network, port: 's1:3', do: {bandwidth: 2.5 Gbps}}");
  EXPECT_EQ(also_slow.effects.network.bits_per_second, 2'500'000'000u);
  EXPECT_EQ(rule("{on: link, do: {bandwidth: 100kbps}}").effects.bits_per_second, 100'000u);

  const Rule ecn = rule("{on: network, switch: s1, do: {ecn: {kmin: 1KiB, kmax: 2KiB}}}");
  EXPECT_EQ(ecn.effects.network.ecn->kmin_bytes, 1024u);
  EXPECT_EQ(ecn.effects.network.ecn->kmax_bytes, 2048u);
  EXPECT_EQ(ecn.effects.network.ecn->pmax, 1);
  EXPECT_TRUE(rule("{on: network, switch: s1, do: {ecn: off}}").effects.network.ecn->is_off);
  EXPECT_EQ(rule("{on: network, switch: s1, do: {reboot: 1ms}}").effects.network.outage, 1ms);
  EXPECT_EQ(
      rule("{on: network, host: h1, do: {pause_storm: 5}}").effects.network.pause_storm->priority,
      5);
  EXPECT_FALSE(
      rule("{on: network, host: h1, do: pause_storm}").effects.network.pause_storm->priority);
}

TEST(NetworkRule, NeedsAPartOfTheNetworkThatCanChangeSo) {
  EXPECT_EQ(rule_error("on: network, do: down"),
            "2:21: a rule with on: network must name a part of the network: link: h3-s1, "
            "port: s1:3, switch: s1 or host: h3");
  EXPECT_EQ(rule_error("on: network, switch: s1, do: down"),
            "2:33: 'down' needs a link: link: h3-s1, or port: s1:3 for the link at that "
            "port");
  EXPECT_EQ(rule_error("on: network, link: h3-s1, do: {reboot: 1ms}"),
            "2:34: 'reboot' needs a switch: switch: s1");
  EXPECT_EQ(rule_error("on: network, switch: s1, do: pause_storm"),
            "2:33: 'pause_storm' needs a host: host: h3");
  EXPECT_EQ(rule_error("on: network, link: h3-s1, switch: s1, do: down"),
            "2:38: a rule can name only one of link, port, switch and host");
}

TEST(NetworkRule, RefusesTimesAndThresholdsThatCannotBe) {
  EXPECT_EQ(rule_error("on: network, link: h3-s1, do: {flap: {down: 1ms, times: 2}}"),
            "2:41: a link that goes down several times needs 'up', the time between two "
            "outages");
  EXPECT_EQ(rule_error("on: network, link: h3-s1, do: {flap: {up: 1ms}}"),
            "2:41: 'down' is missing: {down: TIME, up: TIME, times: N}");
  EXPECT_EQ(rule_error("on: network, link: h3-s1, for: 1s, do: {flap: {down: 1ms}}"),
            "2:43: 'for' cannot be combined with flap, which already contains a duration");
  EXPECT_EQ(rule_error("on: network, switch: s1, for: 1s, do: {reboot: 1ms}"),
            "2:42: 'for' cannot be combined with reboot, which already contains a duration");
  EXPECT_EQ(rule_error("on: network, switch: s1, do: {ecn: {kmin: 2KiB, kmax: 1KiB}}"),
            "2:39: kmin must not be above kmax");
  EXPECT_EQ(rule_error("on: network, switch: s1, do: {ecn: {kmin: 2 apples, kmax: 1KiB}}"),
            "2:46: expected a size such as 100KiB (units: B, KB, MB, GB, KiB, MiB, GiB), found '2 "
            "apples'");
  EXPECT_EQ(rule_error("on: network, link: h3-s1, do: {flap: {down: 1ms}, down: true}"),
            "2:34: give either down or flap, not both");
}

// YAML 1.2, 5.7: an escape in double quotes can write any character.
TEST(ScenarioError, RefusesControlCharactersThatEscapesWriteIntoNames) {
  for (const std::string name :
       {R"(\e[31mred)", R"(a\0b)", R"(\x7f)", R"(\x9b)", R"(\N)", R"(\r)", R"(a\tb)", R"(a\nb)"}) {
    EXPECT_THAT(error_of("rules: [{name: \"" + name + "\", on: frame, do: drop}]"),
                testing::HasSubstr("without control characters"))
        << name;
  }
  for (const std::string name : {R"(\xa0)", R"(\xc2\x41)", "\xc3\xa9t\xc3\xa9", R"(a\"b)"})
    EXPECT_EQ(parse_scenario("rules: [{name: \"" + name + "\", on: frame, do: drop}]", "x")
                  .rules->rules.size(),
              1u)
        << name;
}

TEST(ScenarioError, NamesDevicesThatDoNotExist) {
  const std::vector<std::string> devices{"rocemu0", "rocemu1"};
  EXPECT_NO_THROW(check_devices(*parse_rule("{on: frame, from: rocemu1, do: drop}"), devices, "f"));
  EXPECT_NO_THROW(check_devices(*parse_rule("{on: frame, to: outside, do: drop}"), devices, "f"));
  EXPECT_THROW(check_devices(*parse_rule("{on: frame, from: mlx5_0, do: drop}"), devices, "f"),
               ScenarioError);
}

}  // namespace
}  // namespace rocemu::scenario
