#include "emulator/daemon/base/foreign_descriptors.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifndef STATX_TYPE  // musl before 1.2.5 has no statx(2)
#include <linux/stat.h>
#endif

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace rocemu::daemon {
namespace {

/// The time limit for examining a descriptor. If its file system takes longer to answer, the
/// descriptor is not kept.
constexpr std::chrono::milliseconds kMaxExamination{20};
/// The maximum number of threads, since a malicious client can block each of them forever.
constexpr unsigned kMaxThreads = 16;

/// Runs work that can block, in separate threads. A thread ends when no work is left.
class Elsewhere {
 public:
  /// Starts the work, or queues it if all threads are busy. If `at_once` is true and all threads
  /// are busy, returns false instead of queueing it.
  bool run(std::function<void()> work, bool at_once) {
    const std::scoped_lock lock(mutex_);
    if (threads_ == kMaxThreads && at_once) return false;
    work_.push_back(std::move(work));
    if (threads_ == kMaxThreads) return true;
    try {
      std::thread([this] { run_all(); }).detach();
      ++threads_;
    } catch (const std::system_error&) {
      if (at_once) work_.pop_back();
      return !at_once;  // the work waits for the next free thread
    }
    return true;
  }

 private:
  void run_all() {
    std::unique_lock lock(mutex_);
    while (!work_.empty()) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
    --threads_;
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
  unsigned threads_ = 0;
};

/// Returns the only object of this class. It is never destroyed, because its threads can outlive
/// everything else.
Elsewhere& elsewhere() {
  static Elsewhere& only = *new Elsewhere;
  return only;
}

bool is_unix_socket(int fd) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/// Returns the device numbers of the file, as far as the system knows them without asking the file
/// system (AT_STATX_DONT_SYNC).
std::pair<uint32_t, uint32_t> device_of(int fd, const char* path) {
  struct statx status {};
  const int flags = AT_STATX_DONT_SYNC | (path[0] == '\0' ? AT_EMPTY_PATH : 0);
  if (syscall(SYS_statx, fd, path, flags, STATX_TYPE, &status) != 0) return {};
  return {status.stx_dev_major, status.stx_dev_minor};
}

bool is_of_our_procfs(int fd) {
  static const auto ours = device_of(AT_FDCWD, "/proc/self/stat");
  return ours != std::pair<uint32_t, uint32_t>{} && device_of(fd, "") == ours;
}

/// Returns whether the file is in the procfs of another pid namespace.
bool is_of_another_procfs(int fd) {
  auto copy = std::make_shared<UniqueFd>(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!*copy) return false;
  auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> result = answer->get_future();
  const auto examine = [copy, answer] {
    struct statfs system {};
    answer->set_value(fstatfs(copy->get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC);
    copy->reset();
  };
  return elsewhere().run(examine, /*at_once=*/true) &&
         result.wait_for(kMaxExamination) == std::future_status::ready && result.get();
}

bool answers_at_once(int fd) {
  return is_unix_socket(fd) || fcntl(fd, F_GET_SEALS) >= 0 || is_of_our_procfs(fd);
}

void close_elsewhere(UniqueFd fd) {
  elsewhere().run([held = std::make_shared<UniqueFd>(std::move(fd))] { held->reset(); },
                  /*at_once=*/false);
}

}  // namespace

void set_foreign_aside(std::vector<UniqueFd>& fds, bool memory) {
  for (UniqueFd& fd : fds) {
    // The daemon waits for the examination of at most one descriptor of a message.
    if (answers_at_once(fd.get()) ||
        (std::exchange(memory, false) && is_of_another_procfs(fd.get()))) {
      continue;
    }
    close_elsewhere(std::move(fd));
  }
}

}  // namespace rocemu::daemon
