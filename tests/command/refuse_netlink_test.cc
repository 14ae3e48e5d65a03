// Tests the filter of refuse_netlink.h: executes it with an interpreter for the instructions that
// it uses (Linux, Documentation/networking/filter.rst).
#include "emulator/command/programs/refuse_netlink.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace rocemu::command {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kHere = AUDIT_ARCH_X86_64, kElsewhere = AUDIT_ARCH_I386;
#elif defined(__aarch64__)
constexpr uint32_t kHere = AUDIT_ARCH_AARCH64, kElsewhere = AUDIT_ARCH_ARM;
#endif

constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPROTONOSUPPORT;

uint32_t run_filter(const seccomp_data& call) {
  const std::span<const sock_filter> filter = rdma_netlink_filter();
  uint32_t loaded = 0;
  for (size_t next = 0; next < filter.size(); ++next) {
    const sock_filter& one = filter[next];
    switch (one.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        EXPECT_LE(one.k + sizeof loaded, sizeof call);
        std::memcpy(&loaded, reinterpret_cast<const char*>(&call) + one.k, sizeof loaded);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        next += loaded == one.k ? one.jt : one.jf;
        break;
      case BPF_RET | BPF_K:
        return one.k;
      default:
        ADD_FAILURE() << "instruction " << one.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the filter has no end";
  return 0;
}

seccomp_data socket_call(int domain, int type, int protocol) {
  return {.nr = SYS_socket,
          .arch = kHere,
          .instruction_pointer = 0,
          .args = {static_cast<uint32_t>(domain), static_cast<uint32_t>(type),
                   static_cast<uint32_t>(protocol), 0, 0, 0}};
}

TEST(RefuseNetlink, RefusesTheSocketOfRdma) {
  EXPECT_EQ(run_filter(socket_call(AF_NETLINK, SOCK_RAW, NETLINK_RDMA)), kRefused);
  EXPECT_EQ(run_filter(socket_call(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_RDMA)), kRefused);
}

// The kernel uses only the lower 32 bits of these arguments, so the filter must do the same.
TEST(RefuseNetlink, ReadsOnlyThePartOfAnArgumentThatTheKernelReads) {
  seccomp_data call = socket_call(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  call.args[0] |= uint64_t{1} << 32;
  call.args[2] |= uint64_t{7} << 40;
  EXPECT_EQ(run_filter(call), kRefused);
}

TEST(RefuseNetlink, AllowsEverythingElse) {
  EXPECT_EQ(run_filter(socket_call(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), SECCOMP_RET_ALLOW);
  EXPECT_EQ(run_filter(socket_call(AF_INET, SOCK_STREAM, NETLINK_RDMA)), SECCOMP_RET_ALLOW);
  seccomp_data call = socket_call(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  call.nr = SYS_socketpair;
  EXPECT_EQ(run_filter(call), SECCOMP_RET_ALLOW);
  // On other architectures, these system call numbers belong to other calls.
  call = socket_call(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  call.arch = kElsewhere;
  EXPECT_EQ(run_filter(call), SECCOMP_RET_ALLOW);
}

}  // namespace
}  // namespace rocemu::command
