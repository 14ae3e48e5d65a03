#include "verbs_provider/shim/find_runtime_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "emulator/abi/runtime_dir.h"
#include "tests/provider/fake_daemon.h"

namespace rocemu::shim {
namespace {

using test::ScopedVariable;

std::optional<std::string> found() {
  char dir[256];
  if (!find_runtime_dir(dir, sizeof(dir))) return std::nullopt;
  return dir;
}

class RuntimeDir : public testing::Test {
 protected:
  RuntimeDir() {
    char name[] = "/tmp/rocemu-provider-test-XXXXXX";
    base_ = mkdtemp(name);
  }
  ~RuntimeDir() override { std::filesystem::remove_all(base_); }

  std::string base_;
};

TEST_F(RuntimeDir, IsTheDirectoryOfTheVariable) {
  const ScopedVariable dir(abi::kDirVariable, base_.c_str());
  EXPECT_EQ(found(), base_);
}

TEST_F(RuntimeDir, HasNoReplacementIfTheVariablesDoesNotExist) {
  std::filesystem::create_directories(base_ + "/rocemu/shared");
  const ScopedVariable user("XDG_RUNTIME_DIR", base_.c_str());
  const ScopedVariable dir(abi::kDirVariable, "/nonexistent");
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(RuntimeDir, IsTheSharedDaemonsByDefault) {
  const ScopedVariable user("XDG_RUNTIME_DIR", base_.c_str());
  const ScopedVariable dir(abi::kDirVariable, nullptr);
  EXPECT_EQ(found(), std::nullopt);
  std::filesystem::create_directories(base_ + "/rocemu/shared");
  EXPECT_EQ(found(), base_ + "/rocemu/shared");
}

TEST_F(RuntimeDir, OfAnotherUserIsNotTakenByDefault) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  std::filesystem::create_directories(base_ + "/rocemu/shared");
  ASSERT_EQ(chown((base_ + "/rocemu/shared").c_str(), 12345, 12345), 0);
  const ScopedVariable user("XDG_RUNTIME_DIR", base_.c_str());
  const ScopedVariable dir(abi::kDirVariable, nullptr);
  EXPECT_EQ(found(), std::nullopt);
}

// clearenv(3) and unsetenv(3) remove the variable after this library was loaded.
TEST_F(RuntimeDir, StaysThatOfTheStartIfTheProgramRemovesTheVariable) {
  std::filesystem::create_directories(base_ + "/rocemu/shared");
  std::filesystem::create_directories(base_ + "/run-1");
  const ScopedVariable user("XDG_RUNTIME_DIR", base_.c_str());
  {
    const ScopedVariable dir(abi::kDirVariable, (base_ + "/run-1/").c_str());
    note_runtime_dir();
  }
  const ScopedVariable none(abi::kDirVariable, nullptr);
  EXPECT_EQ(found(), base_ + "/run-1");
  {
    const ScopedVariable another(abi::kDirVariable, base_.c_str());
    EXPECT_EQ(found(), base_) << "the program's own choice";
  }
  {
    const ScopedVariable missing(abi::kDirVariable, "/nonexistent");
    EXPECT_EQ(found(), std::nullopt);
  }
  std::filesystem::remove_all(base_ + "/run-1");
  EXPECT_EQ(found(), base_ + "/rocemu/shared") << "that daemon has ended";
  note_runtime_dir();
  std::filesystem::create_directories(base_ + "/run-1");
  EXPECT_EQ(found(), base_ + "/rocemu/shared") << "there was no variable at the start";
}

TEST_F(RuntimeDir, IsNotUsedIfItsPathIsTooLong) {
  const ScopedVariable dir(abi::kDirVariable, std::string(300, '/').append("tmp").c_str());
  EXPECT_EQ(found(), std::nullopt);
}

}  // namespace
}  // namespace rocemu::shim
