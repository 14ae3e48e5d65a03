// Tests the reasons for which execve(2) refuses a program: ENOENT, also if "a script or ELF
// interpreter does not exist", and EACCES if an interpreter is no regular file or may not be
// executed.
#include "emulator/os/programs/exec_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rocemu {
namespace {

using testing::HasSubstr;

class ExecRefusalTest : public testing::Test {
 protected:
  ExecRefusalTest() { mkdtemp(dir_.data()); }
  ~ExecRefusalTest() override { std::filesystem::remove_all(dir_); }

  std::string file(const std::string& name, const std::string& text, mode_t mode = 0755) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  std::string dir_ = testing::TempDir() + "exec-XXXXXX";
};

void expect_refusal(const std::string& path, int error, const std::string& why) {
  const std::optional<ExecRefusal> refusal = find_exec_refusal(path);
  ASSERT_TRUE(refusal) << path;
  EXPECT_EQ(refusal->error, error);
  EXPECT_THAT(refusal->why, HasSubstr(why));
  // The kernel must report the same error. (If env(1) does not find a program, execv() succeeds,
  // and env itself reports the error.)
  if (refusal->why.find("looks for") == std::string::npos) {
    const char* const argv[] = {path.c_str(), nullptr};
    EXPECT_EQ(execv(path.c_str(), const_cast<char* const*>(argv)), -1);
    EXPECT_EQ(errno, error);
  }
}

TEST_F(ExecRefusalTest, NamesAnInterpreterThatIsMissingAndHowToGetIt) {
  const std::string path = file("script", "#!/no/such/python3 -u\n");
  expect_refusal(path, ENOENT, "the interpreter /no/such/python3 of " + path + " does not exist");
  expect_refusal(path, ENOENT, "install python3");
}

TEST_F(ExecRefusalTest, FollowsInterpretersThatAreScripts) {
  const std::string first = file("first", "#!/no/such/interpreter\n");
  const std::string second = file("second", "#!" + first + "\n");
  expect_refusal(second, ENOENT, "the interpreter /no/such/interpreter of " + first);
}

TEST_F(ExecRefusalTest, EndsForAScriptThatIsItsOwnInterpreter) {
  EXPECT_FALSE(find_exec_refusal(file("script", "#!" + dir_ + "/script\n")));
}

TEST_F(ExecRefusalTest, NamesAnInterpreterThatCannotBeExecuted) {
  expect_refusal(file("directory", "#!" + dir_ + "\n"), EACCES, "the interpreter " + dir_);
  const std::string plain = file("plain", "", 0644);
  expect_refusal(file("script", "#!" + plain + "\n"), EACCES, "the interpreter " + plain);
}

TEST_F(ExecRefusalTest, NamesTheLineEndOfDos) {
  expect_refusal(file("script", "#!/bin/sh\r\n"), ENOENT, "carriage return");
  expect_refusal(file("env", "#!/usr/bin/env\r\n"), ENOENT, "carriage return");
}

TEST_F(ExecRefusalTest, NamesTheProgramThatEnvDoesNotFindInPath) {
  expect_refusal(file("script", "#!/usr/bin/env rocemu-no-such-program\n"), ENOENT,
                 "rocemu-no-such-program");
}

TEST_F(ExecRefusalTest, LeavesToEnvWhatItsOptionsAndVariablesMayMakeFindable) {
  for (const char* line : {"#!/usr/bin/env -S PATH=/opt rocemu-no-such-program\n",
                           "#!/usr/bin/env -S -C / rocemu-no-such-program\n", "#!/usr/bin/env\n"})
    EXPECT_FALSE(find_exec_refusal(file("script", line))) << line;
}

TEST_F(ExecRefusalTest, NamesADynamicLinkerThatIsMissing) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string program{std::istreambuf_iterator<char>(own), {}};
  const size_t at = program.find("/ld-");
  ASSERT_NE(at, std::string::npos);
  program.replace(at, 4, "/lx-");
  expect_refusal(file("program", program), ENOENT, "dynamic linker");
}

TEST_F(ExecRefusalTest, ReturnsNothingForAProgramThatRuns) {
  for (const std::string& path :
       {std::string("/proc/self/exe"), file("sh", "#!/bin/sh\n"),
        file("env", "#!/usr/bin/env sh\n"), file("text", "echo\n"), file("empty", "")})
    EXPECT_FALSE(find_exec_refusal(path)) << path;
}

TEST_F(ExecRefusalTest, DescribesAProgramOfAnotherMachine) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string program{std::istreambuf_iterator<char>(own), {}};
  program[18] = 22;  // e_machine: EM_S390
  program[19] = 0;
  EXPECT_THAT(describe_exec_error(file("program", program), ENOEXEC),
              HasSubstr("built for another machine (s390x)"));
}

TEST_F(ExecRefusalTest, DescribesOtherErrorsByTheirNames) {
  EXPECT_EQ(describe_exec_error("/bin/sh", E2BIG), "Argument list too long");
}

}  // namespace
}  // namespace rocemu
