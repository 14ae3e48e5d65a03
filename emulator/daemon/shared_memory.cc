#include "emulator/daemon/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

std::optional<SharedMemory> map_sealed(const UniqueFd& file, uint64_t size) {
  struct stat status {};
  struct statfs system {};
  if (fstat(file.get(), &status) != 0 || fstatfs(file.get(), &system) != 0) return std::nullopt;
  // Huge pages may have run out when they are touched.
  if (system.f_type != TMPFS_MAGIC || static_cast<uint64_t>(status.st_size) != size) {
    return std::nullopt;
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return std::nullopt;
  void* data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (data == MAP_FAILED) return std::nullopt;
  return SharedMemory(static_cast<std::byte*>(data), size);
}

}  // namespace rocemu::daemon
