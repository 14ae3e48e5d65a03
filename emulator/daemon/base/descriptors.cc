#include "emulator/daemon/base/descriptors.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace rocemu::daemon {
namespace {

/// The number of reserved descriptors. A message has at most 8, and a busy client can have one
/// message waiting.
constexpr size_t kReserved = 64;

size_t first_reserved() {
  const size_t limit = descriptor_limit();
  return limit - std::min(kReserved, limit / 4);
}

}  // namespace

size_t descriptor_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// The following functions rely on the rule that the system assigns the lowest free number.

bool is_reserved(int fd) {
  return fd >= 0 && static_cast<size_t>(fd) >= first_reserved();
}

bool leaves_few(int fd) {
  const size_t end = first_reserved();
  return fd >= 0 && static_cast<size_t>(fd) >= end - end / 8;
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void tell_of_shortage() {
  static std::atomic_flag told;
  if (told.test_and_set()) return;
  spdlog::warn(
      "few file descriptors are left (RLIMIT_NOFILE is {}): connections and completion channels "
      "are "
      "refused until some are closed; raise the hard limit (`ulimit -Hn`) before the daemon starts",
      descriptor_limit());
}

}  // namespace rocemu::daemon
