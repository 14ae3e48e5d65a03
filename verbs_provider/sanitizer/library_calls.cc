#include "verbs_provider/sanitizer/library_calls.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/sanitizer/compilers/initialized_memory.h"
#include "verbs_provider/sanitizer/event_waits.h"
#include "verbs_provider/sanitizer/mapping_changes.h"
#include "verbs_provider/sanitizer/program.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;

std::atomic<bool> cares_for_fork{false};

// ---- Completion events ----

/// Notes an event, which answers one request for notification. If there were several requests since
/// the previous event, it is unknown whether the event answers the latest.
void note_event(Program& program, const ibv_cq* base) {
  const Guard guard(program.lock);
  Cq* const cq = program.objects().cqs.find(base);
  if (cq == nullptr) return;
  cq->is_armed = cq->arms > 1;
  cq->arms = cq->is_armed ? 1 : 0;
}

// ---- Events of the connection manager ----

/// Events that the program has received and not acknowledged
struct KeptEvents {
  uint64_t count = 0;
  CallSite got;
};
std::unordered_map<const rdma_cm_event*, const rdma_cm_id*> ids_of_events;
std::unordered_map<const rdma_cm_id*, KeptEvents> kept_events;

/// Returns the id whose destruction waits until the event is acknowledged: for a connect request
/// this is the listener.
const rdma_cm_id* id_of(const rdma_cm_event& event) {
  return event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? event.listen_id : event.id;
}

void forget_event(const rdma_cm_event* event) {
  const auto id = ids_of_events.find(event);
  if (id == ids_of_events.end()) return;
  if (const auto kept = kept_events.find(id->second);
      kept != kept_events.end() && --kept->second.count == 0)
    kept_events.erase(kept);
  ids_of_events.erase(id);
}

/// Returns whether the thread may be in a signal handler, in which its signal is blocked. The
/// handler may have interrupted malloc(3), which the checks at the end of a program call.
bool may_be_in_signal_handler() {
  uint64_t blocked = 0;
  turns::kernel(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  return blocked != 0;
}

/// Returns whether the program's calls reach this library. A test that loads this library late
/// (rocemu::testing::Fabric) calls libibverbs directly, so it is unknown whether the test prepared
/// for fork().
bool are_calls_ours() {
  return dlsym(RTLD_DEFAULT, "ibv_fork_init") == reinterpret_cast<void*>(&ibv_fork_init);
}

}  // namespace

/// Searches further than RTLD_NEXT: a plugin that was loaded with RTLD_LOCAL has its libraries in a
/// separate scope, which RTLD_NEXT does not search, but the plugin's calls still reach this
/// library.
void* function_behind(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* library : {"libibverbs.so.1", "librdmacm.so.1"}) {
    if (found != nullptr) break;
    if (void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD); loaded != nullptr)
      found = dlsym(loaded, name);
  }
  return found;
}

bool is_fork_protected() {
  return cares_for_fork.load() || !are_calls_ours() || getenv("RDMAV_FORK_SAFE") != nullptr ||
         getenv("IBV_FORK_SAFE") != nullptr;
}

}  // namespace rocemu::sanitizer

using namespace rocemu::sanitizer;

#define ROCEMU_BEFORE extern "C" __attribute__((visibility("default")))

// ---- Calls that read files, which MemorySanitizer would check ----

ROCEMU_BEFORE ibv_device** ibv_get_device_list(int* count) {
  static auto* const real = behind<ibv_device**(int*)>("ibv_get_device_list");
  const UncheckedCall unchecked;
  ibv_device** const list = real(count);
  if (list != nullptr && count != nullptr) mark_initialized(count, sizeof *count);
  return list;
}

ROCEMU_BEFORE ibv_context* ibv_open_device(ibv_device* device) {
  static auto* const real = behind<decltype(ibv_open_device)>("ibv_open_device");
  const UncheckedCall unchecked;
  return real(device);
}

