#include "verbs_provider/base/region_memory.h"

#include <cerrno>
#include <new>

#include <pthread.h>

#include "verbs_provider/base/context.h"
#include "verbs_provider/base/file_systems.h"
#include "verbs_provider/shim/blocking_memory.h"

namespace rocemu::provider {
namespace {

/// Of the process, since that is what the memory belongs to.
struct State {
  Mutex lock;
  Context* contexts;  // that have registered memory
  bool is_watched;    // for a userfaultfd
  bool blocks;        // some page may have to be waited for
};
/// For as long as the process is there: somebody may register when it ends.
union Lasting {
  constexpr Lasting() : state{} {}
  ~Lasting() {}
  State state;
};
constinit Lasting lasting;
State& state = lasting.state;

/// A thread of the parent may have had the lock, which the child does not have. What it was
/// changing is a list that is whole after each of its assignments.
void after_fork_in_child() {
  new (&state.lock) Mutex;
}
__attribute__((constructor)) void watch_forks() {
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

/// Once for each context. The daemon serves what is asked one after the other: when it has answered
/// it no longer is in the middle of reaching memory as it did before.
void tell_of_blocking(Context& context) {
  Context::Parts& parts = context.parts;
  if (parts.told_of_blocking_memory || !is_this_process(parts.opened_by)) return;
  abi::Request request{};
  request.op = abi::Op::kMemoryMayBlock;
  abi::Reply reply;
  parts.told_of_blocking_memory = call(&context.context, request, &reply) == 0;
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

/// As ib_umem_get() of Linux: what may be changed has to be writable.
bool may_be_changed(int access) {
  constexpr int kChanges = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  return (access & kChanges) != 0;
}

}  // namespace

int check_region_memory(ibv_context* context, uint64_t address, uint64_t length, int access) {
  const uint64_t end = address + length;
  if (end <= address) return 0;  // nothing, or what the daemon refuses
  const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  const MappedKind memory = kind_of_memory(address, end);
  if (!on_demand && (memory.has_hole || (may_be_changed(access) && memory.is_read_only))) {
    return EFAULT;
  }
  const Guard guard(state.lock);
  enter(*context_of(context));
  if (!state.is_watched) {
    state.is_watched = true;
    state.blocks = rocemu_watch_memory(on_blocking_memory);
  }
  if (!state.blocks && memory.may_block) begin_to_block();
  if (state.blocks) [[unlikely]] {
    tell_of_blocking(*context_of(context));
  }
  return 0;
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
