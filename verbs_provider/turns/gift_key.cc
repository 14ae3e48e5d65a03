#include "verbs_provider/turns/gift_key.h"

#include <cstddef>

#include <fcntl.h>
#include <sys/syscall.h>

#include "verbs_provider/system/kernel.h"

namespace rocemu::turns {
namespace {

/// The bit by which keys of objects that processes share differ from all addresses.
constexpr uint64_t kAmongProcesses = uint64_t{1} << 63;

/// Reads a file through a small buffer, without allocating.
class Reader {
 public:
  explicit Reader(const char* path)
      : fd_(static_cast<int>(kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~Reader() {
    if (fd_ >= 0) kernel(SYS_close, fd_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Returns the next character, or -1 at the end.
  int next() {
    if (at_ == size_) {
      at_ = 0;
      size_ = fd_ >= 0 ? kernel(SYS_read, fd_, buffer_, sizeof buffer_) : 0;
      if (size_ <= 0) {
        size_ = 0;
        return -1;
      }
    }
    return buffer_[at_++];
  }

  /// Returns the hexadecimal number that follows, and stores the character after it.
  uint64_t number(int* end) {
    uint64_t value = 0;
    for (;;) {
      const int c = next();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) {
        *end = c;
        return value;
      }
      value = value * 16 + static_cast<uint64_t>(digit);
    }
  }

  /// Skips the characters up to and including `wanted`. Returns false at the end of the file.
  bool skip_to(char wanted) {
    for (int c = next(); c >= 0; c = next()) {
      if (c == wanted) return true;
    }
    return false;
  }

 private:
  int fd_;
  long at_ = 0, size_ = 0;
  char buffer_[1024];
};

}  // namespace

/// Searches /proc/thread-self/maps for the object's file. Its lines are "begin-end perms offset
/// major:minor inode path" (proc(5)), all hexadecimal except the inode. The inode is read as
/// hexadecimal too, which gives another number, but a unique one for each inode.
uint64_t key_among_processes(const void* object) {
  const auto address = reinterpret_cast<uint64_t>(object);
  Reader maps("/proc/thread-self/maps");
  int end = 0;
  do {
    const uint64_t from = maps.number(&end);
    if (end != '-') break;
    const uint64_t to = maps.number(&end);
    maps.next(), maps.next(), maps.next();
    const bool is_shared = maps.next() == 's';
    if (address < from || address >= to) continue;
    if (!is_shared) break;
    maps.next();
    const uint64_t offset = maps.number(&end);
    const uint64_t major = maps.number(&end);
    const uint64_t minor = maps.number(&end);
    const uint64_t inode = maps.number(&end);
    uint64_t key = (major << 20 | minor) * 0x9e3779b97f4a7c15 + inode;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9 + (offset + (address - from));
    return key | kAmongProcesses;
  } while (maps.skip_to('\n'));
  return key_in_process(object);
}

bool is_among_processes(uint64_t key) {
  return (key & kAmongProcesses) != 0;
}

}  // namespace rocemu::turns
