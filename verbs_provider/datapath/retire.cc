#include "verbs_provider/datapath/retire.h"

#include "verbs_provider/context/backlog.h"
#include "verbs_provider/datapath/auto_inline.h"
#include "verbs_provider/structs/qp.h"
#include "verbs_provider/structs/srq.h"

namespace rocemu::provider {
namespace {

/// Returns the QP of the completion, if it is still in the same generation.
Qp* current_qp(const Context::Parts& parts, const abi::Cqe& cqe) {
  Qp* qp = parts.qps.find(cqe.qp_num);
  if (qp == nullptr) return nullptr;
  return qp->generation.load(std::memory_order_relaxed) == cqe.qp_generation ? qp : nullptr;
}

bool retire_shared(Context::Parts& parts, const abi::Cqe& cqe, uint64_t index) {
  {
    const Guard guard(parts.srqs_lock);
    Srq* srq = parts.srqs.find(cqe.wqe_count);
    if (srq == nullptr || index < srq->first_completion) return false;
    // The WQE is finished, even if the QP that took it no longer exists.
    backlog().receives_end(1, 0);  // any sender can use its place
    srq->recv.released.fetch_add(1, std::memory_order_release);
    // The application must see the completion, even if this process does not have its QP: processes
    // that share an XRC domain share the messages of its SRQs.
    if (srq->is_xrc()) return true;
  }
  const Qp* qp = current_qp(parts, cqe);
  return qp != nullptr && index >= qp->recv.first_completion;
}

}  // namespace

bool retire(Context::Parts& parts, const abi::Cqe& cqe, uint64_t index) {
  if (cqe.queue == abi::WorkQueue::kSrq) return retire_shared(parts, cqe, index);
  Qp* qp = current_qp(parts, cqe);
  if (qp == nullptr) return false;
  WorkQueue& queue = cqe.queue == abi::WorkQueue::kSend ? qp->send : qp->recv;
  if (index < queue.first_completion) return false;
  if (cqe.queue == abi::WorkQueue::kSend) {
    backlog().sends_end(cqe.wqe_count - queue.released.load(std::memory_order_relaxed),
                        queue.told.load(std::memory_order_relaxed) - cqe.wqe_count);
    release_slots(parts, queue, queue.released.load(std::memory_order_relaxed), cqe.wqe_count);
  } else {
    backlog().receives_end(cqe.wqe_count - queue.released.load(std::memory_order_relaxed),
                           queue.told.load(std::memory_order_relaxed) - cqe.wqe_count);
  }
  queue.released.store(cqe.wqe_count, std::memory_order_release);
  return true;
}

}  // namespace rocemu::provider
