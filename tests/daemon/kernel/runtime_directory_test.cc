// Tests which files the daemon creates in its runtime directory, that it does not change files that
// exist, and that none of its own files remain.
#include "emulator/daemon/kernel/runtime_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/base/unix_socket.h"
#include "tests/daemon/temp_dir.h"

namespace rocemu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string why_not(const std::string& path, size_t devices = 2) {
  try {
    RuntimeDirectory directory(path, devices);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

void touch(const std::string& path) {
  std::ofstream(path) << "x";
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST(RuntimeDirectory, IsMadeForItsOwnerAloneAndRemoved) {
  const TempDir temp;
  const std::string path = temp / "nic";
  {
    RuntimeDirectory directory(path, 2);
    EXPECT_EQ(mode_of(path), 0700u);
    EXPECT_FALSE(directory.was_stale());
    EXPECT_EQ(directory.device_socket(1), path + "/dev/infiniband/uverbs1");
    EXPECT_TRUE(fs::is_directory(path + "/dev/infiniband"));
    directory.write_sysfs(
        {{"class/a/b", "text\n"}, {"class/a/c/d", "more\n"}, {"class/link", "a/c", true}});
    std::string line;
    std::getline(std::ifstream(path + "/sys/class/a/c/d"), line);
    EXPECT_EQ(line, "more");
    const UniqueFd socket = listen_at(directory.control_socket(), SOCK_STREAM);
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(temp / ""));
}

TEST(RuntimeDirectory, UsesAnEmptyDirectoryThatIsThereAlready) {
  const TempDir temp;
  fs::create_directory(temp / "nic");
  EXPECT_EQ(why_not(temp / "nic"), "");
}

TEST(RuntimeDirectory, MakesItsBaseAndRemovesItWithTheLast) {
  const TempDir temp;
  const std::string base = temp / "rocemu";
  {
    RuntimeDirectory first(base + "/shared", 1);
    { RuntimeDirectory second(base + "/run-1", 1); }
    EXPECT_TRUE(fs::exists(base));
  }
  EXPECT_FALSE(fs::exists(base));
}

TEST(RuntimeDirectory, LeavesOtherParentsAlone) {
  const TempDir temp;
  fs::create_directory(temp / "mine");
  { RuntimeDirectory directory(temp / "mine/nic", 1); }
  EXPECT_TRUE(fs::exists(temp / "mine"));
}

TEST(RuntimeDirectory, RefusesTheOneOfALivingDaemon) {
  const TempDir temp;
  RuntimeDirectory directory(temp / "nic", 1);
  touch(directory.device_socket(0));
  EXPECT_THAT(why_not(temp / "nic"), HasSubstr("already runs"));
  EXPECT_TRUE(fs::exists(directory.device_socket(0)));
}

TEST(RuntimeDirectory, RefusesOneWhoseControlSocketIsServed) {
  const TempDir temp;
  fs::create_directory(temp / "nic");
  const UniqueFd socket = listen_at(temp / "nic/control", SOCK_STREAM);
  EXPECT_THAT(why_not(temp / "nic"), HasSubstr("already runs"));
  EXPECT_TRUE(fs::exists(temp / "nic/control"));
}

TEST(RuntimeDirectory, CleansUpAfterADeadDaemon) {
  const TempDir temp;
  fs::create_directories(temp / "nic/dev/infiniband");
  fs::create_directories(temp / "nic/sys/class/old");
  touch(temp / "nic/sys/class/old/file");
  // the socket's file stays, but no process listens
  listen_at(temp / "nic/control", SOCK_STREAM).reset();
  RuntimeDirectory directory(temp / "nic", 1);
  EXPECT_TRUE(directory.was_stale());
  EXPECT_FALSE(fs::exists(temp / "nic/sys/class"));
  EXPECT_FALSE(fs::exists(temp / "nic/control"));
}

TEST(RuntimeDirectory, TouchesNothingInADirectoryThatIsNoRuntimeDirectory) {
  const TempDir temp;
  fs::create_directory(temp / "home");
  fs::permissions(temp / "home", fs::perms(0755));
  touch(temp / "home/thesis.txt");
  EXPECT_THAT(why_not(temp / "home"), HasSubstr("not a runtime directory"));
  EXPECT_TRUE(fs::exists(temp / "home/thesis.txt"));
  EXPECT_EQ(mode_of(temp / "home"), 0755u);
}

TEST(RuntimeDirectory, FollowsNoLinkWhenItRemoves) {
  const TempDir temp;
  fs::create_directory(temp / "other");
  touch(temp / "other/file");
  {
    RuntimeDirectory directory(temp / "nic", 1);
    fs::create_symlink(temp / "other", temp / "nic/sys/link");
    fs::create_symlink(temp / "other/file", temp / "nic/sys/file");
  }
  EXPECT_FALSE(fs::exists(temp / "nic"));
  EXPECT_TRUE(fs::exists(temp / "other/file"));
}

TEST(RuntimeDirectory, ReplacesAFileWithoutTouchingTheDirectoryOfItsDevice) {
  const TempDir temp;
  RuntimeDirectory directory(temp / "nic", 1);
  directory.write_sysfs({{"class/device/ports/1/state", "up"}, {"class/other/state", "up"}});
  const fs::path device = temp / "nic/sys/class/device";
  fs::last_write_time(device, fs::file_time_type{});
  const fs::file_time_type before = fs::last_write_time(device);
  touch(temp / "nic/sys/.new");  // an earlier attempt
  EXPECT_TRUE(directory.replace_sysfs({"class/device/ports/1/state", "down"}));
  std::string content;
  std::getline(std::ifstream(device / "ports/1/state"), content);
  EXPECT_EQ(content, "down");
  EXPECT_EQ(fs::last_write_time(device), before);
  EXPECT_FALSE(fs::exists(temp / "nic/sys/.new"));
  std::getline(std::ifstream(device / "../other/state"), content);
  EXPECT_EQ(content, "up");  // the other file had the same content, and did not change
  EXPECT_FALSE(directory.replace_sysfs({"no/such/file", "down"}));
}

TEST(RuntimeDirectory, IsNoLinkItself) {
  const TempDir temp;
  fs::create_directory(temp / "other");
  fs::create_symlink(temp / "other", temp / "nic");
  EXPECT_THAT(why_not(temp / "nic"), HasSubstr("cannot use"));
}

TEST(RuntimeDirectory, LeavesAlonePathsThatBecameSomethingElse) {
  const TempDir temp;
  {
    RuntimeDirectory directory(temp / "nic", 1);
    fs::rename(temp / "nic", temp / "moved");
    fs::create_directory(temp / "nic");
  }
  EXPECT_TRUE(fs::exists(temp / "nic"));
}

TEST(RuntimeDirectory, SaysThatAPathIsTooLongForSockets) {
  const TempDir temp;
  EXPECT_THAT(why_not(temp / std::string(100, 'a')), HasSubstr("too long"));
  EXPECT_FALSE(fs::exists(temp / std::string(100, 'a')));
}

TEST(RuntimeDirectory, SaysWhyItCannotBeMade) {
  const TempDir temp;
  EXPECT_THAT(why_not(temp / "no/such/parent"), HasSubstr("No such file or directory"));
  touch(temp / "file");
  EXPECT_THAT(why_not(temp / "file"), HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace rocemu::daemon
