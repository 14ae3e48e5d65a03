// Tests the text for users that is made from the log of a run.
#include "emulator/command/sanitizer/finding_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/sanitizer/finding_text.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Findings : public ::testing::Test {
 protected:
  std::vector<Misuse> read(const std::string& log, Waits waits = Waits::kAll) {
    std::ofstream(directory_.path().string() + "/" + abi::kSanitizerLog) << log;
    return FindingReader(directory_.path().string()).read(waits);
  }

  void write_wait(const std::string& name, const std::string& line) {
    std::ofstream(directory_.path() / name) << line;
  }

  void write_counts(const std::string& name, const std::vector<uint64_t>& counts) {
    std::ofstream(directory_.path().string() + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(counts.data()),
               static_cast<std::streamsize>(counts.size() * sizeof(uint64_t)));
  }

  TemporaryDirectory directory_;
};

constexpr char kServer[] = R"({"process":7,"program":"server","number":2})"
                           "\n";
constexpr char kStack[] =
    R"({"stack":1,"pid":7,"frames":[["/nowhere/librocemu-sanitizer.so",5,"here",1],)"
    R"(["/lib/libibverbs.so.1",9,"ibv_dereg_mr",4],["/nowhere/server",4096,"refill",28],)"
    R"(["/lib/libc.so.6",77,"__libc_start_main",5]]})"
    "\n";

std::string report(const std::string& more) {
  return R"({"report":"mr-deregistered-in-use","pid":7,"index":1,"counts":"counts.7.0",)"
         R"("message":"deregistered memory region 3","places":[{"what":"deregistered",)"
         R"("call":"ibv_dereg_mr","stack":1,"time":231000000}])" +
         more + "}\n";
}

TEST_F(Findings, BeginWithTheProcessThatTheNicHasNamed) {
  const auto found = read(kServer + std::string(kStack) + report(""));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].process, "server#2");
  EXPECT_EQ(found[0].message, "server#2 deregistered memory region 3");
}

TEST_F(Findings, ShowTheProgramsOwnFramesOnly) {
  const auto found = read(kServer + std::string(kStack) + report(""));
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_THAT(found[0].sites[0].stack, SizeIs(1));
  EXPECT_EQ(found[0].sites[0].stack[0].function, "refill");
  EXPECT_EQ(found[0].sites[0].stack[0].module, "/nowhere/server");
}

TEST_F(Findings, AreCountedByTheFileThatTheProcessKept) {
  write_counts("counts.7.0", {10'000'000});
  const auto found = read(kServer + std::string(kStack) + report(""));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].count, 10'000'000u);
}

TEST_F(Findings, OfTwoProcessesOfAProgramFromOnePlaceAreOne) {
  const std::string second = R"({"process":7,"program":"server","number":3})"
                             "\n";
  const auto found =
      read(kServer + std::string(kStack) + report("") + second + kStack + report(""));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].count, 2u);
  EXPECT_EQ(found[0].process, "server#2");
}

TEST_F(Findings, OfAWaitAreSomeUntilItIsWithdrawn) {
  write_wait("wait.7.0.1", report(""));
  const auto found = read(kServer + std::string(kStack));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].process, "server#2");
  ASSERT_THAT(found[0].sites[0].stack, SizeIs(1));
  std::filesystem::remove(directory_.path() / "wait.7.0.1");
  EXPECT_THAT(read(kServer + std::string(kStack)), IsEmpty());
}

TEST_F(Findings, OfWaitsComeInTheOrderInWhichTheyBegan) {
  const auto wait = [](const std::string& message, int time) {
    return R"({"report":"lost-wakeup","pid":7,"message":")" + message +
           R"(","places":[{"what":"waits","call":"poll","stack":0,"time":)" + std::to_string(time) +
           "}]}\n";
  };
  write_wait("wait.7.0.1", wait("later", 20));
  write_wait("wait.7.0.2", wait("earlier", 10));
  // Reports without a stack count as reports of the same place.
  const auto found = read(kServer);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].message, "server#2 earlier");
  EXPECT_EQ(found[0].count, 2u);
}

