// One opened device: the connection to the daemon, the doorbells and what is looked up by number.
#pragma once

#include <atomic>
#include <cstddef>

#include "emulator/abi/control.h"
#include "verbs_provider/base/free_send_slots.h"
#include "verbs_provider/base/layout.h"
#include "verbs_provider/base/number_table.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/process.h"
#include "verbs_provider/base/segments.h"
#include "verbs_provider/context/doorbell.h"

namespace rocemu::provider {

struct Mr;
struct Qp;
struct Srq;

struct Context {
  /// libibverbs' verbs_context ends with its ibv_context. Where it begins depends on its version
  /// (layout.h), so that what older ones leave free comes first.
  std::byte head[kLargestContextHead];
  ibv_context context;  // prepared by libibverbs, with what is before it

  /// What is ours, and constructed and destroyed by us.
  struct Parts {
    Segments segments;
    SharedPiece memory;   // a DoorbellRing
    SharedPiece payload;  // a Payload; empty if the daemon had no room for it
    int wake_fd = -1;
    const uint64_t opened_by = this_process();  // whose memory the daemon reaches
    uint64_t clock_start_ns = 0;                // see device_clock.h, as the next
    uint64_t wall_start_ns = 0;
    abi::PostRules posts{};
    DoorbellWriter doorbells;
    // Under the lock of region_memory.cc.
    Context* next_with_regions = nullptr;
    bool has_regions = false;
    std::atomic<bool> told_of_blocking_memory{false};  // read without the lock
    /// A QP is entered before it can have completions and removed under the locks of its CQs: a
    /// thread that polls one of them finds a QP that stays for as long as the CQ's lock is held.
    NumberTable<Qp> qps;
    /// An SRQ may have completions in any CQ, so what is found in the table stays only for as long
    /// as `srqs_lock` is held. It is taken after the lock of a CQ.
    NumberTable<Srq> srqs;
    Mutex srqs_lock;
    /// Regions that short messages may be copied from when they are posted, by region_number().
    /// What is found stays for as long as the lock is held.
    NumberTable<Mr> regions;
    Mutex regions_lock;
    FreeSendSlots free_send_slots;

    bool has_payload() const { return payload.size() != 0; }
    abi::Payload& shared_payload() const { return *reinterpret_cast<abi::Payload*>(payload.at(0)); }
  };
  union {
    Parts parts;
  };

  Context() = delete;
  ~Context() = delete;
};

inline Context* context_of(ibv_context* context) {
  return reinterpret_cast<Context*>(reinterpret_cast<char*>(context) - offsetof(Context, context));
}

/// False in a child of fork(), of a context that its parent opened.
inline bool is_of_this_process(ibv_context* context) {
  return is_this_process(context_of(context)->parts.opened_by);
}

/// Operations of DeviceOps and ContextOps.
verbs_context* alloc_context(ibv_device* device, int cmd_fd, void* private_data);
verbs_context* import_context(ibv_device* device, int cmd_fd);
void free_context(ibv_context* context);

/// A control request without descriptors; 0 or a positive errno value.
int call(ibv_context* context, const abi::Request& request, abi::Reply* reply);

/// A control request about an object that a handle names, such as its destruction.
int call_object(ibv_context* context, abi::Op op, uint32_t handle, abi::Reply* reply,
                const int* send_fds = nullptr, int n_send = 0);

/// What a rule makes of an operation that the daemon is asked for (abi::may_be_asked_for): 0, or
/// the errno value that it fails with.
int ask_daemon(ibv_context* context, abi::Op operation, uint32_t object);
inline int ask(ibv_context* context, abi::Op operation, uint32_t object = 0) {
  if (!context_of(context)->parts.doorbells.asks_for(operation)) [[likely]] {
    return 0;
  }
  return ask_daemon(context, operation, object);
}

/// Whether a destruction that failed so has left nothing to destroy. ibv_open_device(3):
/// "RDMAV_ALLOW_DISASSOC_DESTROY tells the library to relate an EIO from destroy commands as a
/// success as the kernel resources were already released." Then nobody waits for acknowledgements.
bool is_gone_with_its_device(int error);

/// Returns the error of a call that the provider itself refuses: `error`, unless the device is gone
/// (EIO) or a rule makes the verb fail otherwise. Recordings show the refusal. `object` is the
/// handle with which the request begins, if it has one.
int refuse(ibv_context* context, abi::Op op, int error, uint32_t object = 0);

/// Does the same for a verb that has failed with `error`, unless the recording has that already as
/// the daemon's latest answer to the calling thread.
int recorded_refusal(ibv_context* context, abi::Op op, int error, uint32_t object);
/// Begins a verb: the calling thread has no answer yet.
void forget_answer();
/// Notes the daemon's answer to the calling thread and returns it.
int note_answer(int error);

/// A control request answered with shared memory, which is found. `range` is in `reply`. If that
/// fails the daemon may have done its part: see is_success().
int call_for_memory(ibv_context* context, const abi::Request& request, abi::Reply* reply,
                    const abi::SharedRange& range, SharedPiece* memory);

/// Whether a reply that was zero before the call says that the daemon did as asked.
inline bool is_success(const abi::Reply& reply) {
  return reply.magic == abi::kMagic && reply.error == 0;
}

/// See provider.cc.
extern const ContextOps kContextOps;

}  // namespace rocemu::provider
