#include "emulator/command/doctor/memory_probe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "emulator/command/base/error.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

constexpr uint64_t kBefore = 0x0123456789abcdef;  // written by the program
constexpr uint64_t kAfter = 0xfedcba9876543210;   // written by the daemon

// A variable that has the same address in all three processes of the probe.
volatile uint64_t g_word = 0;

constexpr int kProcessVm = 1;
constexpr int kPassedMemFd = 2;

void send_fd(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

int receive_fd(int socket) {
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

[[noreturn]] void be_program(int socket) {
  g_word = kBefore;
  send_fd(socket, open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  char byte;
  (void)!read(socket, &byte, 1);  // returns when the daemon has closed its end
  _exit(0);
}

[[noreturn]] void be_daemon(int socket, pid_t program) {
  setsid();
  const int mem = receive_fd(socket);
  int works = 0;
  uint64_t value = 0;
  const uint64_t after = kAfter;
  iovec local{&value, sizeof value};
  iovec local_after{const_cast<uint64_t*>(&after), sizeof after};
  iovec remote{const_cast<uint64_t*>(&g_word), sizeof value};
  const auto whole = static_cast<ssize_t>(sizeof value);
  if (process_vm_readv(program, &local, 1, &remote, 1, 0) == whole && value == kBefore &&
      process_vm_writev(program, &local_after, 1, &remote, 1, 0) == whole)
    works |= kProcessVm;
  const auto offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(&g_word));
  if (mem >= 0 && pread(mem, &value, sizeof value, offset) == whole &&
      (value == kBefore || value == kAfter) && pwrite(mem, &after, sizeof after, offset) == whole &&
      pread(mem, &value, sizeof value, offset) == whole && value == kAfter)
    works |= kPassedMemFd;
  _exit(works);
}

}  // namespace

MemoryAccess probe_memory_access() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    fail_with_errno("cannot make a socket pair", errno);
  UniqueFd program_end(fds[0]);
  UniqueFd daemon_end(fds[1]);
  const pid_t program = fork();
  if (program < 0) fail_with_errno("cannot start another process", errno);
  if (program == 0) {
    daemon_end.reset();
    be_program(program_end.get());
  }
  program_end.reset();
  const pid_t daemon = fork();
  if (daemon == 0) be_daemon(daemon_end.get(), program);
  const int error = errno;
  int works = 0;
  if (daemon > 0) waitpid(daemon, &works, 0);
  daemon_end.reset();
  waitpid(program, nullptr, 0);
  if (daemon < 0) fail_with_errno("cannot start another process", error);
  const int bits = WIFEXITED(works) ? WEXITSTATUS(works) : 0;
  return {.process_vm = (bits & kProcessVm) != 0, .passed_mem_fd = (bits & kPassedMemFd) != 0};
}

}  // namespace rocemu::command
