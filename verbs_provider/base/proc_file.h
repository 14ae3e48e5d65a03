// Reads /proc files line by line, inside a program of which nothing may be disturbed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu::provider {

/// Lines of a file, without the shim, stdio's allocations or a lock of theirs.
class ProcFile {
 public:
  explicit ProcFile(const char* path)
      : fd_(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~ProcFile() {
    if (fd_ >= 0) ::syscall(SYS_close, fd_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  /// -1 if the file could not be opened.
  int fd() const { return fd_; }

  /// The next line, without its newline; null at the end.
  char* next() {
    while (true) {
      char* line = buffer_ + begin_;
      if (auto* newline = static_cast<char*>(memchr(line, '\n', end_ - begin_))) {
        *newline = '\0';
        begin_ = static_cast<size_t>(newline + 1 - buffer_);
        return line;
      }
      if (failed_ || !read_more()) return nullptr;
    }
  }
  bool failed() const { return failed_; }

 private:
  bool read_more() {
    memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    ssize_t size;
    do {
      size = fd_ < 0 ? -1 : ::syscall(SYS_read, fd_, buffer_ + end_, sizeof(buffer_) - end_);
    } while (size < 0 && errno == EINTR);
    failed_ = size < 0 || end_ == sizeof(buffer_);
    if (size <= 0) return false;
    end_ += static_cast<size_t>(size);
    return true;
  }

  int fd_;
  bool failed_ = false;
  size_t begin_ = 0, end_ = 0;
  /// On the stack, which may be a small thread's. A path has at most PATH_MAX bytes; only one of
  /// many newlines, which are escaped, does not fit.
  char buffer_[8192];
};

}  // namespace rocemu::provider
