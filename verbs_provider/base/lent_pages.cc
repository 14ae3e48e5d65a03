#include "verbs_provider/base/lent_pages.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include "emulator/abi/control.h"
#include "verbs_provider/base/context.h"
#include "verbs_provider/base/file_systems.h"
#include "verbs_provider/base/memory_map.h"
#include "verbs_provider/base/unchecked_copy.h"
#include "verbs_provider/base/valgrind.h"
#include "verbs_provider/shim/blocking_memory.h"
#include "verbs_provider/shim/call.h"
#include "verbs_provider/shim/system_call.h"

namespace rocemu::provider {
namespace {

/// Pages of a memory file where pages of the program were.
struct Lent {
  uint64_t begin, end;   // equal: this entry is free
  uint64_t inode;        // of the memory file
  ibv_context* context;  // whose daemon knows of it; null when none does
  bool is_for_children;  // a child of fork() is to have a copy
  std::byte* copy;       // which it gets while somebody forks

  uint64_t size() const { return end - begin; }
};

/// Of the process, since that is what the memory belongs to.
struct State {
  Mutex lock;
  Lent lent[abi::kMaxLentPieces];
  RegionMemory* regions;
  uint64_t bytes;  // lent
  uint64_t bytes_ever;
  uint32_t times_ever;
  bool forks_are_watched;  // since the library was loaded
  bool memory_is_watched;
  bool blocks;  // some page may have to be waited for
};
/// For as long as the process is there: somebody may deregister when it ends.
union Lasting {
  constexpr Lasting() : state{} {}
  ~Lasting() {}
  State state;
};
constinit Lasting lasting;
State& state = lasting.state;

/// In a process's life. To lend and take back takes ten times as long as registration itself: a
/// program that registers for each transfer is soon left alone.
constexpr uint32_t kMaxTimes = 256;
constexpr uint64_t kMaxBytesEver = 16 * abi::kMaxLentBytes;

bool overlap(uint64_t begin, uint64_t end, uint64_t other_begin, uint64_t other_end) {
  return begin < other_end && other_begin < end;
}

std::byte* at(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

/// What runs here writes to its stack, which may be any memory.
bool is_this_stack(uint64_t begin, uint64_t end) {
  constexpr uint64_t kDeepest = 65536;
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return overlap(begin, end, here - kDeepest, here + kDeepest);
}

bool has_one_thread() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

/// While this exists no signal handler of the calling thread runs.
class WithoutSignals {
 public:
  WithoutSignals() {
    constexpr uint64_t kAll = ~uint64_t{0};
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, &kAll, &before_, sizeof(before_));
  }
  ~WithoutSignals() {
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof(before_));
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  uint64_t before_ = 0;
};

// ---- Memory -----------------------------------------------------------------------------------
// By system calls and not by functions of the C library, of which a sanitizer's would take note.

/// Null if there is none. `place` 0 is anywhere; else it is put in the place of what is there.
std::byte* private_memory(uint64_t size, uint64_t place = 0) {
  const long memory =
      system_call(SYS_mmap, place, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | (place != 0 ? MAP_FIXED : 0), -1, 0);
  return memory == -1 ? nullptr : at(static_cast<uint64_t>(memory));
}

bool move(std::byte* from, uint64_t to, uint64_t size) {
  return system_call(SYS_mremap, from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

void unmap(std::byte* memory, uint64_t size) {
  system_call(SYS_munmap, memory, size);
}

/// Whether all of it is memory that nobody else has.
bool is_own(uint64_t begin, uint64_t end) {
  uint64_t seen = begin;
  const bool read = for_each_mapped(begin, end, [&](const MappedRange& range) {
    const bool own = range.anonymous && range.writable && !range.shared;
    if (!own || range.begin != seen) return false;
    seen = range.end;
    return true;
  });
  return read && seen == end;
}

bool is_of(const Lent& lent, const MappedRange& range) {
  return range.shared && range.inode == lent.inode;
}

/// Whether all of it is still what it was replaced by. The program may have unmapped some: free()
/// before ibv_dereg_mr() gives the end of the heap back.
bool is_as_lent(const Lent& lent) {
  uint64_t seen = lent.begin;
  const bool read = for_each_mapped(lent.begin, lent.end, [&](const MappedRange& range) {
    if (!is_of(lent, range) || range.begin != seen) return false;
    seen = range.end;
    return true;
  });
  return read && seen == lent.end;
}

/// Has `replace(begin, size)` put other memory in the place of all that is still as it was lent.
/// False if it could not.
template <class Replace>
bool replace_all_of(const Lent& lent, Replace replace) {
  // Not while the map is read.
  constexpr size_t kAtOnce = 16;
  MappedRange pieces[kAtOnce];
  size_t count;
  do {
    count = 0;
    const bool read = for_each_mapped(lent.begin, lent.end, [&](const MappedRange& range) {
      if (is_of(lent, range)) pieces[count++] = range;
      return count < kAtOnce;
    });
    if (!read) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!replace(pieces[i].begin, pieces[i].end - pieces[i].begin)) return false;
    }
  } while (count == kAtOnce);
  return true;
}

/// A file that is longer than the limit of files is a signal (setrlimit(2), RLIMIT_FSIZE).
bool may_be_a_file(uint64_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

/// A memory file with what is there now, which nobody can shrink; -1 if there is none.
int make_file(uint64_t begin, uint64_t size) {
  const int file = static_cast<int>(
      system_call(SYS_memfd_create, "rocemu-lent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0) return -1;
  bool good =
      system_call(SYS_ftruncate, file, size) == 0 &&
      system_call(SYS_fcntl, file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  for (uint64_t done = 0; good && done < size;) {
    const long written = system_call(SYS_pwrite64, file, begin + done, size - done, done);
    good = written > 0;
    if (good) done += static_cast<uint64_t>(written);
  }
  if (good) return file;
  system_call(SYS_close, file);
  return -1;
}

bool replace_by(int file, const Lent& lent) {
  return system_call(SYS_mmap, lent.begin, lent.size(), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) != -1;
}

/// False if some of it stays a memory file's.
bool make_own_again(const Lent& lent) {
  const WithoutSignals without_signals;
  return replace_all_of(lent, [](uint64_t begin, uint64_t size) {
    std::byte* copy = private_memory(size);
    if (copy == nullptr) return false;
    unchecked_copy(copy, at(begin), size);
    // Memory that was made there becomes one mapping again with what is around it, which the
    // program may want to mremap(2); moved memory does not.
    const bool made = private_memory(size, begin) != nullptr;
    if (made) unchecked_copy(at(begin), copy, size);
    if (!made && move(copy, begin, size)) return true;
    unmap(copy, size);
    return made;
  });
}

// ---- Children ---------------------------------------------------------------------------------

void before_fork() {
  state.lock.lock();
  for (Lent& lent : state.lent) {
    if (lent.size() == 0 || !lent.is_for_children) continue;
    lent.copy = private_memory(lent.size());
    if (lent.copy == nullptr) continue;
    for_each_mapped(lent.begin, lent.end, [&](const MappedRange& range) {
      if (is_of(lent, range)) {
        unchecked_copy(lent.copy + (range.begin - lent.begin), at(range.begin),
                       range.end - range.begin);
      }
      return true;
    });
  }
}

void after_fork_in_parent() {
  for (Lent& lent : state.lent) {
    if (lent.copy != nullptr) unmap(lent.copy, lent.size());
    lent.copy = nullptr;
  }
  state.lock.unlock();
}

void after_fork_in_child() {
  for (Lent& lent : state.lent) {
    if (lent.copy != nullptr) {
      replace_all_of(lent, [&](uint64_t begin, uint64_t size) {
        return move(lent.copy + (begin - lent.begin), begin, size);
      });
      unmap(lent.copy, lent.size());  // the rest
    }
    lent = Lent{};
  }
  for (RegionMemory* region = state.regions; region != nullptr; region = region->next) {
    region->lent_begin = region->lent_end = 0;
  }
  state.bytes = 0;
  state.lock.unlock();
}

/// From the beginning: a child must not inherit the lock from a thread that it does not have.
__attribute__((constructor)) void watch_forks() {
  state.forks_are_watched =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

// ---- Lending ----------------------------------------------------------------------------------

Lent* free_entry() {
  for (Lent& lent : state.lent) {
    if (lent.size() == 0) return &lent;
  }
  return nullptr;
}

int tell_daemon(abi::Op op, const Lent& lent, const int* file) {
  if (!is_of_this_process(lent.context))
    return 0;  // for the daemon it would be the parent's memory
  abi::Request request{};
  request.op = op;
  request.body.lend_memory = {.address = lent.begin, .length = lent.size()};
  abi::Reply reply;
  return rocemu_call(lent.context->cmd_fd, &request, &reply, file, file == nullptr ? 0 : 1, nullptr,
                     0);
}

void forget(Lent& lent) {
  state.bytes -= lent.size();
  lent = Lent{};
}

void take_back(Lent& lent) {
  if (lent.context != nullptr) tell_daemon(abi::Op::kTakeBackMemory, lent, nullptr);
  lent.context = nullptr;
  if (!has_one_thread() || is_this_stack(lent.begin, lent.end)) return;
  if (make_own_again(lent)) forget(lent);
}

/// Where the program has put other memory in the place of what it lent, the daemon is to see that.
void look_again_at(const RegionMemory& region) {
  for (Lent& lent : state.lent) {
    if (lent.context == nullptr || !overlap(region.begin, region.end, lent.begin, lent.end) ||
        is_as_lent(lent)) {
      continue;
    }
    tell_daemon(abi::Op::kTakeBackMemory, lent, nullptr);
    lent.context = nullptr;
  }
}

bool is_of_any_region(uint64_t begin, uint64_t end) {
  for (const RegionMemory* other = state.regions; other != nullptr; other = other->next) {
    if (overlap(begin, end, other->begin, other->end)) return true;
  }
  return false;
}

void lend(RegionMemory* region) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = (region->begin + page - 1) / page * page;
  const uint64_t end = region->end / page * page;
  Lent* lent = free_entry();
  if (begin >= end || end - begin > abi::kMaxLentBytes - state.bytes || lent == nullptr) return;
  if (state.times_ever == kMaxTimes || end - begin > kMaxBytesEver - state.bytes_ever) return;
  if (!has_one_thread() || is_of_any_region(begin, end) || !is_own(begin, end)) return;
  if (is_this_stack(begin, end) || !may_be_a_file(end - begin) || !state.forks_are_watched) {
    return;
  }

  Lent wanted{};
  wanted.begin = begin;
  wanted.end = end;
  wanted.context = region->context;
  // ibv_fork_init(3): a child does not get the pages of regions at all.
  wanted.is_for_children = ibv_is_fork_initialized() != IBV_FORK_ENABLED;
  int file;
  {
    const WithoutSignals without_signals;
    file = make_file(begin, wanted.size());
    if (file < 0) return;
    struct stat status;
    const bool good = system_call(SYS_fstat, file, &status) == 0 && replace_by(file, wanted);
    wanted.inode = good ? status.st_ino : 0;
    if (!good) {
      system_call(SYS_close, file);
      return;
    }
  }
  if (!wanted.is_for_children) system_call(SYS_madvise, begin, wanted.size(), MADV_DONTFORK);
  *lent = wanted;
  state.bytes += lent->size();
  state.bytes_ever += lent->size();
  ++state.times_ever;
  const int error = tell_daemon(abi::Op::kLendMemory, *lent, &file);
  system_call(SYS_close, file);
  if (error != 0) {
    lent->context = nullptr;
    return take_back(*lent);
  }
  region->lent_begin = begin;
  region->lent_end = end;
}

/// Once for each context. The daemon serves what is asked one after the other: when it has answered
/// it no longer is in the middle of reaching memory as it did before.
void tell_of_blocking(ibv_context* context) {
  Context::Parts& parts = context_of(context)->parts;
  if (parts.told_of_blocking_memory || !is_of_this_process(context)) return;
  abi::Request request{};
  request.op = abi::Op::kMemoryMayBlock;
  abi::Reply reply;
  parts.told_of_blocking_memory = call(context, request, &reply) == 0;
}

/// Pages of a userfaultfd must stay the program's own.
void begin_to_block() {
  state.blocks = true;
  for (RegionMemory* region = state.regions; region != nullptr; region = region->next) {
    tell_of_blocking(region->context);
  }
  for (Lent& lent : state.lent) {
    if (lent.size() != 0) take_back(lent);
  }
}

void on_blocking_memory() {
  const Guard guard(state.lock);
  begin_to_block();
}

/// With those that came later to the same pages: they may have the NIC write there until they go.
void leave(RegionMemory* region) {
  RegionMemory*& to_it = region->previous != nullptr ? region->previous->next : state.regions;
  to_it = region->next;
  if (region->next != nullptr) region->next->previous = region->previous;
  for (Lent& lent : state.lent) {
    if (lent.size() == 0 || !overlap(region->begin, region->end, lent.begin, lent.end)) continue;
    if (!is_of_any_region(lent.begin, lent.end)) take_back(lent);
  }
  *region = {};
}

}  // namespace

void enter_region_memory(ibv_context* context, RegionMemory* region, uint64_t address,
                         uint64_t length, Lending lending) {
  const Guard guard(state.lock);
  region->begin = address;
  region->end = address + length;
  region->context = context;
  look_again_at(*region);
  if (state.blocks) [[unlikely]] {
    tell_of_blocking(context);  // since another thread has made it so
  }
  const Context::Parts& parts = context_of(context)->parts;
  // On a virtual clock it would only be more to wait for. And to the daemon a child with its
  // parent's connection is the parent.
  const bool may_lend = !parts.doorbells.is_virtual() && is_of_this_process(context) &&
                        !runs_under_valgrind() && !state.blocks;
  if (lending == Lending::kIfPossible && may_lend) lend(region);
  region->next = state.regions;
  if (region->next != nullptr) region->next->previous = region;
  state.regions = region;
}

void tell_of_blocking_memory(ibv_context* context, uint64_t address, uint64_t length) {
  const Guard guard(state.lock);
  if (!state.memory_is_watched) {
    state.memory_is_watched = true;
    state.blocks = rocemu_watch_memory(on_blocking_memory);
  }
  if (!state.blocks && has_pages_of_others(address, address + length)) begin_to_block();
  if (state.blocks) [[unlikely]] {
    tell_of_blocking(context);
  }
}

void leave_region_memory(RegionMemory* region) {
  const Guard guard(state.lock);
  if (region->context != nullptr) leave(region);
}

void leave_all_regions_of(ibv_context* context) {
  const Guard guard(state.lock);
  for (RegionMemory *region = state.regions, *next; region != nullptr; region = next) {
    next = region->next;
    if (region->context == context) leave(region);
  }
  // Of what other contexts' regions lie in as well.
  for (Lent& lent : state.lent) {
    if (lent.context == context) lent.context = nullptr;
  }
}

}  // namespace rocemu::provider
