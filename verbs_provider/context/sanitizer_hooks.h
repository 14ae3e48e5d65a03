// The hooks through which the provider reports to librocemu-sanitizer.so, if it is loaded (`rocemu
// run --sanitize`). Otherwise each hook costs one branch.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/work_queue.h"

namespace rocemu::provider {

/// The work requests that one call has posted. They are in the slots from `begin` to `end` of the
/// queue, whose lock the calling thread holds, and the NIC has not been notified of them yet.
struct PostedRequests {
  abi::WorkQueue kind;
  const void* object;  // the ibv_qp or ibv_srq
  const char* call;
  const WorkQueue& queue;
  uint64_t begin, end;
  const void* head;  // the list, or null
  uint64_t head_wr_id;
};

/// The refused request that followed the posted ones. `asked` is its number of SGEs or bytes of
/// inline data.
struct RefusedRequest {
  int error;
  bool is_state_wrong, has_too_many_sges, has_too_much_inline;
  uint64_t asked;
};

struct SanitizerHooks {
  /// Wraps the verbs in `ops`. Called for each context. `now_ns` is device_time_ns().
  void (*wrap)(ContextOps* ops, uint64_t (*now_ns)(ibv_context*));
  /// Called after a post. `refused` is null if all requests were posted.
  void (*posted)(const PostedRequests& posted, const RefusedRequest* refused);
  /// Called after `posted` if the doorbell could not be rung: the requests in `posted` were not
  /// posted after all.
  void (*taken_back)(const PostedRequests& posted);
  void (*polls)(ibv_cq* cq);
  /// Called under the CQ's lock for each completion that the program gets. When the program began
  /// this poll, the CQ had had `produced` completions, modulo 2^32.
  void (*completed)(ibv_cq* cq, const abi::Cqe& cqe, uint32_t produced);
  /// Called under the CQ's lock for each completion that the program does not get, since its QP was
  /// destroyed or reset.
  void (*dropped)(ibv_cq* cq, const abi::Cqe& cqe);
  /// Called when the program has changed the pages of registered memory, perhaps in the middle of
  /// its allocator.
  void (*mapping_changed)(ibv_context* context, uint64_t begin, uint64_t end,
                          abi::MappingCall call);
  /// Called when the destruction of an ibv_qp, ibv_cq or ibv_srq starts to wait, and when the wait
  /// ends. The numbers of events are negative if too many were acknowledged.
  void (*waits_for_acknowledgements)(const void* object, int32_t completion, int32_t async);
  void (*has_acknowledgements)(const void* object);
};

}  // namespace rocemu::provider

extern "C" __attribute__((weak, visibility("default")))
const rocemu::provider::SanitizerHooks rocemu_sanitizer_hooks;

namespace rocemu::provider {

/// Returns the hooks, or null if the run does not have --sanitize.
inline const SanitizerHooks* sanitizer() {
  return &rocemu_sanitizer_hooks;
}

}  // namespace rocemu::provider
