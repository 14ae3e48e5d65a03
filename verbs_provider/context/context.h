// One opened device: the connection to the daemon, the doorbells and the tables of objects by
// number.
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
  /// The space for the part of libibverbs' verbs_context that precedes its last member, the
  /// ibv_context. The size of this part depends on the version (layout.h); older versions leave the
  /// first bytes unused.
  std::byte head[kLargestContextHead];
  ibv_context context;  // prepared by libibverbs, with the bytes before it

  /// The provider's own members, which it constructs and destroys
  struct Parts {
    Segments segments;
    SharedPiece memory;   // a DoorbellRing
    SharedPiece payload;  // a Payload; empty if the daemon had no space for it
    int wake_fd = -1;
    const uint64_t opened_by = this_process();  // the process whose memory the daemon accesses
    uint64_t clock_start_ns = 0;                // see device_clock.h; so is the next member
    uint64_t wall_start_ns = 0;
    abi::PostRules posts{};
    DoorbellWriter doorbells;
    // The following two members are guarded by the lock of region_memory.cc.
    Context* next_with_regions = nullptr;
    bool has_regions = false;
    std::atomic<bool> told_of_blocking_memory{false};  // read without the lock
    /// A QP is added before it can have completions, and removed under the locks of its CQs: a
    /// thread that polls one of these CQs finds a QP that exists as long as the CQ's lock is held.
    NumberTable<Qp> qps;
    /// An SRQ may have completions in any CQ, so an SRQ that is found in the table exists only as
    /// long as `srqs_lock` is held. This lock is taken after the lock of a CQ.
    NumberTable<Srq> srqs;
    Mutex srqs_lock;
    /// Regions from which short messages can be copied when they are posted, by region_number(). A
    /// region that is found exists as long as the lock is held.
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

/// Returns whether this process opened the context. Returns false in a child of fork() for a
/// context of its parent.
inline bool is_of_this_process(ibv_context* context) {
  return is_this_process(context_of(context)->parts.opened_by);
}

/// Operations of DeviceOps and ContextOps
verbs_context* alloc_context(ibv_device* device, int cmd_fd, void* private_data);
verbs_context* import_context(ibv_device* device, int cmd_fd);
void free_context(ibv_context* context);

/// Sends a control request without descriptors. Returns 0 or a positive errno value.
int call(ibv_context* context, const abi::Request& request, abi::Reply* reply);

/// Sends a control request for an object that is named by a handle, such as its destruction.
int call_object(ibv_context* context, abi::Op op, uint32_t handle, abi::Reply* reply,
                const int* send_fds = nullptr, int n_send = 0);

/// Asks the daemon whether a rule makes the operation fail (abi::may_be_asked_for). Returns 0, or
/// the errno value with which the operation fails.
int ask_daemon(ibv_context* context, abi::Op operation, uint32_t object);
inline int ask(ibv_context* context, abi::Op operation, uint32_t object = 0) {
  if (!context_of(context)->parts.doorbells.asks_for(operation)) [[likely]] {
    return 0;
  }
  return ask_daemon(context, operation, object);
}

/// Returns whether the object of a destruction that failed with this error no longer exists.
/// ibv_open_device(3): "RDMAV_ALLOW_DISASSOC_DESTROY tells the library to relate an EIO from
/// destroy commands as a success as the kernel resources were already released." Such a destruction
/// does not wait for acknowledgements of events.
bool is_gone_with_its_device(int error);

/// Returns the error of a call that the provider itself refuses: `error`, unless the device is
/// removed (EIO) or a rule makes the verb fail with another error. Recordings show the refusal.
/// `object` is the handle with which the request starts, if it has one.
int refuse(ibv_context* context, abi::Op op, int error, uint32_t object = 0);

/// Does the same as refuse() for a verb that has failed with `error`, unless the recording already
/// contains this error as the daemon's latest answer to the calling thread.
int recorded_refusal(ibv_context* context, abi::Op op, int error, uint32_t object);
/// Forgets the daemon's latest answer to the calling thread. Called when a verb starts.
void forget_answer();
/// Stores the daemon's answer to the calling thread and returns it.
int note_answer(int error);

/// Sends a control request whose reply contains shared memory, and maps that memory. `range` is the
/// member of `reply` that describes the memory. After a failure the daemon may nevertheless have
/// executed the request: see is_success().
int call_for_memory(ibv_context* context, const abi::Request& request, abi::Reply* reply,
                    const abi::SharedRange& range, SharedPiece* memory);

/// Returns whether the daemon executed the request of a call, according to its reply. The reply
/// must have been all zeros before the call.
inline bool is_success(const abi::Reply& reply) {
  return reply.magic == abi::kMagic && reply.error == 0;
}

/// Defined in provider.cc.
extern const ContextOps kContextOps;

}  // namespace rocemu::provider
