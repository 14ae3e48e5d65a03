// ibv_reg_dmabuf_mr(3). The memory of the descriptor is mapped into the process, where the daemon
// accesses it like all other memory. The descriptor can be a dma-buf or anything else that can be
// mapped (a memfd), so that code for device memory needs no device.
#include <cerrno>
#include <cstdint>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/region_memory.h"
#include "verbs_provider/objects/register_region.h"
#include "verbs_provider/structs/mr.h"

namespace rocemu::provider {
namespace {

/// Returns the size of the descriptor's memory, or -1 if it is unknown. lseek(2) reports the size
/// of a dma-buf, whose file position has no other use.
off_t size_of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return -1;
  if (status.st_size != 0 || S_ISREG(status.st_mode)) return status.st_size;
  const int saved = errno;
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end > 0) lseek(fd, 0, SEEK_SET);
  errno = saved;
  return end > 0 ? end : -1;
}

/// Makes the same checks as Linux's uverbs and its ib_umem_dmabuf_get().
int check(uint64_t offset, uint64_t length, uint64_t iova, int fd, int access, uint64_t page) {
  constexpr int kAllowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_RELAXED_ORDERING;
  // ibv_reg_dmabuf_mr(3): "iova [...] must have the same page offset as offset."
  if ((offset ^ iova) % page != 0) return EINVAL;
  constexpr int kChanges = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const bool changes = (access & kChanges) != 0;
  if ((access & ~kAllowed) != 0 || (changes && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
    return EINVAL;
  }
  struct stat status;
  if (fstat(fd, &status) != 0) return EBADF;
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISDIR(status.st_mode)) {
    return EINVAL;
  }
  uint64_t end;
  if (length == 0 || __builtin_add_overflow(offset, length, &end) || end > INT64_MAX) return EINVAL;
  const off_t size = size_of(fd);
  return size >= 0 && end > static_cast<uint64_t>(size) ? EINVAL : 0;
}

}  // namespace

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                      int access) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (const int error = check(offset, length, iova, fd, access, page); error != 0) {
    return fail<ibv_mr>(error);
  }
  const uint64_t before = offset % page;
  const size_t mapped = length + before;
  const int protection =
      (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  void* mapping =
      mmap(nullptr, mapped, protection, MAP_SHARED, fd, static_cast<off_t>(offset - before));
  if (mapping == MAP_FAILED) {
    // A descriptor that cannot be mapped is not memory; the kernel returns EINVAL for one that is
    // not a dma-buf.
    return fail<ibv_mr>(errno == ENODEV || errno == ENXIO || errno == ESPIPE ? EINVAL : errno);
  }
  const uint64_t address = reinterpret_cast<uint64_t>(mapping) + before;
  uint32_t is_shared;
  int error = check_region_memory(pd->context, address, length, access, &is_shared);
  Mr* mr = nullptr;
  if (error == 0) {
    mr = register_region(pd,
                         {.pd = 0,
                          .access = static_cast<uint32_t>(access),
                          .address = address,
                          .length = length,
                          .iova = iova,
                          .kind = abi::RegionKind::kMemory,
                          .is_shared = is_shared},
                         MrType::kDmabufMr);
    if (mr == nullptr) error = errno;
  }
  if (mr == nullptr) {
    munmap(mapping, mapped);
    return fail<ibv_mr>(error);
  }
  mr->mapping = mapping;
  mr->mapped = mapped;
  return &mr->verbs.mr;
}

}  // namespace rocemu::provider
