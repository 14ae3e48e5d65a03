// Memory that a client and the daemon map. It is a memfd that no process can shrink, grow or
// unseal, so that touching it never raises SIGBUS.
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

  /// Unmaps the last `bytes` bytes, or all if there are fewer.
  void unmap_end(uint64_t bytes);

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  friend struct NewSharedMemory;
  SharedMemory(std::byte* data, uint64_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

/// New shared memory, which contains zeros. It is sparse: only touched pages cost memory.
struct NewSharedMemory {
  SharedMemory memory;
  UniqueFd file;  // for the client; the mapping does not need it

  /// Creates the memory. Returns nothing if the system has no more memory or descriptors, or if the
  /// maximum number of mappings is reached. `size` must not be 0.
  static std::optional<NewSharedMemory> create(const char* name, uint64_t size);
};

}  // namespace rocemu::daemon
