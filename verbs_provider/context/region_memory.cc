#include "verbs_provider/context/region_memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include <pthread.h>

#include "verbs_provider/context/context.h"
#include "verbs_provider/context/file_systems.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/hooks/blocking_memory.h"
#include "verbs_provider/hooks/watch_mappings.h"

namespace rocemu::provider {
namespace {

/// The registered memory of this process
struct State {
  Mutex lock;
  Context* contexts;  // that have registered memory
  RegisteredMemory* memory;
  bool is_watched;  // by a userfaultfd
  bool blocks;      // some page may have to be waited for
};
/// A State that is never destroyed, because a program can register memory while the process exits.
union Lasting {
  constexpr Lasting() : state{} {}
  ~Lasting() {}
  State state;
};
constinit Lasting lasting;
State& state = lasting.state;

/// Replaces the lock: a thread of the parent may have held it, and the child does not have this
/// thread. The list that the thread was changing is consistent after each of its assignments.
void after_fork_in_child() {
  new (&state.lock) Mutex;
}
__attribute__((constructor)) void watch_forks() {
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

/// Notifies the daemon, once for each context, that an access to memory may have to wait. The
/// daemon handles requests one after the other: once it has replied, no earlier access to the
/// memory is in progress.
void tell_of_blocking(Context& context) {
  Context::Parts& parts = context.parts;
  if (parts.told_of_blocking_memory || !is_this_process(parts.opened_by)) return;
  abi::Request request{};
  request.op = abi::Op::kMemoryMayBlock;
  abi::Reply reply;
  parts.told_of_blocking_memory = call(&context.context, request, &reply) == 0;
}

/// All memory that was ever registered lies between these addresses; most changes of mappings are
/// outside of them.
constinit std::atomic<uint64_t> lowest{UINT64_MAX}, highest{0};

void note_change(Context& context, uint64_t begin, uint64_t end, abi::MappingCall call) {
  Context::Parts& parts = context.parts;
  if (!parts.has_payload() || !is_this_process(parts.opened_by)) return;
  abi::MappingChanges& changes = parts.shared_payload().mappings;
  const uint32_t count = changes.count.load(std::memory_order_relaxed);
  auto& entry = changes.entries[count % abi::MappingChanges::kCount];
  entry.begin.store(begin, std::memory_order_relaxed);
  entry.end.store(end, std::memory_order_relaxed);
  entry.call.store(call, std::memory_order_relaxed);
  changes.count.store(count + 1, std::memory_order_release);
}

/// Notes that the program has changed mapped pages (see rocemu_watch_mappings()). A change is not
/// noticed while another thread, or the thread that a signal has interrupted, registers memory,
/// because waiting for it could take forever.
void on_mapping_change(uint64_t begin, uint64_t end, abi::MappingCall call) {
  if (begin >= highest.load(std::memory_order_relaxed)) return;
  if (end <= lowest.load(std::memory_order_relaxed)) return;
  if (!state.lock.try_lock()) return;
  for (const RegisteredMemory* one = state.memory; one != nullptr; one = one->next) {
    if (begin >= one->end || one->begin >= end) continue;
    if (one->is_shared && call == abi::MappingCall::kMadvise) continue;
    note_change(*context_of(one->context), std::max(begin, one->begin), std::min(end, one->end),
                call);
    if (sanitizer() != nullptr)
      sanitizer()->mapping_changed(one->context, std::max(begin, one->begin),
                                   std::min(end, one->end), call);
  }
  state.lock.unlock();
}

void begin_to_block() {
  state.blocks = true;
  for (Context* context = state.contexts; context != nullptr;
       context = context->parts.next_with_regions) {
    tell_of_blocking(*context);
  }
}

void on_blocking_memory() {
  const Guard guard(state.lock);
  begin_to_block();
}

void enter(Context& context) {
  if (context.parts.has_regions) return;
  context.parts.has_regions = true;
  context.parts.next_with_regions = state.contexts;
  state.contexts = &context;
}

/// Returns whether memory with these access rights must be writable, as in ib_umem_get() of Linux.
bool may_be_changed(int access) {
  constexpr int kChanges = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  return (access & kChanges) != 0;
}

}  // namespace

int check_region_memory(ibv_context* context, uint64_t address, uint64_t length, int access,
                        uint32_t* is_shared) {
  *is_shared = 0;
  const uint64_t end = address + length;
  if (end <= address) return 0;  // length 0, or a range that the daemon refuses
  const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  const MappedKind memory = kind_of_memory(address, end);
  if (!on_demand && (memory.has_hole || (may_be_changed(access) && memory.is_read_only))) {
    return EFAULT;
  }
  *is_shared = memory.is_shared ? 1 : 0;
  const Guard guard(state.lock);
  enter(*context_of(context));
  if (!state.is_watched) {
    state.is_watched = true;
    rocemu_watch_mappings(on_mapping_change);
    state.blocks = rocemu_watch_memory(on_blocking_memory);
  }
  if (!state.blocks && memory.may_block) begin_to_block();
  if (state.blocks) [[unlikely]] {
    tell_of_blocking(*context_of(context));
  }
  return 0;
}

void enter_memory(RegisteredMemory& memory, ibv_context* context, uint64_t begin, uint64_t end,
                  bool is_shared) {
  if (begin >= end) return;
  const Guard guard(state.lock);
  memory = {.begin = begin,
            .end = end,
            .is_shared = is_shared,
            .context = context,
            .next = state.memory,
            .link = nullptr};
  memory.link = &state.memory;
  if (memory.next != nullptr) memory.next->link = &memory.next;
  state.memory = &memory;
  lowest.store(std::min(lowest.load(), begin));
  highest.store(std::max(highest.load(), end));
}

void leave_memory(RegisteredMemory& memory) {
  const Guard guard(state.lock);
  if (memory.link == nullptr) return;
  *memory.link = memory.next;
  if (memory.next != nullptr) memory.next->link = memory.link;
  memory.link = nullptr;
}

void forget_region_memory(ibv_context* context) {
  const Guard guard(state.lock);
  for (Context** link = &state.contexts; *link != nullptr;
       link = &(*link)->parts.next_with_regions) {
    if (*link != context_of(context)) continue;
    *link = (*link)->parts.next_with_regions;
    return;
  }
}

}  // namespace rocemu::provider
