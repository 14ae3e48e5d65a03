// Pages of memory regions that are lent to the daemon: it maps them too, and reaches them without a
// system call, which takes longer than all the rest of a short message.
//
// Lending replaces pages of the program by those of a memory file with the same contents, at the
// same addresses. The program cannot tell:
// - It is done when a region is registered, by a program with one thread, since between copying and
//   replacing nobody may write. So nothing is lent where other regions of this process overlap,
//   into which the NIC might write, and nothing of which any page is not private, writable and
//   anonymous. Only whole pages inside the region: what shares a page with it stays as it was.
//   (That the kernel is writing there at the same time, for io_uring(7) say, is not noticed.)
// - It ends when the last region of it is deregistered: the program gets private memory back. If by
//   then there are several threads, they stay pages of the file, which the daemon forgets.
// - A child of fork() gets private copies, as it would have.
//
// What is lent is limited, at a time and in a process's life (lent_pages.cc).
//
// Until it is deregistered, such memory is as if pinned, as for a NIC of hardware: when the program
// unmaps it, the NIC goes on with the pages that were registered. And like a NIC, it does not care
// for mprotect().
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// Which of this process's memory a region is. It stays where it is while it is entered.
struct RegionMemory {
  uint64_t begin = 0, end = 0;
  ibv_context* context = nullptr;
  RegionMemory *previous = nullptr, *next = nullptr;  // of all that are entered
  uint64_t lent_begin = 0, lent_end = 0;              // what was lent on its account

  bool is_lent(uint64_t address, uint64_t length) const {
    return address >= lent_begin && address < lent_end && length <= lent_end - address;
  }
};

enum class Lending { kNo, kIfPossible };

/// A region has been registered, of which nobody knows the keys yet.
void enter_region_memory(ibv_context* context, RegionMemory* region, uint64_t address,
                         uint64_t length, Lending lending);

/// It is no more. Also when it was never entered.
void leave_region_memory(RegionMemory* region);

/// The connection is about to be closed: with it go its regions that are still there.
void leave_all_regions_of(ibv_context* context);

/// To be called before the daemon first looks at that memory of a region: if some may have to be
/// waited for (a userfaultfd's, a file's on FUSE or NFS), it has to know.
void tell_of_blocking_memory(ibv_context* context, uint64_t address, uint64_t length);

}  // namespace rocemu::provider
