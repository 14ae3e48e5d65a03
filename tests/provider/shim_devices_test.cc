// Tests devices: sockets that look like character devices, and requests over them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "emulator/abi/runtime_dir.h"
#include "tests/provider/fake_daemon.h"
#include "verbs_provider/shim/call.h"

namespace rocemu {
namespace {

using test::Answer;
using test::FakeDaemon;
using test::ScopedVariable;

constexpr char kDevice[] = "/dev/infiniband/uverbs0";

/// The bytes that libibverbs writes to create a completion channel.
struct CreateChannel {
  uint32_t command = 17;
  uint16_t in_words = 4;
  uint16_t out_words = 1;
  uint64_t response;
};

bool is_device_0(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(231, 192);
}

class ShimDevices : public testing::Test {
 protected:
  explicit ShimDevices(FakeDaemon::Handler handler = nullptr)
      : daemon_(std::move(handler)), variable_(abi::kDirVariable, daemon_.dir().c_str()) {}

  static int open_device() {
    const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    return fd;
  }

  FakeDaemon daemon_;
  ScopedVariable variable_;
};

TEST_F(ShimDevices, LookLikeCharacterDevicesByName) {
  struct stat status;
  ASSERT_EQ(stat(kDevice, &status), 0);
  EXPECT_TRUE(is_device_0(status));
  ASSERT_EQ(lstat(kDevice, &status), 0);
  EXPECT_TRUE(is_device_0(status));
  ASSERT_EQ(fstatat(AT_FDCWD, kDevice, &status, 0), 0);
  EXPECT_TRUE(is_device_0(status));
  ASSERT_EQ(stat(daemon_.device().c_str(), &status), 0);
  EXPECT_TRUE(is_device_0(status));
  struct statx extended;
  ASSERT_EQ(statx(AT_FDCWD, kDevice, 0, STATX_BASIC_STATS, &extended), 0);
  EXPECT_TRUE(S_ISCHR(extended.stx_mode));
  EXPECT_EQ(extended.stx_rdev_major, 231u);
  EXPECT_EQ(extended.stx_rdev_minor, 192u);
}

TEST_F(ShimDevices, LookLikeCharacterDevicesByAnyDescriptor) {
  struct stat status;
  const int fd = open_device();
  const int copy = dup(fd);
  const int far_copy = fcntl(fd, F_DUPFD_CLOEXEC, 500);
  close(fd);
  for (const int each : {copy, far_copy}) {
    ASSERT_EQ(fstat(each, &status), 0);
    EXPECT_TRUE(is_device_0(status));
    ASSERT_EQ(fstatat(each, "", &status, AT_EMPTY_PATH), 0);
    EXPECT_TRUE(is_device_0(status));
    close(each);
  }
  // The next descriptor has the number of the closed one, but refers to another file.
  const int pair = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(fstat(pair, &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  close(pair);
}

TEST_F(ShimDevices, OpenHonorsCloseOnExec) {
  const int with = open(kDevice, O_RDWR | O_CLOEXEC);
  const int without = open(kDevice, O_RDWR);
  EXPECT_EQ(fcntl(with, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(without, F_GETFD), 0);
  close(with);
  close(without);
}

TEST_F(ShimDevices, WithoutAListenerCannotBeOpened) {
  daemon_.die();
  EXPECT_EQ(open(kDevice, O_RDWR), -1);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(open("/dev/infiniband/uverbs7", O_RDWR), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(ShimDevices, RefuseIoctlAndOtherCommands) {
  const int fd = open_device();
  char attributes[64] = {};
  EXPECT_EQ(ioctl(fd, 0xc0181b01, attributes), -1);
  EXPECT_EQ(errno, ENOTTY);
  const uint32_t query_device[4] = {1, 0, 0, 0};
  EXPECT_EQ(write(fd, query_device, sizeof(query_device)), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  close(fd);
}

TEST_F(ShimDevices, AWriteToAnythingElsePasses) {
  const int device = open_device();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const CreateChannel command{.response = 0};
  EXPECT_EQ(write(ends[1], &command, sizeof(command)), static_cast<ssize_t>(sizeof(command)));
  close(ends[0]);
  close(ends[1]);
  close(device);
}

/// Answers kCreateChannel with one end of a socket pair, and writes an 8-byte event to the other
/// end.
class ShimChannels : public ShimDevices {
 protected:
  ShimChannels()
      : ShimDevices([](const abi::Request& request, const std::vector<int>&) {
          Answer answer;
          if (request.op != abi::Op::kCreateChannel) {
            answer.reply.error = EINVAL;
            return answer;
          }
          int ends[2];
          socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
          const uint64_t event = 0x1234;
          send(ends[1], &event, sizeof(event), 0);
          close(ends[1]);
          answer.fds = {ends[0]};
          return answer;
        }) {}
};

TEST_F(ShimChannels, AreMadeByAWriteAndReturnedWhereItSays) {
  const int device = open_device();
  const int copy = dup(device);  // the copy was never passed to fstat()
  uint32_t words[3] = {1, 1, 1};
  CreateChannel command{.response = reinterpret_cast<uint64_t>(&words[1])};
  ASSERT_EQ(write(copy, &command, sizeof(command)), static_cast<ssize_t>(sizeof(command)));
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[2], 1u);
  const int channel = static_cast<int>(words[1]);
  EXPECT_EQ(fcntl(channel, F_GETFD), FD_CLOEXEC);
  uint64_t event;
  EXPECT_EQ(read(channel, &event, sizeof(event)), 8);
  EXPECT_EQ(event, 0x1234u);
  close(channel);
  close(copy);
  close(device);
}

TEST_F(ShimChannels, TheDaemonsErrorIsTheCallers) {
  const int device = open_device();
  abi::Request request{};
  request.op = abi::Op::kAllocPd;
  abi::Reply reply;
  EXPECT_EQ(rocemu_call(device, &request, &reply, nullptr, 0, nullptr, 0), EINVAL);
  close(device);
}

/// Answers with a descriptor that was not requested, the read end of a pipe.
class ShimSurplus : public ShimDevices {
 protected:
  ShimSurplus()
      : ShimDevices([](const abi::Request&, const std::vector<int>&) {
          int ends[2];
          EXPECT_EQ(pipe(ends), 0);
          write_end_ = ends[1];
          return Answer{.fds = {ends[0]}};
        }) {}

  static inline std::atomic<int> write_end_{-1};
};

TEST_F(ShimSurplus, DescriptorsOfAReplyAreClosed) {
  const int device = open_device();
  abi::Request request{};
  request.op = abi::Op::kAllocPd;
  abi::Reply reply;
  EXPECT_EQ(rocemu_call(device, &request, &reply, nullptr, 0, nullptr, 0), 0);
  pollfd entry{write_end_, 0, 0};
  EXPECT_EQ(poll(&entry, 1, 10000), 1) << "still open";
  EXPECT_EQ(entry.revents, POLLERR);
  close(write_end_);
  close(device);
}

class ShimDeadDaemon : public ShimDevices {
 protected:
  ShimDeadDaemon()
      : ShimDevices([](const abi::Request&, const std::vector<int>&) {
          Answer answer;
          answer.hang_up = true;
          return answer;
        }) {}
};

TEST_F(ShimDeadDaemon, IsAnInputOutputErrorAndNoSignal) {
  const int device = open_device();
  abi::Request request{};
  request.op = abi::Op::kAllocPd;
  abi::Reply reply;
  errno = 77;
  EXPECT_EQ(rocemu_call(device, &request, &reply, nullptr, 0, nullptr, 0), EIO);  // while it waits
  EXPECT_EQ(rocemu_call(device, &request, &reply, nullptr, 0, nullptr, 0), EIO);  // before it asks
  EXPECT_EQ(errno, 77);
  close(device);
}

/// Answers with the number of requests so far, and records whether two arrived at the same time.
class ShimConcurrency : public ShimDevices {
 protected:
  ShimConcurrency()
      : ShimDevices([](const abi::Request& request, const std::vector<int>&) {
          Answer answer;
          answer.reply.body.object.handle = request.body.object.handle;
          return answer;
        }) {}

  static void ask_often(int device, uint32_t first) {
    for (uint32_t i = first; i < first + 2000; ++i) {
      abi::Request request{};
      request.op = abi::Op::kDeallocPd;
      request.body.object.handle = i;
      abi::Reply reply;
      ASSERT_EQ(rocemu_call(device, &request, &reply, nullptr, 0, nullptr, 0), 0);
      ASSERT_EQ(reply.body.object.handle, i);
    }
  }
};

TEST_F(ShimConcurrency, EachThreadGetsItsOwnAnswer) {
  const int device = open_device();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([=] { ask_often(device, i * 10000); });
  }
  for (std::thread& thread : threads) thread.join();
  close(device);
}

// rdma-core's tests do this: they allocate device memory in children of the process that opened the
// device.
TEST_F(ShimConcurrency, EachProcessThatInheritedTheDeviceGetsItsOwnAnswer) {
  const int device = open_device();
  std::thread asking([&] { ask_often(device, 90000); });
  std::vector<pid_t> children;
  for (uint32_t i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ask_often(device, i * 10000);
      _exit(HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  asking.join();
  close(device);
}

TEST_F(ShimConcurrency, AProcessThatIsKilledWhileItWaitsLeavesTheDeviceToTheOthers) {
  const int device = open_device();
  for (int i = 0; i < 20; ++i) {
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t child = fork();
    if (child == 0) {
      ask_often(device, 0);
      if (write(started[1], "", 1) != 1) _exit(1);
      for (;;) ask_often(device, 10000);
    }
    close(started[1]);
    char byte;
    ASSERT_EQ(read(started[0], &byte, 1), 1);
    close(started[0]);
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    ask_often(device, 50000);
  }
  close(device);
}

TEST_F(ShimConcurrency, ANonBlockingDeviceIsWaitedFor) {
  const int device = open_device();
  ASSERT_EQ(fcntl(device, F_SETFL, O_NONBLOCK), 0);
  ask_often(device, 0);
  close(device);
}

TEST_F(ShimConcurrency, AChildDoesNotWaitForALockThatItsParentHeld) {
  const int device = open_device();
  std::atomic<bool> stop{false};
  std::thread asking([&] {
    while (!stop) ask_often(device, 0);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      // The child's request cannot be answered, so that its result does not depend on the parent's
      // requests.
      alarm(10);
      abi::Request request{};
      abi::Reply reply;
      const int not_connected = dup2(socket(AF_UNIX, SOCK_SEQPACKET, 0), device);
      _exit(rocemu_call(not_connected, &request, &reply, nullptr, 0, nullptr, 0) == EIO ? 0 : 1);
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  asking.join();
  close(device);
}

}  // namespace
}  // namespace rocemu
