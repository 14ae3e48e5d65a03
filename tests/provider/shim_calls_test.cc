// Tests the functions of libc that the shim replaces. The test program itself calls them.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/abi/runtime_dir.h"
#include "emulator/abi/ucma.h"
#include "tests/provider/fake_daemon.h"
#include "tests/support/page_size.h"
#include "verbs_provider/hooks/async_fd.h"

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
  ASSERT_EQ(count, 3);  // the device, and the entries . and ..
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

/// A listening socket, on which connections wait.
class Listener {
 public:
  explicit Listener(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Accepts a connection to an event channel, and grants its first command, which asks whether the
/// channel may be opened.
void grant_event_channel(const Listener& listener) {
  const int connection = accept(listener.fd(), nullptr, nullptr);
  char command[256];
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  iovec data{command, sizeof command};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_GT(recvmsg(connection, &message, 0), 0);
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  ASSERT_NE(part, nullptr);
  int fds[2];
  ASSERT_EQ(part->cmsg_len, CMSG_LEN(sizeof fds));
  memcpy(fds, CMSG_DATA(part), sizeof fds);
  const abi::ucma::ReplyHeader reply{abi::ucma::kMagic, abi::ucma::kVersion, 0, 0};
  EXPECT_EQ(send(fds[0], &reply, sizeof reply, MSG_NOSIGNAL), ssize_t{sizeof reply});
  for (const int fd : fds) close(fd);
  close(connection);
}

/// Invalid paths: null, small numbers, memory that cannot be read, addresses that cannot be mapped,
/// and a path that begins like a served name but has no terminating zero.
class BadPaths {
 public:
  BadPaths()
      : pages_(static_cast<char*>(mmap(nullptr, 2 * kPageSize, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(pages_ + kPageSize, kPageSize, PROT_NONE);
    constexpr char kStart[] = "/sys/class/infiniband/";
    constexpr size_t kLength = sizeof(kStart) - 1;
    char* const endless = pages_ + kPageSize - kLength;
    memcpy(endless, kStart, kLength);
    paths = {nullptr, reinterpret_cast<const char*>(8), pages_ + kPageSize,
             reinterpret_cast<const char*>(0xdead'0000'0000'0000), endless};
  }
  ~BadPaths() { munmap(pages_, 2 * kPageSize); }

  std::vector<const char*> paths;

 private:
  char* pages_;
};

/// Returns the shim's replacement of a function. A call by this pointer ignores the attributes of
/// the function's declaration, and bypasses a sanitizer's replacement, which would read the
/// arguments first.
template <class Function>
Function* of_shim(const char* name, Function*) {
  static void* const shim = dlopen("librocemu.so", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(shim, name));
}
template <class Result, class... Parameters, class... Arguments>
Result call(const char* name, Result (*declared)(Parameters...), Arguments... arguments) {
  Result (*volatile function)(Parameters...) = of_shim(name, declared);
  return function(arguments...);
}
template <class Result, class... Parameters, class... Arguments>
Result call(const char* name, Result (*declared)(Parameters..., ...), Arguments... arguments) {
  Result (*volatile function)(Parameters..., ...) = of_shim(name, declared);
  return function(arguments...);
}

// The man pages of calls that take a path: "EFAULT: pathname is outside your accessible address
// space".
TEST_F(ShimCalls, ABadPathIsEfaultToEveryCallThatTakesOne) {
  const BadPaths bad;
  char out[64];
  struct stat status;
  struct statx statx_status;
  const std::pair<const char*, std::function<bool(const char*)>> calls[] = {
      {"open", [](auto* path) { return call("open", open, path, O_RDONLY) < 0; }},
      {"open, creating",
       [](auto* path) { return call("open", open, path, O_RDWR | O_CREAT, 0600) < 0; }},
      {"openat", [](auto* path) { return call("openat", openat, AT_FDCWD, path, O_RDONLY) < 0; }},
      {"fopen", [](auto* path) { return call("fopen", fopen, path, "r") == nullptr; }},
      {"access", [](auto* path) { return call("access", access, path, F_OK) < 0; }},
      {"eaccess", [](auto* path) { return call("eaccess", eaccess, path, F_OK) < 0; }},
      {"faccessat",
       [](auto* path) { return call("faccessat", faccessat, AT_FDCWD, path, F_OK, 0) < 0; }},
      {"stat", [&](auto* path) { return call("stat", stat, path, &status) < 0; }},
      {"lstat", [&](auto* path) { return call("lstat", lstat, path, &status) < 0; }},
      {"fstatat",
       [&](auto* path) { return call("fstatat", fstatat, AT_FDCWD, path, &status, 0) < 0; }},
      {"statx",
       [&](auto* path) { return call("statx", statx, AT_FDCWD, path, 0, 0u, &statx_status) < 0; }},
      {"readlink",
       [&](auto* path) { return call("readlink", readlink, path, out, sizeof(out)) < 0; }},
      {"readlinkat",
       [&](auto* path) {
         return call("readlinkat", readlinkat, AT_FDCWD, path, out, sizeof(out)) < 0;
       }},
      {"chdir", [](auto* path) { return call("chdir", chdir, path) < 0; }},
      {"getxattr",
       [&](auto* path) {
         return call("getxattr", getxattr, path, "user.a", out, sizeof(out)) < 0;
       }},
      {"lgetxattr",
       [&](auto* path) {
         return call("lgetxattr", lgetxattr, path, "user.a", out, sizeof(out)) < 0;
       }},
  };
  for (const auto& [name, fails] : calls) {
    for (const char* path : bad.paths) {
      errno = 0;
      EXPECT_TRUE(fails(path)) << name;
      EXPECT_EQ(errno, EFAULT) << name << " of " << static_cast<const void*>(path);
    }
  }
}

TEST_F(ShimCalls, ABadPlaceForTheAnswerIsEfaultToo) {
  char* const nowhere = reinterpret_cast<char*>(8);
  EXPECT_EQ(call("stat", stat, kGuid, reinterpret_cast<struct stat*>(nowhere)), -1);
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(call("statx", statx, AT_FDCWD, kGuid, 0, 0u, reinterpret_cast<struct statx*>(nowhere)),
            -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(ShimCalls, ABadPointerWrittenToADeviceIsEfault) {
  const Listener event_channels(daemon_.dir() + "/dev/infiniband/rdma_cm");
  std::thread grants([&] { grant_event_channel(event_channels); });
  void* const nowhere = reinterpret_cast<void*>(8);
  for (const char* device : {"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"}) {
    const int fd = open(device, O_RDWR);
    ASSERT_GE(fd, 0) << device;
    EXPECT_EQ(call("write", write, fd, nowhere, size_t{16}), -1) << device;
    EXPECT_EQ(errno, EFAULT) << device;
    close(fd);
  }
  grants.join();
  const int connection = open("/dev/infiniband/uverbs0", O_RDWR);
  rocemu_offer_async_fd(connection, 77);
  EXPECT_EQ(call("ioctl", ioctl, connection, RDMA_VERBS_IOCTL, nowhere), -1);
  rocemu_offer_async_fd(-1, -1);
  close(connection);
}

TEST_F(ShimCalls, ADeviceIsFoundFromItsDirectory) {
  for (const bool by_cwd : {false, true}) {
    const int directory = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
    ASSERT_GE(directory, 0);
    const int before = open(".", O_RDONLY | O_DIRECTORY);
    if (by_cwd) {
      ASSERT_EQ(fchdir(directory), 0);
    }
    const int from = by_cwd ? AT_FDCWD : directory;
    struct stat status;
    EXPECT_EQ(fstatat(from, "uverbs0", &status, 0), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode));
    errno = 77;
    const int fd = openat(from, "./uverbs0", O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0) << strerror(errno);
    EXPECT_EQ(errno, 77);
    EXPECT_EQ(fstat(fd, &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode));
    close(fd);
    EXPECT_EQ(openat(from, "no-such-device", O_RDWR), -1);
    EXPECT_EQ(errno, ENOENT);
    ASSERT_EQ(fchdir(before), 0);
    close(before);
    close(directory);
  }
}

// open(2), O_PATH: "the file itself is not opened".
TEST_F(ShimCalls, ADeviceThatIsOnlyFoundIsNotOpened) {
  const int fd = open("/dev/infiniband/uverbs0", O_PATH);
  ASSERT_GE(fd, 0);
  EXPECT_NE(fcntl(fd, F_GETFL) & O_PATH, 0);
  struct stat status;
  EXPECT_EQ(fstat(fd, &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(fstatat(fd, "", &status, AT_EMPTY_PATH), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  close(fd);
  EXPECT_EQ(open("/dev/infiniband/uverbs0", O_RDWR | O_DIRECTORY), -1);
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_EQ(open("/dev/infiniband/uverbs0", O_RDWR | O_CREAT | O_EXCL, 0600), -1);
  EXPECT_EQ(errno, EEXIST);
}

TEST_F(ShimCalls, WithoutDescriptorsLeftADeviceIsEmfile) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int fd = open("/dev/infiniband/uverbs0", O_RDWR);
  const int error = errno;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(error, EMFILE);
}

TEST_F(ShimCalls, RdmaNetlinkIsRefusedAndTheProviderAnnounced) {
  const ScopedVariable drivers("IBV_DRIVERS", "mine");
  const ScopedVariable old_drivers("RDMAV_DRIVERS", nullptr);
  for (int i = 0; i < 2; ++i) {  // the second time, the variable has already been changed
    EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), -1);
    EXPECT_EQ(errno, EPROTONOSUPPORT);
  }
  const std::string value = getenv("IBV_DRIVERS");
  ASSERT_TRUE(value.ends_with("/librocemu:mine")) << value;
  EXPECT_EQ(value.find("librocemu"), value.rfind("librocemu")) << value;
  for (const char* abi : {"34", "57", "59", "64", "65"}) {
    const std::string plugin = value.substr(0, value.find(':')) + "-rdmav" + abi + ".so";
    EXPECT_EQ(access(plugin.c_str(), R_OK), 0) << plugin;
  }
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
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    EXPECT_GE(fd, 0) << strerror(errno);
    kernel = accept(listener.fd(), nullptr, nullptr);
  }
  ~ShimNetlink() override {
    close(kernel);
    close(fd);
  }
  const ScopedVariable drivers{"IBV_DRIVERS", nullptr};
  const Listener listener{daemon_.dir() + "/netlink"};
  int fd, kernel;
};

TEST_F(ShimNetlink, HasTheAddressesThatNetlinkLibrariesCheck) {
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

TEST_F(ShimNetlink, ABadPointerIsEfault) {
  void* const nowhere = reinterpret_cast<void*>(8);
  sockaddr_nl own{};
  socklen_t length = sizeof(own);
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  EXPECT_EQ(call("getsockname", getsockname, fd, static_cast<sockaddr*>(nowhere), &length), -1);
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(call("getsockname", getsockname, fd, address, static_cast<socklen_t*>(nowhere)), -1);
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(call("recvmsg", recvmsg, fd, static_cast<msghdr*>(nowhere), MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EFAULT);
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

/// The request that libibverbs sends for the async event file of an imported context.
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

// libibverbs learns from this error that it must use write(2).
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
  // This call may succeed or fail, since the kernel executes it.
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  if (fd >= 0) close(fd);
  EXPECT_EQ(getenv("IBV_DRIVERS"), nullptr);
}

}  // namespace
}  // namespace rocemu