ROCEMU_BEFORE int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  static auto* const real = behind<decltype(ibv_query_gid)>("ibv_query_gid");
  const UncheckedCall unchecked;
  const int result = real(context, port, index, gid);
  if (result == 0) mark_initialized(gid, sizeof *gid);
  return result;
}

// ---- Calls that rules check ----

ROCEMU_BEFORE int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  static auto* const real = behind<decltype(ibv_get_cq_event)>("ibv_get_cq_event");
  Program* const program = Program::get();
  const bool waits = program != nullptr && begin_event_wait(*program, *channel);
  const int result = real(channel, cq, context);
  if (program == nullptr) return result;
  const int error = errno;
  if (waits) end_event_wait(*program);
  if (result == 0) note_event(*program, *cq);
  errno = error;
  return result;
}

ROCEMU_BEFORE int ibv_fork_init(void) {
  static auto* const real = behind<decltype(ibv_fork_init)>("ibv_fork_init");
  cares_for_fork = true;
  return real();
}

/// A program that queries whether protection is needed has considered fork(), too.
ROCEMU_BEFORE ibv_fork_status ibv_is_fork_initialized(void) {
  static auto* const real = behind<decltype(ibv_is_fork_initialized)>("ibv_is_fork_initialized");
  cares_for_fork = true;
  return real();
}

ROCEMU_BEFORE int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  static auto* const real = behind<decltype(rdma_get_cm_event)>("rdma_get_cm_event");
  const int result = real(channel, event);
  Program* const program = Program::get();
  if (result != 0 || program == nullptr) return result;
  const Guard guard(program->lock);
  ids_of_events[*event] = id_of(**event);
  KeptEvents& kept = kept_events[id_of(**event)];
  ++kept.count;
  kept.got = program->here(std::string_view("rdma_get_cm_event"));
  return result;
}

ROCEMU_BEFORE int rdma_ack_cm_event(rdma_cm_event* event) {
  static auto* const real = behind<decltype(rdma_ack_cm_event)>("rdma_ack_cm_event");
  if (Program* const program = Program::get()) {
    const Guard guard(program->lock);
    forget_event(event);
  }
  return real(event);
}

ROCEMU_BEFORE int rdma_destroy_id(rdma_cm_id* id) {
  static auto* const real = behind<decltype(rdma_destroy_id)>("rdma_destroy_id");
  Program* const program = Program::get();
  if (program == nullptr) return real(id);
  {
    const Guard guard(program->lock);
    // librdmacm acknowledges this event itself.
    if (id->event != nullptr) forget_event(id->event);
    const auto kept = kept_events.find(id);
    if (kept != kept_events.end())
      program->sanitizer().tell(CmWait{id, kept->second.count, kept->second.got,
                                       program->here(std::string_view("rdma_destroy_id"))});
  }
  const int result = real(id);
  const int error = errno;
  {
    const Guard guard(program->lock);
    program->sanitizer().tell(CmWaitEnd{id});
    if (result == 0) kept_events.erase(id);
  }
  errno = error;
  return result;
}

__attribute__((destructor)) static void end_program() {
  Program* const program = Program::get();
  // A child of vfork(2) has its parent's memory, and its end is not that of the program.
  if (program == nullptr || !program->is_of_this_process()) return;
  // A thread may have ended during a verb without releasing the lock, so this must not wait for it.
  if (!program->lock.try_lock()) return;
  static bool has_ended = false;  // a destructor can call _exit(2)
  if (std::exchange(has_ended, true)) return program->lock.unlock();
  take_mapping_changes(*program);
  count_what_is_left(*program);
  program->sanitizer().tell(ProgramEnd{program->objects()});
  program->lock.unlock();
}

ROCEMU_BEFORE __attribute__((noreturn)) void _exit(int status) {
  static auto* const real = behind<void(int)>("_exit");
  if (!may_be_in_signal_handler()) end_program();
  real(status);
  __builtin_unreachable();
}

ROCEMU_BEFORE __attribute__((noreturn)) void _Exit(int status) {
  _exit(status);
}
