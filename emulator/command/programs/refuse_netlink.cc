#include "emulator/command/programs/refuse_netlink.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>

namespace rocemu::command {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

static_assert(std::endian::native == std::endian::little);

constexpr sock_filter load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

/// Loads the lower half of a system call's argument: the arguments of socket(2) are ints.
constexpr sock_filter load_argument(size_t index) {
  return load(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

/// Continues with the next instruction if the loaded word is `value`; otherwise skips `otherwise`
/// instructions.
constexpr sock_filter expect(uint32_t value, uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
}

constexpr sock_filter answer(uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

constexpr sock_filter kFilter[] = {
    load(offsetof(seccomp_data, arch)),
    expect(kArch, 7),
    load(offsetof(seccomp_data, nr)),
    expect(SYS_socket, 5),
    load_argument(0),
    expect(AF_NETLINK, 3),
    load_argument(2),
    expect(NETLINK_RDMA, 1),
    answer(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
    answer(SECCOMP_RET_ALLOW),
};

}  // namespace

std::span<const sock_filter> rdma_netlink_filter() {
  return kFilter;
}

void refuse_rdma_netlink() {
  const sock_fprog program{std::size(kFilter), const_cast<sock_filter*>(kFilter)};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw std::runtime_error(
        "cannot hide the machine's RDMA devices from netlink with seccomp(2): " +
        std::generic_category().message(errno));
}

}  // namespace rocemu::command
