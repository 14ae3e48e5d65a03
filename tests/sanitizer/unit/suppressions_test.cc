// Tests --sanitize-suppressions.
#include "emulator/command/sanitizer/suppressions.h"

#include <gtest/gtest.h>

#include <fstream>

#include "emulator/command/base/error.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {
namespace {

Suppressions suppressions_of(const std::string& text) {
  const TemporaryDirectory directory;
  const std::string file = directory.path().string() + "/suppressions";
  std::ofstream(file) << text;
  return Suppressions::read(file);
}

Misuse found_in(const std::string& function, const std::string& file, const std::string& module) {
  Misuse finding;
  finding.rule = &sanitizer::kCqOverrun;
  finding.sites = {{"created", "ibv_create_cq", 0, {{function, file, 7, module, 0}}}};
  return finding;
}

TEST(Matches, APatternMatchesAnywhereInTheText) {
  EXPECT_TRUE(matches("fill", "Pool::refill"));
  EXPECT_FALSE(matches("full", "Pool::refill"));
  EXPECT_TRUE(matches("", "Pool::refill"));
}

TEST(Matches, AStarMatchesAnything) {
  EXPECT_TRUE(matches("Pool::*fill", "Pool::refill"));
  EXPECT_TRUE(matches("P*l*l", "Pool::refill"));
  EXPECT_TRUE(matches("re*fill", "refill"));
  EXPECT_FALSE(matches("Pool::*fill", "Tool::refill"));
}

TEST(Matches, AnchorsMatchTheBeginAndTheEnd) {
  EXPECT_TRUE(matches("^refill$", "refill"));
  EXPECT_FALSE(matches("^refill", "Pool::refill"));
  EXPECT_FALSE(matches("Pool$", "Pool::refill"));
  EXPECT_FALSE(matches("^refill$", "refills"));
  EXPECT_FALSE(matches("^refill$", "Pool::refill"));
  EXPECT_TRUE(matches("^*fill$", "refill"));
}

TEST(Suppressions, LeaveOutAFindingByFunctionFileOrLibrary) {
  const Suppressions listed = suppressions_of("# a comment\n\ncq-overrun:server.cc\n");
  EXPECT_TRUE(listed.suppress(found_in("f", "/src/server.cc", "/bin/server")));
  EXPECT_FALSE(listed.suppress(found_in("f", "/src/client.cc", "/bin/server")));
  EXPECT_TRUE(suppressions_of("cq-overrun:libpool.so").suppress(found_in("", "", "/l/libpool.so")));
  EXPECT_TRUE(suppressions_of("cq-overrun:^f$").suppress(found_in("f", "", "")));
}

TEST(Suppressions, AreOfOneRule) {
  EXPECT_FALSE(suppressions_of("refused-limit:f").suppress(found_in("f", "", "")));
}

TEST(Suppressions, NameTheInvalidLine) {
  for (const auto& [text, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"cq-overrun:f\nnonsense\n", ":2: 'nonsense' is not a suppression"},
           {"cq-overrun:\n", ":1: 'cq-overrun:' is not a suppression"},
           {"no-rule:f\n", ":1: there is no rule 'no-rule'"}}) {
    try {
      suppressions_of(text);
      FAIL() << text;
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find(words), std::string::npos) << failure.what();
    }
  }
}

TEST(Suppressions, FailForAFileThatCannotBeRead) {
  EXPECT_THROW(Suppressions::read("/nowhere/suppressions"), Failure);
}

}  // namespace
}  // namespace rocemu::command
