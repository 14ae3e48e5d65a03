// Replaces pages of registered memory, as the arguments say, and then lets a peer access the
// memory: mapped_anew CHANGE WHEN, where WHEN is one of
//   registered    the region is still registered, and used
//   unused        the region is still registered, and other memory is used
//   deregistered  the region is deregistered before, and registered anew after the change
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/support/page_size.h"
#include "tests/system/memory/party.h"

namespace rocemu::system_test {
namespace {

uint8_t* map(void* address = nullptr, int flags = 0) {
  void* pages = mmap(address, 2 * kPageSize, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  EXPECT_NE(pages, MAP_FAILED);
  std::memset(pages, 1, 2 * kPageSize);
  return static_cast<uint8_t*>(pages);
}

/// Replaces the first page in the way that `how` names. Returns whether that succeeded.
bool change(const std::string& how, uint8_t* pages) {
  if (how == "munmap") {
    return munmap(pages, kPageSize) == 0 && map(pages, MAP_FIXED) == pages;
  }
  if (how == "munmap-odd") {  // the kernel unmaps the whole page, although the length is smaller
    return munmap(pages, 100) == 0 && map(pages, MAP_FIXED) == pages;
  }
  if (how == "munmap-fails") return munmap(pages + 1, kPageSize) != 0;
  if (how == "mmap") return map(pages, MAP_FIXED) == pages;
  if (how == "madvise") return madvise(pages, kPageSize, MADV_DONTNEED) == 0;
  if (how == "mremap") {
    uint8_t* elsewhere = map();
    return mremap(pages, kPageSize, kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) ==
               elsewhere &&
           map(pages, MAP_FIXED) == pages;
  }
  if (how == "mremap-over") {
    uint8_t* elsewhere = map();
    return mremap(elsewhere, kPageSize, kPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, pages) == pages;
  }
  return false;
}

int run(const std::string& how, const std::string& when) {
  Party party;
  uint8_t* pages = map();
  uint8_t* others = map();
  MrPtr region = party.enter(pages, 2 * kPageSize);
  MrPtr other_region = party.enter(others, 2 * kPageSize);
  const bool deregisters = when == "deregistered";
  if (deregisters) region.reset();
  if (!change(how, pages)) return 2;
  if (deregisters) region = party.enter(pages, 2 * kPageSize);
  const bool is_used = when != "unused";
  for (int i = 0; i < 3; ++i) {
    party.request(IBV_WR_RDMA_WRITE, 0, is_used ? pages : others, is_used ? region : other_region,
                  8);
    party.request(IBV_WR_RDMA_READ, 64, others, other_region, 8);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace
}  // namespace rocemu::system_test

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return rocemu::system_test::run(arguments[1], arguments[2]);
}
