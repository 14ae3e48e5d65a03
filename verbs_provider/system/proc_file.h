// Reads /proc files line by line without disturbing the program that contains this code
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {

/// The lines of a file, read without the shim and without stdio's allocations and locks
class ProcFile {
 public:
  explicit ProcFile(const char* path)
      : fd_(static_cast<int>(system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~ProcFile() {
    if (fd_ >= 0) system_call(SYS_close, fd_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  /// Returns the descriptor, or -1 if the file could not be opened.
  int fd() const { return fd_; }

  /// Returns the next line without its newline, truncated if it is too long, or null at the end.
  /// The line is valid until the next call.
  char* next() {
    while (true) {
      char* line = buffer_ + begin_;
      if (auto* newline = static_cast<char*>(memchr(line, '\n', end_ - begin_))) {
        *newline = '\0';
        begin_ = static_cast<size_t>(newline + 1 - buffer_);
        return line;
      }
      if (end_ - begin_ == kLine) return cut_line();
      if (failed_ || !read_more()) return nullptr;
    }
  }
  bool failed() const { return failed_; }

 private:
  /// The longest part of a line that is used. Objects of this class are on the stack, which can be
  /// a thread's small one.
  static constexpr size_t kLine = 4096;

  ssize_t read(char* to, size_t size) {
    ssize_t count;
    do {
      count = fd_ < 0 ? -1 : system_call(SYS_read, fd_, to, size);
    } while (count < 0 && errno == EINTR);
    failed_ |= count < 0;
    return count;
  }

  bool read_more() {
    memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const ssize_t size = read(buffer_ + end_, kLine - end_);
    if (size <= 0) return false;
    end_ += static_cast<size_t>(size);
    return true;
  }

  /// Returns the beginning of a line whose rest is skipped.
  char* cut_line() {
    char more[256];
    ssize_t size;
    while ((size = read(more, sizeof(more))) > 0) {
      const auto* newline = static_cast<const char*>(memchr(more, '\n', static_cast<size_t>(size)));
      if (newline == nullptr) continue;
      system_call(SYS_lseek, fd_, newline + 1 - (more + size), SEEK_CUR);
      break;
    }
    char* line = buffer_ + begin_;
    line[kLine] = '\0';
    begin_ = end_ = 0;
    return line;
  }

  int fd_;
  bool failed_ = false;
  size_t begin_ = 0, end_ = 0;
  char buffer_[kLine + 1];
};

}  // namespace rocemu::provider
