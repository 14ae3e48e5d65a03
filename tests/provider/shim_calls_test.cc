// The replaced functions of libc, as the test program itself calls them.
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emulator/abi/runtime_dir.h"
#include "tests/provider/fake_daemon.h"
#include "verbs_provider/shim/async_fd.h"

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

class ShimNetlink : public ShimCalls {
 protected:
  ShimNetlink() {
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, (daemon_.dir() + "/netlink").c_str());
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    EXPECT_GE(fd, 0) << strerror(errno);
    kernel = accept(listener, nullptr, nullptr);
  }
  ~ShimNetlink() override {
    close(kernel);
    close(fd);
    close(listener);
  }
  const ScopedVariable drivers{"IBV_DRIVERS", nullptr};
  int listener, fd, kernel;
};

TEST_F(ShimNetlink, HasTheAddressesThatNetlinkLibrariesLookAt) {
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
  struct {
    sockaddr_nl address;
    char canary = 'x';
  } found;
  socklen_t length = sizeof(found.address);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&found.address), &length), 0);
  EXPECT_EQ(length, sizeof(sockaddr_nl));
  EXPECT_EQ(found.address.nl_family, AF_NETLINK);
  EXPECT_NE(found.address.nl_pid, 0u);

  sockaddr_nl to{};
  to.nl_family = AF_NETLINK;
  EXPECT_EQ(sendto(fd, "ask", 3, 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 3);
  char text[8];
  EXPECT_EQ(recv(kernel, text, sizeof(text), 0), 3);
  EXPECT_EQ(send(kernel, "tell", 4, 0), 4);
  iovec part{text, sizeof(text)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = &found.address;
  message.msg_namelen = sizeof(found.address);
  EXPECT_EQ(recvmsg(fd, &message, 0), 4);
  EXPECT_EQ(message.msg_namelen, sizeof(sockaddr_nl));
  EXPECT_EQ(found.address.nl_family, AF_NETLINK);
  EXPECT_EQ(found.address.nl_pid, 0u) << "the kernel's";
  EXPECT_EQ(found.canary, 'x');

  message.msg_name = nullptr;
  message.msg_namelen = 0;
  EXPECT_EQ(send(kernel, "tell", 4, 0), 4);
  EXPECT_EQ(recvmsg(fd, &message, 0), 4);
}

TEST_F(ShimNetlink, LeavesOtherSocketsAlone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  EXPECT_EQ(getsockname(ends[0], reinterpret_cast<sockaddr*>(&address), &length), 0);
  EXPECT_EQ(address.ss_family, AF_UNIX);
  sockaddr_nl netlink{};
  netlink.nl_family = AF_NETLINK;
  EXPECT_EQ(bind(ends[0], reinterpret_cast<sockaddr*>(&netlink), sizeof(netlink)), -1);
  EXPECT_EQ(bind(-1, reinterpret_cast<sockaddr*>(&netlink), sizeof(netlink)), -1);
  EXPECT_EQ(errno, EBADF);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ShimCalls, OtherNetlinkIsNotRefused) {
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  EXPECT_GE(fd, 0);
  close(fd);
}

/// libibverbs' request for an imported context's async event file.
struct AsyncFdRequest {
  AsyncFdRequest() {
    memset(bytes, 0, sizeof(bytes));
    header()->length = sizeof(bytes);
    header()->object_id = UVERBS_OBJECT_ASYNC_EVENT;
    header()->method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC;
    header()->num_attrs = 1;
    header()->attrs[0].attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
  }
  ib_uverbs_ioctl_hdr* header() { return reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes); }

  alignas(ib_uverbs_ioctl_hdr) char bytes[sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)];
};

TEST_F(ShimCalls, TheAsyncEventFileThatWasOfferedIsAnsweredOnce) {
  const int connection = open("/dev/infiniband/uverbs0", O_RDWR);
  ASSERT_GE(connection, 0);
  AsyncFdRequest request;
  rocemu_offer_async_fd(connection, 77);
  EXPECT_EQ(ioctl(connection + 1000, RDMA_VERBS_IOCTL, request.header()), -1) << "another's";
  EXPECT_EQ(ioctl(connection, RDMA_VERBS_IOCTL, request.header()), 0);
  EXPECT_EQ(request.header()->attrs[0].data_s64, 77);
  EXPECT_EQ(ioctl(connection, RDMA_VERBS_IOCTL, request.header()), -1);
  EXPECT_EQ(errno, ENOTTY);
  close(connection);
}

// By which libibverbs knows that it must use write().
TEST_F(ShimCalls, OtherCommandsByIoctlAreNotForThisDevice) {
  const int connection = open("/dev/infiniband/uverbs0", O_RDWR);
  ASSERT_GE(connection, 0);
  AsyncFdRequest request;
  request.header()->object_id = UVERBS_OBJECT_DEVICE;
  rocemu_offer_async_fd(connection, 77);
  EXPECT_EQ(ioctl(connection, RDMA_VERBS_IOCTL, request.header()), -1);
  EXPECT_EQ(errno, ENOTTY);
  rocemu_offer_async_fd(-1, -1);
  close(connection);
}

TEST_F(ShimCalls, OtherIoctlsReachTheKernel) {
  int pair[2];
  ASSERT_EQ(pipe(pair), 0);
  ASSERT_EQ(write(pair[1], "four", 4), 4);
  int count = 0;
  EXPECT_EQ(ioctl(pair[0], FIONREAD, &count), 0);
  EXPECT_EQ(count, 4);
  close(pair[0]);
  close(pair[1]);
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
