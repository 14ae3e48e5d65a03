// Tests the rows of the option table, and how the commands use them.
#include "emulator/options/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/program_options.hpp>
#include <regex>
#include <set>
#include <string>

#include "emulator/options/describe.h"

namespace rocemu::options {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Command kCommands[] = {Command::kRun, Command::kUp, Command::kExplore, Command::kDaemon};

std::set<std::string> options_in(const std::string& help) {
  const std::regex option("(?:^|\n)  (--[a-z-]+)");
  std::set<std::string> found;
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

/// Only --adversarial has another meaning in another command: with it, `rocemu explore` tries N
/// seeds.
TEST(OptionTable, HasOneRowForEachOption) {
  std::set<std::string> names;
  for (const Option& option : option_table()) {
    const std::string name = option.name;
    const bool is_explores = option.commands.contains(Command::kExplore) && name == "adversarial";
    EXPECT_TRUE(names.insert(is_explores ? name + " of explore" : name).second) << name;
  }
}

TEST(OptionTable, NamesTheArgumentOfEachOptionThatTakesOne) {
  for (const Option& option : option_table()) {
    const bool has_argument = std::string(option.argument) != "";
    EXPECT_EQ(has_argument, option.value != Value::kSwitch) << option.name;
  }
}

TEST(OptionTable, SaysOfEachOptionWhatItDoesInAPhrase) {
  for (const Option& option : option_table()) {
    const std::string help = option.help;
    ASSERT_FALSE(help.empty()) << option.name;
    EXPECT_NE(help.back(), '.') << option.name;
  }
}

TEST(Help, OfRunShowsAtMost25OptionsByTask) {
  const std::string help = help_of(Command::kRun, /*all=*/false);
  EXPECT_LE(options_in(help).size(), 25u);
  for (const char* task : {"Choose devices:", "Cause faults:", "Record and compare:",
                           "Make runs deterministic:", "Diagnose hangs:"}) {
    EXPECT_THAT(help, HasSubstr(task));
  }
  EXPECT_THAT(help, HasSubstr("rocemu run --help-all lists"));
}

TEST(Help, WithAllOptionsLeavesOutOnlyThoseThatPartsOfRocemuPassToEachOther) {
  for (const Command command : kCommands) {
    const std::set<std::string> shown = options_in(help_of(command, /*all=*/true));
    std::set<std::string> expected, all;
    for (const Option& option : option_table()) {
      all.insert("--" + std::string(option.name));
      if (option.commands.contains(command) && option.shown != Shown::kNever)
        expected.insert("--" + std::string(option.name));
    }
    for (const std::string& name : all)
      EXPECT_EQ(shown.contains(name), expected.contains(name)) << name;
    EXPECT_THAT(help_of(command, /*all=*/true), Not(HasSubstr("--help-all lists")));
  }
}

TEST(Help, SaysTheSameOfAnOptionInEachCommandThatHasIt) {
  const auto text_of = [](Command command, const std::string& name) {
    return options_of(command).find(name, /*approx=*/false).description();
  };
  for (const char* name : {"device", "record", "seed"}) {
    const std::string text = text_of(Command::kRun, name);
    EXPECT_EQ(text_of(Command::kDaemon, name), text);
  }
  EXPECT_EQ(text_of(Command::kExplore, "device"), text_of(Command::kRun, "device"));
}

TEST(WhyUnknown, NamesTheReplacementOfARenamedOption) {
  const std::pair<const char*, const char*> renamed[] = {{"--tell-exits", "--report-failures"},
                                                         {"--without-trace", "--no-trace"},
                                                         {"--sleep-between-turns", "--no-spin"}};
  for (const auto& [before, now] : renamed) {
    EXPECT_THAT(why_unknown(before).value_or(""), HasSubstr(now));
    EXPECT_NO_THROW(options_of(Command::kRun).find(now + 2, /*approx=*/false));
    for (const Option& option : option_table()) EXPECT_STRNE(option.name, before + 2);
  }
}

TEST(WhyUnknown, SaysToLeaveARemovedOptionOut) {
  EXPECT_THAT(why_unknown("--threads").value_or(""), HasSubstr("leave it out"));
}

TEST(WhyUnknown, NamesTheOptionThatHasTheVirtualClock) {
  for (const char* removed : {"--clock", "--clock=virtual", "--real-time-programs"})
    EXPECT_THAT(why_unknown(removed).value_or(""), HasSubstr("--lockstep"));
}

TEST(WhyUnknown, NamesTheCommandsThatHaveTheOption) {
  EXPECT_EQ(why_unknown("--record"), "option '--record' is one of rocemu run, rocemu up, rocemud");
  EXPECT_EQ(why_unknown("--strict"), "option '--strict' is one of rocemu run");
}

TEST(WhyUnknown, IsNothingForAnOptionThatNoCommandHas) {
  EXPECT_EQ(why_unknown("--nonsense"), std::nullopt);
  EXPECT_EQ(why_unknown("-x"), std::nullopt);
  EXPECT_EQ(why_unknown(""), std::nullopt);
}

}  // namespace
}  // namespace rocemu::options