TEST_F(Findings, OfTheNicShowWhereTheProgramMadeTheObject) {
  const auto found = read(
      kServer + std::string(kStack) +
      R"({"object":"CQ 3","device":"rocemu0","pid":7,"place":{"call":"ibv_create_cq","stack":1,"time":5}})"
      "\n"
      R"({"report":"cq-overrun","pid":7,"device":"rocemu0","index":1,"counts":"counts.nic","message":"overran CQ 3","objects":[{"what":"created","object":"CQ 3"}]})"
      "\n");
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_THAT(found[0].sites, SizeIs(1));
  EXPECT_EQ(found[0].sites[0].what, "created");
  EXPECT_EQ(found[0].sites[0].call, "ibv_create_cq");
}

// If a program is killed, the log may contain an incomplete line, and a child may write after it.
TEST_F(Findings, AreReadInSpiteOfALineThatIsBroken) {
  EXPECT_THAT(read(kServer + std::string(kStack) + "{\"report\":\"cq-ov\n" + report("")),
              SizeIs(1));
  EXPECT_THAT(read("{\"report\":\"cq-overrun\"}\n[]\n7\n"), IsEmpty());
}

TEST_F(Findings, AreNoneWithoutALog) {
  EXPECT_THAT(FindingReader(directory_.path().string()).read(Waits::kAll), IsEmpty());
}

TEST_F(Findings, AreReadWhileTheRunLasts) {
  FindingReader reader(directory_.path().string());
  EXPECT_THAT(reader.read(Waits::kOfEnded), IsEmpty());
  std::ofstream log(directory_.path().string() + "/" + abi::kSanitizerLog);
  const std::string text = report("");
  log << kServer << kStack << text.substr(0, 20) << std::flush;
  EXPECT_THAT(reader.read(Waits::kOfEnded), IsEmpty());
  log << text.substr(20) << std::flush;
  EXPECT_THAT(reader.read(Waits::kOfEnded), SizeIs(1));
  log << R"({"report":"cq-overrun","pid":7,"index":2,"message":"overran CQ 3"})"
      << "\n"
      << std::flush;
  const auto found = reader.read(Waits::kOfEnded);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[1].rule, &sanitizer::kCqOverrun);
}

TEST_F(Findings, OfAWaitThatMayStillEndDoNotCountYet) {
  const std::string own = std::to_string(getpid());
  const std::string name = "wait." + own + ".0.1";
  write_wait(name, R"({"report":"lost-wakeup","pid":)" + own + R"(,"message":"waits"})" + "\n");
  EXPECT_THAT(read("", Waits::kOfEnded), IsEmpty());
  EXPECT_THAT(read("", Waits::kAll), SizeIs(1));
  std::filesystem::remove(directory_.path() / name);
  // No process can have this PID, which is larger than the maximum (proc(5), pid_max).
  write_wait("wait.4194305.0.1", R"({"report":"lost-wakeup","pid":4194305,"message":"waits"})"
                                 "\n");
  EXPECT_THAT(read("", Waits::kOfEnded), SizeIs(1));
}

TEST_F(Findings, AreTextWithPlacesInColumnsAndWhatIsRight) {
  const auto found = read(kServer + std::string(kStack) + report(""));
  ASSERT_THAT(found, SizeIs(1));
  const std::string text = in_words(found[0]);
  EXPECT_THAT(text,
              HasSubstr("error [mr-deregistered-in-use]: server#2 deregistered memory region 3\n"));
  EXPECT_THAT(text,
              HasSubstr("\n    deregistered  refill+0x1c  server  ibv_dereg_mr  at 0.231 s\n"));
  EXPECT_THAT(text, HasSubstr(sanitizer::kMrDeregisteredInUse.clause));
}

TEST(Summary, CountsErrorsAndWarningsAndNamesAnError) {
  Misuse error, warning;
  error.rule = &sanitizer::kCqOverrun;
  warning.rule = &sanitizer::kRefusedLimit;
  EXPECT_EQ(summary_of({warning, error, error}),
            "2 errors, 1 warning in 2 rules; rocemu explain cq-overrun");
  EXPECT_EQ(summary_of({warning}), "1 warning in 1 rule; rocemu explain refused-limit");
  EXPECT_EQ(summary_of({}), "");
}

}  // namespace
}  // namespace rocemu::command
