#include "verbs_provider/memory_map.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu::provider {
namespace {

/// Lines of a file, without the shim, stdio's allocations or a lock of theirs.
class Lines {
 public:
  explicit Lines(const char* path)
      : fd_(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~Lines() {
    if (fd_ >= 0) ::syscall(SYS_close, fd_);
  }

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

/// "begin-end rwxs offset major:minor inode   path"
bool parse(char* line, MappedRange* range) {
  char* at;
  range->begin = strtoull(line, &at, 16);
  if (*at != '-') return false;
  range->end = strtoull(at + 1, &at, 16);
  if (strnlen(at, 5) < 5) return false;
  range->writable = at[2] == 'w';
  range->shared = at[4] == 's';
  at += 5;
  strtoull(at, &at, 16);  // offset
  strtoull(at, &at, 16);  // major
  if (*at != ':') return false;
  strtoull(at + 1, &at, 16);  // minor
  range->inode = strtoull(at, &at, 10);
  const char* path = at + strspn(at, " ");
  const bool plain = *path == '\0' || strcmp(path, "[heap]") == 0 || strncmp(path, "[anon", 5) == 0;
  range->anonymous = range->inode == 0 && plain;
  return true;
}

}  // namespace

bool for_each_mapped(uint64_t begin, uint64_t end, void* context,
                     bool (*visit)(void* context, const MappedRange& range)) {
  Lines lines("/proc/self/maps");
  while (char* line = lines.next()) {
    MappedRange range;
    if (!parse(line, &range)) return false;
    if (range.begin >= end) return true;
    if (range.end <= begin) continue;
    if (range.begin < begin) range.begin = begin;
    if (range.end > end) range.end = end;
    if (!visit(context, range)) return true;
  }
  return !lines.failed();
}

}  // namespace rocemu::provider
