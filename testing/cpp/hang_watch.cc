#include "testing/cpp/hang_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/abi/test_watch.h"
#include "testing/cpp/rocemu/testing.h"

namespace rocemu::testing {

HangWatch::HangWatch() : fd_(memfd_create("rocemu-test-watch", MFD_CLOEXEC)) {
  void* memory = MAP_FAILED;
  if (fd_ >= 0 && ftruncate(fd_, sizeof *watch_) == 0)
    memory = mmap(nullptr, sizeof *watch_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    throw Error(std::string("cannot make memory to share with rocemu: ") + std::strerror(error));
  }
  watch_ = static_cast<abi::TestWatch*>(memory);
  watch_->signal = SIGABRT;
}

HangWatch::~HangWatch() {
  munmap(watch_, sizeof *watch_);
  close(fd_);
}

HangWatch::Waiting::Waiting(HangWatch* watch) : watch_(watch), index_(abi::TestWatch::kThreads) {
  if (watch_ == nullptr) return;
  hangs_before_ = watch_->watch_->hangs.load();
  const auto thread = static_cast<int32_t>(syscall(SYS_gettid));
  // If no entry is free, `rocemu run` regards this thread as not waiting.
  for (index_ = 0; index_ < abi::TestWatch::kThreads; ++index_) {
    int32_t free = 0;
    if (watch_->watch_->waiting[index_].compare_exchange_strong(free, thread)) break;
  }
}

HangWatch::Waiting::~Waiting() {
  if (index_ < abi::TestWatch::kThreads) watch_->watch_->waiting[index_].store(0);
}

std::optional<std::string> HangWatch::Waiting::hang() const {
  if (watch_ == nullptr || watch_->watch_->hangs.load() == hangs_before_) return std::nullopt;
  const size_t length =
      std::min<size_t>(watch_->watch_->report_length.load(), abi::TestWatch::kReportSize);
  return std::string(watch_->watch_->report, length);
}

}  // namespace rocemu::testing
