// Memory that a client maps too. It is a memfd that no process can shrink, grow or unseal, so that
// touching it never raises SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SharedMemory();

  /// Unmaps the last `bytes` bytes, or all that are left.
  void unmap_end(uint64_t bytes);

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  friend struct NewSharedMemory;
  SharedMemory(std::byte* data, uint64_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

/// Zeroed and sparse, however large: only touched pages cost memory.
struct NewSharedMemory {
  SharedMemory memory;
  UniqueFd file;  // for the client; the mapping does not need it

  /// Returns nothing if the system has no more memory or mappings, or soon would not; `size` must
  /// not be 0.
  static std::optional<NewSharedMemory> create(const char* name, uint64_t size);
};

}  // namespace rocemu::daemon
