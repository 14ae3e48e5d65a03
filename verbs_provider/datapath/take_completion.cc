#include "verbs_provider/datapath/take_completion.h"

#include "emulator/abi/undefined_fields.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/datapath/retire.h"

namespace rocemu::provider {
namespace {

/// Reports a completion to the sanitizer, and fills in the fields that the man page leaves
/// undefined.
void show(ibv_cq* cq, abi::Cqe& cqe, uint64_t produced) {
  sanitizer()->completed(cq, cqe, static_cast<uint32_t>(produced));
  abi::spoil_undefined_fields(cqe);
}

}  // namespace

bool take(Cq& cq, uint64_t end, abi::Cqe* cqe, WritablePage& known) {
  Context::Parts& parts = context_of(cq.verbs.cq.context)->parts;
  while (cq.consumed != end) {
    const uint64_t index = cq.consumed++;
    *cqe = cq.ring->entries[index & cq.ring_mask];
    if (cqe->payload != 0) {
      receive_payload(parts, cq.verbs.cq.handle, static_cast<uint32_t>(index), *cqe, known);
    }
    // The CQ's space is released before the WQE's place can be reused: another thread may post
    // there at once, and the completion of that request needs this completion's place.
    cq.publish_consumed();
    if (retire(parts, *cqe, index)) {
      if (sanitizer() != nullptr) [[unlikely]]
        show(&cq.verbs.cq, *cqe, end);
      return true;
    }
    if (sanitizer() != nullptr) [[unlikely]]
      sanitizer()->dropped(&cq.verbs.cq, *cqe);
  }
  return false;
}

}  // namespace rocemu::provider
