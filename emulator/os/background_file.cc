#include "emulator/os/background_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace rocemu {
namespace {

/// So much is written at once if nothing waits: it is cheaper than waking the thread.
constexpr size_t kLittle = 64 * 1024;
constexpr size_t kMostWaiting = 64 << 20;
constexpr size_t kSpares = 8;

}  // namespace

BackgroundFile::BackgroundFile(const std::string& path)
    : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
  if (!fd_) error_ = errno;
}

BackgroundFile::~BackgroundFile() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundFile::write(std::vector<std::byte>& bytes) {
  std::unique_lock lock(mutex_);
  if (waiting_bytes_ == 0 && bytes.size() <= kLittle) {
    if (error_ == 0) error_ = write_now(bytes);
    bytes.clear();
    return error_ == 0;
  }
  changed_.wait(lock, [&] { return waiting_bytes_ < kMostWaiting || error_ != 0; });
  if (error_ != 0) {
    bytes.clear();
    return false;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  waiting_bytes_ += bytes.size();
  const size_t capacity = bytes.capacity();
  waiting_.push_back(std::move(bytes));
  if (spare_.empty()) {
    bytes = {};
    bytes.reserve(capacity);
  } else {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  lock.unlock();
  changed_.notify_all();
  return true;
}

bool BackgroundFile::sync() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_bytes_ == 0 || error_ != 0; });
  return error_ == 0;
}

int BackgroundFile::error() {
  const std::lock_guard guard(mutex_);
  return error_;
}

void BackgroundFile::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !waiting_.empty() || ending_; });
    if (waiting_.empty()) return;
    std::vector<std::byte> bytes = std::move(waiting_.front());
    waiting_.pop_front();
    if (error_ == 0) {
      lock.unlock();
      const int error = write_now(bytes);
      lock.lock();
      error_ = error;
    }
    waiting_bytes_ -= bytes.size();
    bytes.clear();
    if (spare_.size() < kSpares) spare_.push_back(std::move(bytes));
    changed_.notify_all();
  }
}

/// By the thread, or by the caller while the thread has nothing to do. Returns errno or 0.
int BackgroundFile::write_now(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace rocemu
