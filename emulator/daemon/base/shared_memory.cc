#include "emulator/daemon/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>

namespace rocemu::daemon {
namespace {

std::atomic<uint32_t> mappings{0};  // of all clients

/// Returns the maximum number of mappings for clients: three quarters of what the system allows a
/// process (vm.max_map_count), since malloc also needs some.
uint32_t most_mappings() {
  static const uint32_t most = [] {
    uint32_t allowed = 65530;
    std::ifstream("/proc/sys/vm/max_map_count") >> allowed;
    return allowed / 4 * 3;
  }();
  return most;
}

void* map(const UniqueFd& file, uint64_t size) {
  if (mappings.fetch_add(1, std::memory_order_relaxed) < most_mappings()) {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data != MAP_FAILED) return data;
  }
  mappings.fetch_sub(1, std::memory_order_relaxed);
  return MAP_FAILED;
}

}  // namespace

SharedMemory::~SharedMemory() {
  unmap_end(size_);
}

void SharedMemory::unmap_end(uint64_t bytes) {
  if (data_ == nullptr) return;
  bytes = std::min(bytes, size_);
  size_ -= bytes;
  munmap(data_ + size_, bytes);
  if (size_ != 0) return;
  data_ = nullptr;
  mappings.fetch_sub(1, std::memory_order_relaxed);
}

std::optional<NewSharedMemory> NewSharedMemory::create(const char* name, uint64_t size) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return std::nullopt;
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) return std::nullopt;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return std::nullopt;
  }
  void* data = map(file, size);
  if (data == MAP_FAILED) return std::nullopt;
  return NewSharedMemory{SharedMemory(static_cast<std::byte*>(data), size), std::move(file)};
}

}  // namespace rocemu::daemon
