#include "emulator/os/background_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

namespace rocemu {
namespace {

/// The size up to which data is written immediately if nothing waits, because that is cheaper than
/// waking the thread.
constexpr size_t kLittle = size_t{64} << 10;
constexpr size_t kMaxWaiting = 64 << 20;
constexpr size_t kSpares = 8;

/// The time limits of sync() for the reader of a stream: for one pause in its reading, and in
/// total.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::seconds kMaxPatience{20};

bool is_stream(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

}  // namespace

BackgroundFile::BackgroundFile(const std::string& path)
    : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666)) {
  if (!fd_) {
    error_ = errno;
  } else if (is_stream(fd_.get())) {
    error_ = ESPIPE;  // a FIFO instead of a file: no byte may be omitted from a file
  }
}

BackgroundFile::BackgroundFile(UniqueFd fd) : fd_(std::move(fd)), is_stream_(is_stream(fd_.get())) {
  if (!is_stream_) return;
  ended_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!ended_) error_ = errno;
}

BackgroundFile::~BackgroundFile() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  if (ended_) eventfd_write(ended_.get(), 1);
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundFile::write(std::vector<std::byte>& bytes) {
  std::unique_lock lock(mutex_);
  if (waiting_bytes_ == 0 && bytes.size() <= kLittle && !is_stream_) {
    if (error_ == 0) error_ = write_now(bytes);
    bytes.clear();
    return error_ == 0;
  }
  changed_.wait(lock, [&] { return waiting_bytes_ < kMaxWaiting || error_ != 0; });
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

bool BackgroundFile::has_room() {
  const std::lock_guard guard(mutex_);
  return !is_stream_ || waiting_bytes_ < kMaxWaiting;
}

bool BackgroundFile::sync(Patience patience) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return waiting_bytes_ == 0 || error_ != 0; };
  if (!is_stream_ || patience == Patience::kEndless) changed_.wait(lock, done);
  const auto end = std::chrono::steady_clock::now() + kMaxPatience;
  while (!done() && std::chrono::steady_clock::now() < end) {
    const uint64_t taken_before = taken_bytes_;
    if (!changed_.wait_for(lock, kPatience, done) && taken_bytes_ == taken_before) break;
  }
  if (!done()) error_ = ETIMEDOUT;
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
      if (error_ == 0) error_ = error;
    }
    waiting_bytes_ -= bytes.size();
    bytes.clear();
    if (spare_.size() < kSpares) spare_.push_back(std::move(bytes));
    changed_.notify_all();
  }
}

/// Writes the bytes and returns 0 or errno. The background thread calls this, and write() does
/// while the thread is idle.
int BackgroundFile::write_now(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t size = is_stream_ ? wait_for_reader(bytes.size()) : bytes.size();
    if (size == 0) return ECANCELED;
    const ssize_t written = ::write(fd_.get(), bytes.data(), size);
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      taken_bytes_ += static_cast<size_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno;
    }
  }
  return 0;
}

/// Waits for room in the stream, and returns how many of the `size` bytes can be written without
/// waiting; 0 if the file is being closed. The stream may be the parent's standard output, which
/// must not be made non-blocking.
size_t BackgroundFile::wait_for_reader(size_t size) const {
  pollfd entries[] = {{fd_.get(), POLLOUT, 0}, {ended_.get(), POLLIN, 0}};
  while (poll(entries, 2, -1) < 0) {
  }
  return entries[1].revents != 0 ? 0 : std::min<size_t>(size, PIPE_BUF);
}

}  // namespace rocemu
