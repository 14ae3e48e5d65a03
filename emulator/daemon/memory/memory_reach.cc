#include "emulator/daemon/memory/memory_reach.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <string>
#include <type_traits>
#include <utility>

namespace rocemu::daemon {
namespace {

/// The maximum number of bytes for one system call, far below the kernel's maximum of 2 GiB.
constexpr uint64_t kMaxBytesPerCall = uint64_t{1} << 30;

/// The number of bytes at the end of a WRITE that are written by a separate system call, after a
/// barrier. A program may poll the last bytes of a WRITE, and assume that all other bytes have
/// arrived before. x86 makes stores visible in the order of the kernel's copy, but other processors
/// may not.
#if defined(__x86_64__)
constexpr uint64_t kBytesWrittenLast = 0;
#else
constexpr uint64_t kBytesWrittenLast = 8;
#endif
constexpr uint64_t kPage = 4096;  // or a multiple of it

/// A look takes 0.3 us, and copying this number of bytes some 50 us. A new program needs longer
/// until it begins. Between its rounds the daemon sees that the client's socket was closed.
constexpr uint64_t kBytesPerLook = 256 << 10;

bool is_process_vm_permitted(pid_t pid) {
  if (pid <= 0) return false;
  // No process of the user has a page at address 0, so this only tests whether the kernel permits
  // the access.
  char byte;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

/// Returns whether the descriptor is a regular file of procfs. Other files could block, or be
/// pipes.
bool is_proc_file(int fd) {
  struct stat status {};
  struct statfs system {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fstatfs(fd, &system) == 0 &&
         system.f_type == PROC_SUPER_MAGIC;
}

int open_mem_file(pid_t pid) {
  return open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_WRONLY | O_CLOEXEC);
}

/// A position in a list of memory ranges
template <class Range>
class Cursor {
 public:
  explicit Cursor(std::span<const Range> ranges) : ranges_(ranges) { skip_empty(); }

  bool at_end() const { return index_ == ranges_.size(); }
  uint64_t address() const { return start(ranges_[index_]) + offset_; }
  uint64_t left() const { return length(ranges_[index_]) - offset_; }
  void advance(uint64_t bytes) {
    offset_ += bytes;
    skip_empty();
  }

 private:
  static uint64_t start(const engine::RemoteRange& range) { return range.address; }
  static uint64_t length(const engine::RemoteRange& range) { return range.length; }
  template <class Bytes>
  static uint64_t start(const std::span<Bytes>& range) {
    return reinterpret_cast<uintptr_t>(range.data());
  }
  template <class Bytes>
  static uint64_t length(const std::span<Bytes>& range) {
    return range.size();
  }
  void skip_empty() {
    while (index_ < ranges_.size() && offset_ == length(ranges_[index_])) {
      ++index_;
      offset_ = 0;
    }
  }

  std::span<const Range> ranges_;
  size_t index_ = 0;
  uint64_t offset_ = 0;
};

uint64_t bytes_of(std::span<const engine::RemoteRange> ranges) {
  uint64_t bytes = 0;
  for (const engine::RemoteRange& range : ranges) bytes += range.length;
  return bytes;
}

/// Returns the number of bytes that the next system call moves, of the `left` remaining bytes.
template <bool kWrite>
uint64_t bytes_for_call(uint64_t left) {
  if (!kWrite || kBytesWrittenLast == 0) return std::min(left, kMaxBytesPerCall);
  if (left > kBytesWrittenLast) return std::min(left - kBytesWrittenLast, kMaxBytesPerCall);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return left;
}

/// Fills `vectors` with the next ranges: at most IOV_MAX ranges, and at most `bytes` bytes. Returns
/// the number of bytes in them.
template <class Range>
uint64_t gather(Cursor<Range>& cursor, uint64_t bytes, std::vector<iovec>& vectors) {
  vectors.clear();
  uint64_t total = 0;
  while (!cursor.at_end() && vectors.size() < IOV_MAX && total < bytes) {
    const uint64_t piece = std::min(cursor.left(), bytes - total);
    vectors.push_back({reinterpret_cast<void*>(cursor.address()), static_cast<size_t>(piece)});
    cursor.advance(piece);
    total += piece;
  }
  return total;
}

}  // namespace

MemoryReach::MemoryReach(pid_t pid, UniqueFd mem_file, bool prefer_mem_file)
    : pid_(pid), mem_file_(std::move(mem_file)) {
  if (mem_file_ && is_proc_file(mem_file_.get())) {
    way_ = Way::kMemFile;
  } else {
    mem_file_.reset();
  }
  if (!(prefer_mem_file && way_ == Way::kMemFile) && is_process_vm_permitted(pid)) {
    way_ = Way::kProcessVm;
  }
}

MemoryReach::MemoryReach(Way way, pid_t pid, UniqueFd mem_file)
    : way_(way), pid_(pid), mem_file_(std::move(mem_file)) {}

MemoryReach MemoryReach::duplicate() const {
  UniqueFd file(mem_file_ ? fcntl(mem_file_.get(), F_DUPFD_CLOEXEC, 0) : -1);
  const Way way = way_ == Way::kMemFile && !file ? Way::kNone : way_;
  return MemoryReach(way, pid_, std::move(file));
}

engine::MemoryResult MemoryReach::read(std::span<const engine::RemoteRange> from,
                                       std::span<const std::span<uint8_t>> to,
                                       Scratch& scratch) const {
  return copy(from, to, scratch);
}

engine::MemoryResult MemoryReach::write(std::span<const engine::RemoteRange> to,
                                        std::span<const std::span<const uint8_t>> from,
                                        Scratch& scratch) const {
  return copy(to, from, scratch);
}

engine::MemoryResult MemoryReach::write_pinned(
    std::span<const engine::RemoteRange> to, std::span<const std::span<const uint8_t>> from) const {
  using engine::MemoryResult;
  UniqueFd opened;
  if (!mem_file_) opened.reset(open_mem_file(pid_));
  const int file = mem_file_ ? mem_file_.get() : opened.get();
  if (file < 0) return MemoryResult::kDone;
  Cursor<engine::RemoteRange> theirs(to);
  Cursor<std::span<const uint8_t>> ours(from);
  while (!theirs.at_end() && !ours.at_end()) {
    const uint64_t in_page = kPage - theirs.address() % kPage;
    const uint64_t bytes = std::min({theirs.left(), ours.left(), in_page});
    const ssize_t written = pwrite(file, reinterpret_cast<const void*>(ours.address()), bytes,
                                   static_cast<off_t>(theirs.address()));
    if (written == 0) return MemoryResult::kGone;
    theirs.advance(bytes);
    ours.advance(bytes);
  }
  return MemoryResult::kDone;
}

bool MemoryReach::has_executed(uint64_t bytes, uint64_t address) const {
  if (!mem_file_ || has_executed_) return has_executed_;
  bytes_since_look_ += bytes;
  if (bytes_since_look_ < kBytesPerLook) return false;
  bytes_since_look_ = 0;
  char byte;
  has_executed_ = pread(mem_file_.get(), &byte, 1, static_cast<off_t>(address)) == 0;
  return has_executed_;
}

template <class Bytes>
engine::MemoryResult MemoryReach::copy(std::span<const engine::RemoteRange> remote,
                                       std::span<const std::span<Bytes>> local,
                                       Scratch& scratch) const {
  using engine::MemoryResult;
  if (way_ != Way::kProcessVm) return copy_through_file(remote, local);
  const MemoryResult result = copy_between_processes(remote, local, scratch);
  if (result != MemoryResult::kGone || has_executed_ || !mem_file_) return result;
  // The number of a process reaches its memory only until its main thread ends (pthread_exit(3)).
  return copy_through_file(remote, local);
}

template <class Bytes>
engine::MemoryResult MemoryReach::copy_between_processes(
    std::span<const engine::RemoteRange> remote, std::span<const std::span<Bytes>> local,
    Scratch& scratch) const {
  using engine::MemoryResult;
  constexpr bool kWrite = std::is_const_v<Bytes>;
  Cursor<engine::RemoteRange> theirs(remote);
  Cursor<std::span<Bytes>> ours(local);
  uint64_t left = bytes_of(remote);
  if (!theirs.at_end() && has_executed(left, theirs.address())) return MemoryResult::kGone;
  while (!theirs.at_end() && !ours.at_end()) {
    // The local and the remote ranges of a call must have the same number of bytes. If the remote
    // ranges have fewer bytes, because there are IOV_MAX ranges, the local ones are gathered
    // again with that number of bytes.
    const Cursor<std::span<Bytes>> ours_before = ours;
    uint64_t bytes = gather(ours, bytes_for_call<kWrite>(left), scratch.local);
    const uint64_t matched = gather(theirs, bytes, scratch.remote);
    if (matched < bytes) {
      ours = ours_before;
      bytes = gather(ours, matched, scratch.local);
    }
    const auto call = kWrite ? process_vm_writev : process_vm_readv;
    const ssize_t moved = call(pid_, scratch.local.data(), scratch.local.size(),
                               scratch.remote.data(), scratch.remote.size(), 0);
    if (moved < 0 && errno == ESRCH) return MemoryResult::kGone;
    if (moved < 0 || static_cast<uint64_t>(moved) != bytes) return MemoryResult::kFault;
    left -= bytes;
  }
  return theirs.at_end() && ours.at_end() ? MemoryResult::kDone : MemoryResult::kFault;
}

template <class Bytes>
engine::MemoryResult MemoryReach::copy_through_file(std::span<const engine::RemoteRange> remote,
                                                    std::span<const std::span<Bytes>> local) const {
  using engine::MemoryResult;
  constexpr bool kWrite = std::is_const_v<Bytes>;
  Cursor<engine::RemoteRange> theirs(remote);
  Cursor<std::span<Bytes>> ours(local);
  uint64_t left = bytes_of(remote);
  while (!theirs.at_end() && !ours.at_end()) {
    const uint64_t bytes = std::min({theirs.left(), ours.left(), bytes_for_call<kWrite>(left)});
    const int file = mem_file_.get();
    const auto offset = static_cast<off_t>(theirs.address());
    ssize_t moved;
    if constexpr (kWrite) {
      moved = pwrite(file, reinterpret_cast<const void*>(ours.address()), bytes, offset);
    } else {
      moved = pread(file, reinterpret_cast<void*>(ours.address()), bytes, offset);
    }
    if (moved == 0) return MemoryResult::kGone;  // its address space no longer exists
    if (moved < 0 || static_cast<uint64_t>(moved) != bytes) return MemoryResult::kFault;
    theirs.advance(bytes);
    ours.advance(bytes);
    left -= bytes;
  }
  return theirs.at_end() && ours.at_end() ? MemoryResult::kDone : MemoryResult::kFault;
}

}  // namespace rocemu::daemon
