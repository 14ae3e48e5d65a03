#include "emulator/daemon/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

namespace rocemu::daemon {

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::optional<NewSharedMemory> NewSharedMemory::create(const char* name, uint64_t size) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return std::nullopt;
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) return std::nullopt;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return std::nullopt;
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return std::nullopt;
  return NewSharedMemory{SharedMemory(static_cast<std::byte*>(data), size), std::move(file)};
}

}  // namespace rocemu::daemon
