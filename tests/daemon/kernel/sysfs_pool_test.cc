// Tests that NICs pass on a sysfs tree only if nothing in it has changed.
#include "emulator/daemon/kernel/sysfs_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "emulator/daemon/kernel/runtime_directory.h"
#include "tests/daemon/temp_dir.h"

namespace rocemu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::SizeIs;

const std::vector<SysfsFile> kFiles = {{"class/a/one", "text\n"},
                                       {"class/a/two", "text\n"},  // the same inode
                                       {"class/a/deep/three", "more\n"},
                                       {"class/b", "a/deep", true}};

std::string text_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

/// Identifies a file that is not changed: a later file can have the same inode number, but not the
/// same ctime. Zeros if there is no such file.
struct Identity {
  ino_t inode = 0;
  int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

/// Waits for the next tick of the clock from which the kernel takes ctimes. A tree may be passed on
/// only from then on.
void wait_for_tick() {
  timespec begin{}, now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &begin);
  do clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec == begin.tv_sec && now.tv_nsec == begin.tv_nsec);
}

class SysfsPoolTest : public testing::Test {
 protected:
  SysfsPoolTest() {
    fs::create_directory(pool());
    exploration_.reset(open(pool().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_EQ(flock(exploration_.get(), LOCK_EX | LOCK_NB), 0);
  }

  std::string pool() const { return temp_ / "pool"; }
  std::string sys() const { return temp_ / "nic/sys/"; }

  std::vector<std::string> names_in_pool() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(pool()))
      names.push_back(entry.path().filename());
    return names;
  }

  /// Starts a NIC, calls `program` while it runs, and ends it. Returns the identity of a file in
  /// its tree. Checks that the tree is as expected when the program starts.
  Identity run(
      const std::function<void()>& program = [] {}, const std::vector<SysfsFile>& files = kFiles) {
    wait_for_tick();
    RuntimeDirectory nic(temp_ / "nic", 1, 0, pool());
    nic.write_sysfs(files);
    EXPECT_EQ(text_of(sys() + "class/a/one"), "text");
    EXPECT_EQ(text_of(sys() + "class/a/two"), "text");
    EXPECT_EQ(text_of(sys() + "class/b/three"), "more");
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(sys())) ++entries;
    EXPECT_EQ(entries, 7u);  // class, a, one, two, deep, three, b
    const Identity file = identity_of(sys() + "class/a/deep/three");
    program();
    return file;
  }

  /// Checks that after this program no NIC gets the program's tree.
  void expect_not_passed_on(const std::function<void()>& program) {
    run();
    const Identity before = run(program);
    EXPECT_NE(run(), before);  // which also checks the tree's files
  }

  TempDir temp_;
  UniqueFd exploration_;
};

TEST_F(SysfsPoolTest, PassesAnUnchangedTreeOn) {
  run();
  ASSERT_THAT(names_in_pool(), SizeIs(1));
  const std::string name = names_in_pool()[0];
  const Identity file = identity_of(pool() + "/" + name + "/class/a/deep/three");
  EXPECT_EQ(run([&] { EXPECT_THAT(names_in_pool(), SizeIs(0)); }), file);
  EXPECT_EQ(run(), file);
  EXPECT_THAT(names_in_pool(), testing::ElementsAre(name));
  EXPECT_FALSE(fs::exists(temp_ / "nic"));
}

TEST_F(SysfsPoolTest, NeverGivesATreeToTwoNics) {
  run();
  wait_for_tick();
  RuntimeDirectory other(temp_ / "other", 1, 0, pool());
  other.write_sysfs(kFiles);
  EXPECT_NE(run(), identity_of(temp_ / "other/sys/class/a/deep/three"));
}

TEST_F(SysfsPoolTest, NeverPassesOnATreeThatAProgramHasHadWhileItWasNew) {
  const Identity first = run();
  EXPECT_NE(run(), first);
}

