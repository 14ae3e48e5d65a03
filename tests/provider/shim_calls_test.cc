// The replaced functions of libc, as the test program itself calls them.
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "emulator/abi/runtime_dir.h"
#include "tests/provider/fake_daemon.h"

namespace rocemu {
namespace {

using test::FakeDaemon;
using test::ScopedVariable;

constexpr char kGuid[] = "/sys/class/infiniband/rocemu0/node_guid";

class ShimCalls : public testing::Test {
 protected:
  ShimCalls() : variable_(abi::kDirVariable, daemon_.dir().c_str()) {
    daemon_.write_file("sys/class/infiniband/rocemu0/node_guid", "0200\n");
  }

  FakeDaemon daemon_;
  ScopedVariable variable_;
};

TEST_F(ShimCalls, OpenReadsTheDaemonsFiles) {
  char text[8] = {};
  const int fd = open(kGuid, O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(read(fd, text, sizeof(text)), 5);
  close(fd);
  FILE* file = fopen(kGuid, "r");
  ASSERT_NE(file, nullptr);
  EXPECT_STREQ(fgets(text, sizeof(text), file), "0200\n");
  fclose(file);
}

TEST_F(ShimCalls, OpenatTakesPathsFromTheRootDirectory) {
  const int root = open("/", O_RDONLY | O_DIRECTORY);
  const int fd = openat(root, kGuid + 1, O_RDONLY);
  EXPECT_GE(fd, 0);
  close(fd);
  close(root);
}

TEST_F(ShimCalls, DirectoriesListTheDaemonsDevices) {
  DIR* dir = opendir("/sys/class/infiniband");
  ASSERT_NE(dir, nullptr);
  bool found = false;
  while (const dirent* entry = readdir(dir)) found |= std::string(entry->d_name) == "rocemu0";
  closedir(dir);
  EXPECT_TRUE(found);

  dirent** entries;
  const int count = scandir("/sys/class/infiniband", &entries, nullptr, alphasort);
  ASSERT_EQ(count, 3);  // with . and ..
  EXPECT_STREQ(entries[2]->d_name, "rocemu0");
  for (int i = 0; i < count; ++i) free(entries[i]);
  free(entries);
}

TEST_F(ShimCalls, ExistenceAndStatusAreTheDaemons) {
  struct stat status;
  EXPECT_EQ(access(kGuid, R_OK), 0);
  EXPECT_EQ(faccessat(AT_FDCWD, kGuid, R_OK, 0), 0);
  EXPECT_EQ(stat(kGuid, &status), 0);
  EXPECT_EQ(status.st_size, 5);
  EXPECT_EQ(lstat("/sys/class/infiniband/rocemu9", &status), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(ShimCalls, ResolvedPathsKeepTheirPublicNames) {
  char resolved[PATH_MAX];
  ASSERT_NE(realpath("/sys/class/infiniband/rocemu0/../rocemu0/node_guid", resolved), nullptr);
  EXPECT_STREQ(resolved, kGuid);
  char* allocated = realpath(kGuid, nullptr);
  EXPECT_STREQ(allocated, kGuid);
  free(allocated);
}

TEST_F(ShimCalls, GlobbedPathsKeepTheirPublicNames) {
  glob_t found{};
  ASSERT_EQ(glob("/sys/class/infiniband/*/node_*", 0, nullptr, &found), 0);
  ASSERT_EQ(found.gl_pathc, 1u);
  EXPECT_STREQ(found.gl_pathv[0], kGuid);
  globfree(&found);
}

TEST_F(ShimCalls, ChdirGoesIntoTheDaemonsDirectory) {
  char before[PATH_MAX];
  ASSERT_NE(getcwd(before, sizeof(before)), nullptr);
  ASSERT_EQ(chdir("/sys/class/infiniband/rocemu0"), 0);
  EXPECT_EQ(access("node_guid", R_OK), 0);
  ASSERT_EQ(chdir(before), 0);
}

TEST_F(ShimCalls, ASuccessfulCallLeavesErrnoAlone) {
  struct stat status;
  errno = 77;
  const int fd = open(kGuid, O_RDONLY);
  EXPECT_EQ(stat(kGuid, &status), 0);
  EXPECT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(stat("/tmp", &status), 0);
  close(fd);
  EXPECT_EQ(errno, 77);
}

TEST_F(ShimCalls, NullPathsFailAsTheKernelSays) {
  // Not open() itself, which is declared to be called with a path.
  int (*volatile call)(const char*, int, ...) = open;
  EXPECT_EQ(call(nullptr, O_RDONLY), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(ShimCalls, RdmaNetlinkIsRefusedAndTheProviderAnnounced) {
  const ScopedVariable drivers("IBV_DRIVERS", "mine");
  const ScopedVariable old_drivers("RDMAV_DRIVERS", nullptr);
  for (int i = 0; i < 2; ++i) {  // the second time it is there already
    EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), -1);
    EXPECT_EQ(errno, EPROTONOSUPPORT);
  }
  const std::string value = getenv("IBV_DRIVERS");
  ASSERT_TRUE(value.ends_with("/librocemu:mine")) << value;
  EXPECT_EQ(value.find("librocemu"), value.rfind("librocemu")) << value;
  EXPECT_EQ(access((value.substr(0, value.find(':')) + ".so").c_str(), R_OK), 0);
  EXPECT_EQ(getenv("RDMAV_DRIVERS"), nullptr);
}

TEST_F(ShimCalls, TheOtherVariableIsServedIfItIsSet) {
  const ScopedVariable drivers("IBV_DRIVERS", nullptr);
  const ScopedVariable old_drivers("RDMAV_DRIVERS", "mine");
  EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), -1);
  EXPECT_TRUE(std::string(getenv("RDMAV_DRIVERS")).ends_with("/librocemu:mine"));
  EXPECT_TRUE(std::string(getenv("IBV_DRIVERS")).ends_with("/librocemu"));
}

TEST_F(ShimCalls, OtherNetlinkIsNotRefused) {
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  EXPECT_GE(fd, 0);
  close(fd);
}

TEST(ShimCallsWithoutDaemon, ReachTheKernelsFiles) {
  const ScopedVariable dir(abi::kDirVariable, "/nonexistent");
  const ScopedVariable drivers("IBV_DRIVERS", nullptr);
  struct stat status;
  EXPECT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  // Whatever the kernel says to it.
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  if (fd >= 0) close(fd);
  EXPECT_EQ(getenv("IBV_DRIVERS"), nullptr);
}

}  // namespace
}  // namespace rocemu
