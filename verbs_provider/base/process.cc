#include "verbs_provider/base/process.h"

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace rocemu::provider {
namespace {

/// process_mark points here if the kernel cannot wipe a page (before Linux 4.14); children are then
/// not recognized.
constinit std::atomic<uint64_t> never_wiped{0};

/// The number that was assigned last. A child continues the numbers of its ancestors, so its
/// numbers are larger than theirs.
constinit std::atomic<uint64_t> latest{0};

__attribute__((constructor)) void make_mark() {
  constexpr size_t kSize = sizeof(std::atomic<uint64_t>);  // the kernel rounds up to a page
  void* page = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, kSize, MADV_WIPEONFORK) == 0) {
    process_mark = new (page) std::atomic<uint64_t>(0);
  } else {
    munmap(page, kSize);
  }
}

}  // namespace

constinit std::atomic<uint64_t>* process_mark = &never_wiped;

uint64_t this_process() {
  uint64_t mine = process_mark->load(std::memory_order_relaxed);
  if (mine != 0) return mine;
  const uint64_t next = latest.fetch_add(1, std::memory_order_relaxed) + 1;
  return process_mark->compare_exchange_strong(mine, next, std::memory_order_relaxed) ? next : mine;
}

}  // namespace rocemu::provider
