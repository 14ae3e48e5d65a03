// Tests that the log of a process in the run's directory stays small, even if the process makes
// very many errors.
#include "verbs_provider/sanitizer/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/sanitizer/finding_reader.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LogTest : public ::testing::Test {
 protected:
  Report report(std::string message) const { return {kLostWakeup, std::move(message), sites_}; }
  std::vector<command::Misuse> findings() const {
    return command::FindingReader(directory_.path().string()).read(command::Waits::kAll);
  }
  std::string text() const {
    std::ifstream file(directory_.path() / abi::kSanitizerLog);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    using Files = std::filesystem::directory_iterator;
    return static_cast<size_t>(std::distance(Files(directory_.path()), Files()));
  }

  TemporaryDirectory directory_;
  Stacks stacks_;
  NamedCallSite sites_[1] = {{"waits", {"poll", stacks_.current(), 5}}};
  Log log_{directory_.path().string(), stacks_};
};

TEST_F(LogTest, RepetitionsAreCountedAndWriteNothing) {
  constexpr uint64_t kTimes = 100'000;
  log_.write(report("waits"));
  const std::string once = text();
  for (uint64_t i = 1; i < kTimes; ++i) log_.write(report("waits"));
  EXPECT_EQ(text(), once);
  ASSERT_THAT(findings(), SizeIs(1));
  EXPECT_EQ(findings()[0].count, kTimes);
}

TEST_F(LogTest, WaitsThatEndLeaveNothing) {
  log_.withdraw(log_.write_wait(report("waits")));
  const std::string once = text();  // the stack
  const size_t files_once = files();
  for (int i = 0; i < 10'000; ++i)
    log_.withdraw(log_.write_wait(report("waits for the " + std::to_string(i) + "th time")));
  EXPECT_EQ(text(), once);
  EXPECT_EQ(files(), files_once);
  EXPECT_THAT(findings(), IsEmpty());
}

// There are more waits than abi::kMaxSanitizerReports, which limits reports, but not waits that
// have ended.
TEST_F(LogTest, AWaitIsReportedAfterManyThatHaveEnded) {
  for (size_t i = 0; i <= abi::kMaxSanitizerReports; ++i)
    log_.withdraw(log_.write_wait(report("waits")));
  log_.write_wait(report("waits for ever"));
  ASSERT_THAT(findings(), SizeIs(1));
  EXPECT_EQ(findings()[0].message, "a program waits for ever");
}

TEST_F(LogTest, WaitsOfSeveralThreadsEndInAnyOrder) {
  const uint64_t first = log_.write_wait(report("first"));
  const uint64_t second = log_.write_wait(report("second"));
  log_.withdraw(first);
  const uint64_t third = log_.write_wait(report("third"));
  EXPECT_NE(third, second);
  log_.withdraw(second);
  ASSERT_THAT(findings(), SizeIs(1));
  EXPECT_EQ(findings()[0].message, "a program third");
}

TEST_F(LogTest, NotesOfObjectsHaveALimit) {
  Object cq;
  cq.kind = ObjectKind::kCq;
  const auto write = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      cq.number = i % 10;  // so that all lines have the same length
      log_.write_object(cq, "rocemu0");
    }
  };
  write(65536);
  const size_t size = text().size();
  write(1000);
  EXPECT_EQ(text().size(), size);
}

}  // namespace
}  // namespace rocemu::sanitizer
