// A mapped memory file of the daemon
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/base/process.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SharedMemory() {
    // In a child of fork() the address is not mapped, or something else is mapped there by now.
    if (size_ != 0 && is_this_process(mapped_by_)) munmap(data_, size_);
  }

  /// Maps the file's first `size` bytes. Returns 0 or a positive errno value.
  ///
  /// A child of fork() does not get the mapping, as with the queues and doorbells of a real NIC.
  /// The child could only disturb its parent's use of this memory.
  int map(int fd, uint64_t size) {
    // A direct system call is used, because the shim may replace fstat(). The size is checked,
    // since access beyond the end of a file that is too short would raise SIGBUS.
    struct stat status;
    if (system_call(SYS_fstat, fd, &status) != 0) return errno;
    if (size == 0 || static_cast<uint64_t>(status.st_size) < size) return EIO;
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return errno;
    madvise(data, size, MADV_DONTFORK);
    data_ = static_cast<std::byte*>(data);
    size_ = size;
    mapped_by_ = this_process();
    return 0;
  }

  uint64_t size() const { return size_; }
  std::byte* at(uint64_t offset) const { return data_ + offset; }

 private:
  void swap(SharedMemory& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_by_, other.mapped_by_);
  }

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t mapped_by_ = 0;
};

}  // namespace rocemu::provider
