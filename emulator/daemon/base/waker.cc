#include "emulator/daemon/base/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {

// Neither call can fail but for a counter that is at its end, or at 0: then it is as it should be.
Waker::Waker(EventLoop& loop) : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) fail_start("eventfd", errno);
  watch_ = loop.watch(fd_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    [[maybe_unused]] const ssize_t size = read(fd_.get(), &count, sizeof count);
  });
  if (!watch_) fail_start("cannot watch an eventfd", errno);
}

void Waker::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(fd_.get(), &one, sizeof one);
}

}  // namespace rocemu::daemon
