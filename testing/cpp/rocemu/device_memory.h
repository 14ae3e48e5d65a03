// Memory for ibv_reg_dmabuf_mr(3) without a GPU: a memfd, which rocemu's devices accept like a
// dma-buf.
//
//   rocemu::testing::DeviceMemory memory(1 << 20);
//   ibv_mr* mr = ibv_reg_dmabuf_mr(pd, 0, memory.size(), 0, memory.fd(), access);
//   std::memcpy(memory.data(), ...);  // what a kernel of the GPU would do
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace rocemu::testing {

class DeviceMemory {
 public:
  /// Allocates `size` bytes, rounded up to whole pages and filled with zeros. Throws
  /// std::system_error.
  explicit DeviceMemory(size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_ = (size + page - 1) / page * page;
    fd_ = memfd_create("device memory", MFD_CLOEXEC);
    if (fd_ < 0) fail("memfd_create");
    if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) fail("ftruncate");
    data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (data_ == MAP_FAILED) fail("mmap");
  }
  ~DeviceMemory() {
    munmap(data_, size_);
    close(fd_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  int fd() const { return fd_; }
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  [[noreturn]] void fail(const char* what) {
    const int error = errno;
    if (fd_ >= 0) close(std::exchange(fd_, -1));
    throw std::system_error(error, std::generic_category(), what);
  }

  int fd_ = -1;
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
};

}  // namespace rocemu::testing
