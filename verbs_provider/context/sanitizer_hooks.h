// What the provider shows librocemu-sanitizer.so, if that is loaded (`rocemu run --sanitize`).
// Without it each place costs one branch.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/work_queue.h"

namespace rocemu::provider {

/// A call that posts, under the lock of its queue. The work requests from `begin` to `end` are in
/// the queue's slots and not yet announced to the NIC.
struct PostedRequests {
  abi::WorkQueue kind;
  const void* object;  // the ibv_qp or ibv_srq
  const char* call;
  const WorkQueue& queue;
  uint64_t begin, end;
  const void* head;  // the list, or null
  uint64_t head_wr_id;
};

/// The request behind those that a call has posted was refused. `asked` SGEs, or bytes inline.
struct RefusedRequest {
  int error;
  bool is_state_wrong, has_too_many_sges, has_too_much_inline;
  uint64_t asked;
};

struct SanitizerHooks {
  /// Puts itself around verbs. Called for each context. `now_ns` is device_time_ns().
  void (*wrap)(ContextOps* ops, uint64_t (*now_ns)(ibv_context*));
  /// `refused` is null if all were posted.
  void (*posted)(const PostedRequests& posted, const RefusedRequest* refused);
  /// The doorbell could not be rung: those requests were not posted after all.
  void (*taken_back)(const PostedRequests& posted);
  void (*polls)(ibv_cq* cq);
  /// The program gets this completion. Under the CQ's lock.
  void (*completed)(ibv_cq* cq, const abi::Cqe& cqe);
  /// The program does not get this one, since its QP is gone or was reset. Under the CQ's lock.
  void (*dropped)(ibv_cq* cq, const abi::Cqe& cqe);
  /// The program has changed the pages of registered memory. Perhaps in the middle of its
  /// allocator.
  void (*mapping_changed)(ibv_context* context, uint64_t begin, uint64_t end,
                          abi::MappingCall call);
  /// The destruction of an ibv_qp, ibv_cq or ibv_srq begins to wait, and ends.
  void (*waits_for_acknowledgements)(const void* object, uint32_t completion, uint32_t async);
  void (*has_acknowledgements)(const void* object);
};

}  // namespace rocemu::provider

extern "C" __attribute__((weak, visibility("default")))
const rocemu::provider::SanitizerHooks rocemu_sanitizer_hooks;

namespace rocemu::provider {

/// Null if the run has no --sanitize.
inline const SanitizerHooks* sanitizer() {
  return &rocemu_sanitizer_hooks;
}

}  // namespace rocemu::provider
