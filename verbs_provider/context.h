// One opened device: the connection to the daemon, the doorbells and what is looked up by number.
#pragma once

#include "emulator/abi/control.h"
#include "verbs_provider/doorbell.h"
#include "verbs_provider/private_abi.h"
#include "verbs_provider/qp_table.h"
#include "verbs_provider/shared_memory.h"

namespace rocemu::provider {

struct Context {
  verbs_context verbs;  // must be first; prepared by libibverbs

  /// What is ours, and constructed and destroyed by us.
  struct Parts {
    SharedMemory memory;  // a DoorbellRing
    int wake_fd = -1;
    DoorbellWriter doorbells;
    QpTable qps;
  };
  union {
    Parts parts;
  };

  Context() = delete;
  ~Context() = delete;
};

inline Context* context_of(ibv_context* context) {
  return reinterpret_cast<Context*>(verbs_get_ctx(context));
}

/// Operations of DeviceOps and ContextOps.
verbs_context* alloc_context(ibv_device* device, int cmd_fd, void* private_data);
void free_context(ibv_context* context);

/// A control request without descriptors; 0 or a positive errno value.
int call(ibv_context* context, const abi::Request& request, abi::Reply* reply);

/// A control request about an object that a handle names, such as its destruction.
int call_object(ibv_context* context, abi::Op op, uint32_t handle, abi::Reply* reply,
                const int* send_fds = nullptr, int n_send = 0);

/// A control request answered with a memory file, which is mapped. `memory_size` is its size in
/// `reply`. If that fails the daemon may have done its part: see is_success().
int call_for_memory(ibv_context* context, const abi::Request& request, abi::Reply* reply,
                    const uint64_t& memory_size, SharedMemory* memory);

/// Whether a reply that was zero before the call says that the daemon did as asked.
inline bool is_success(const abi::Reply& reply) {
  return reply.magic == abi::kMagic && reply.error == 0;
}

/// See provider.cc.
extern const ContextOps kContextOps;

}  // namespace rocemu::provider
