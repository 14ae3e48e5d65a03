// Calls that change the pages of a part of the address space: munmap(2), mmap(2) with MAP_FIXED,
// mremap(2) and madvise(2). A region that is registered there keeps its old pages on a NIC, which
// has pinned them; so the shim notifies the provider (watch_mappings.h). It does not change or
// refuse any call.
#include <atomic>
#include <cstdarg>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/hooks/watch_mappings.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::shim {
namespace {

using abi::MappingCall;

constinit std::atomic<void (*)(uint64_t, uint64_t, MappingCall)> report{nullptr};

/// Reports the range to the provider, extended to whole pages, because the kernel changes whole
/// pages.
void note(const void* address, size_t length, MappingCall call) {
  if (auto* changed = report.load(std::memory_order_acquire)) [[unlikely]] {
    const auto begin = reinterpret_cast<uint64_t>(address);
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    changed(begin, (begin + length + page - 1) / page * page, call);
  }
}

/// Calls the original function, once the shim's constructor has looked it up. Allocators make these
/// calls earlier, when dlsym(3) would call the allocator: until then this makes the system call.
template <class Function>
struct Behind {
  std::atomic<Function*> function{nullptr};

  void look_up(const char* symbol) {
    function.store(reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, symbol)));
  }
  template <class... Args>
  auto call(long number, Args... args) {
    using Result = decltype((*function.load())(args...));
    if (Function* known = function.load(std::memory_order_relaxed)) return known(args...);
    return (Result)system_call(number, args...);  // NOLINT: an int or an address
  }
};

constinit Behind<int(void*, size_t)> next_munmap;
constinit Behind<void*(void*, size_t, int, int, int, off_t)> next_mmap;
constinit Behind<void*(void*, size_t, size_t, int, void*)> next_mremap;
constinit Behind<int(void*, size_t, int)> next_madvise;

__attribute__((constructor)) void look_up() {
  const int saved = errno;
  next_munmap.look_up("munmap");
  next_mmap.look_up("mmap");
  next_mremap.look_up("mremap");
  next_madvise.look_up("madvise");
  errno = saved;
}

/// Returns whether the advice discards the pages. A shared mapping keeps its pages; the provider
/// knows which regions are in shared mappings.
bool drops_pages(int advice) {
#ifndef MADV_DONTNEED_LOCKED
  constexpr int MADV_DONTNEED_LOCKED = 24;
#endif
  return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

extern "C" __attribute__((visibility("default"))) void rocemu_watch_mappings(
    void (*changed)(uint64_t, uint64_t, rocemu::abi::MappingCall)) {
  report.store(changed, std::memory_order_release);
}

ROCEMU_REPLACE(int, munmap, (void* address, size_t length)) {
  const int result = next_munmap.call(SYS_munmap, address, length);
  if (result == 0) note(address, length, MappingCall::kMunmap);
  return result;
}

ROCEMU_REPLACE(void*, mmap,
               (void* address, size_t length, int protection, int flags, int fd, off_t offset)) {
  void* pages = next_mmap.call(SYS_mmap, address, length, protection, flags, fd, offset);
  if ((flags & MAP_FIXED) != 0 && pages != MAP_FAILED) note(address, length, MappingCall::kMmap);
  return pages;
}
ROCEMU_REPLACE_ALIAS(mmap64, mmap);

ROCEMU_REPLACE(void*, mremap, (void* address, size_t length, size_t new_length, int flags, ...)) {
  va_list args;
  va_start(args, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void*) : nullptr;
  va_end(args);
  void* now = next_mremap.call(SYS_mremap, address, length, new_length, flags, wanted);
  if (now == MAP_FAILED) return now;
  if ((flags & MREMAP_FIXED) != 0) note(now, new_length, MappingCall::kMremap);
  if (now != address) {
    note(address, length, MappingCall::kMremap);
  } else if (new_length < length) {
    note(static_cast<char*>(address) + new_length, length - new_length, MappingCall::kMremap);
  }
  return now;
}

ROCEMU_REPLACE(int, madvise, (void* address, size_t length, int advice)) {
  const int result = next_madvise.call(SYS_madvise, address, length, advice);
  if (result == 0 && drops_pages(advice)) note(address, length, MappingCall::kMadvise);
  return result;
}