TEST_F(SysfsPoolTest, TakesOnlyATreeWithTheSameFiles) {
  run();
  std::vector<SysfsFile> others = kFiles;
  others[0].path = "class/a/two";
  others[1].path = "class/a/one";
  const Identity file = identity_of(pool() + "/" + names_in_pool()[0] + "/class/a/deep/three");
  EXPECT_NE(run([] {}, others), file);
  EXPECT_EQ(run(), file);
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeInWhichAFileWasWritten) {
  expect_not_passed_on([this] {
    fs::permissions(sys() + "class/a/one", fs::perms(0600));
    std::ofstream(sys() + "class/a/two") << "TEXT\n";
    fs::permissions(sys() + "class/a/one", fs::perms(0400));
  });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeInWhichAFileWasWrittenAndItsTimeReset) {
  expect_not_passed_on([this] {
    const std::string file = sys() + "class/a/deep/three";
    const auto time = fs::last_write_time(file);
    fs::permissions(file, fs::perms(0600));
    std::ofstream(file) << "MORE\n";
    fs::permissions(file, fs::perms(0400));
    fs::last_write_time(file, time);
  });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeWithANewFile) {
  expect_not_passed_on([this] { std::ofstream(sys() + "class/a/deep/new") << "x"; });
  expect_not_passed_on([this] { std::ofstream(sys() + "new") << "x"; });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeThatLacksAFile) {
  expect_not_passed_on([this] { fs::remove(sys() + "class/a/one"); });
  expect_not_passed_on([this] { fs::remove_all(sys() + "class"); });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeWithAnotherLink) {
  expect_not_passed_on([this] {
    fs::remove(sys() + "class/b");
    fs::create_symlink("a", sys() + "class/b");
  });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeWithAnotherMode) {
  expect_not_passed_on([this] { fs::permissions(sys() + "class/a", fs::perms(0750)); });
  expect_not_passed_on([this] { fs::permissions(sys(), fs::perms(0750)); });
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeThatIsChangedThroughALinkFromOutside) {
  run();
  const Identity before =
      run([this] { fs::create_hard_link(sys() + "class/a/one", temp_ / "link"); });
  fs::permissions(temp_ / "link", fs::perms(0600));
  std::ofstream(temp_ / "link") << "TEXT\n";
  EXPECT_NE(run(), before);
}

TEST_F(SysfsPoolTest, DoesNotPassOnATreeThatTheNicChanged) {
  run();
  Identity file;
  {
    wait_for_tick();
    RuntimeDirectory nic(temp_ / "nic", 1, 0, pool());
    nic.write_sysfs(kFiles);
    file = identity_of(sys() + "class/a/deep/three");
    EXPECT_TRUE(nic.replace_sysfs({"class/a/one", "0\n"}));
  }
  EXPECT_THAT(names_in_pool(), SizeIs(1));  // a new one
  EXPECT_NE(run(), file);
}

TEST_F(SysfsPoolTest, DoesNotPassOnTheTreeOfANicThatCrashed) {
  run();
  const pid_t nic_process = fork();
  if (nic_process == 0) {
    wait_for_tick();
    RuntimeDirectory nic(temp_ / "nic", 1, 0, pool());
    nic.write_sysfs(kFiles);
    _exit(0);  // without the destructor
  }
  waitpid(nic_process, nullptr, 0);
  EXPECT_THAT(names_in_pool(), SizeIs(0));
  const Identity file = identity_of(sys() + "class/a/deep/three");
  ASSERT_NE(file, Identity());
  run();
  EXPECT_THAT(names_in_pool(), SizeIs(1));
  EXPECT_NE(identity_of(pool() + "/" + names_in_pool()[0] + "/class/a/deep/three"), file);
}

TEST_F(SysfsPoolTest, IsRemovedByTheLastNicOfAnExplorationThatWasKilled) {
  run();
  run([this] { exploration_.reset(); });
  EXPECT_FALSE(fs::exists(pool()));
}

TEST_F(SysfsPoolTest, MayBeMissing) {
  fs::remove(pool());
  run();
  EXPECT_FALSE(fs::exists(pool()));
}

}  // namespace
}  // namespace rocemu::daemon
