// The common part of posting to any work queue: a list of work requests goes into the queue's next
// slots, and one doorbell notifies the daemon of all of them.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "verbs_provider/base/work_queue.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/hooks/note_call.h"

namespace rocemu::provider {

static_assert(sizeof(ibv_sge) == sizeof(abi::Sge));
static_assert(offsetof(ibv_sge, addr) == offsetof(abi::Sge, address));
static_assert(offsetof(ibv_sge, length) == offsetof(abi::Sge, length));
static_assert(offsetof(ibv_sge, lkey) == offsetof(abi::Sge, lkey));

inline bool is_valid_sge_count(int count, const WorkQueue& queue) {
  return count >= 0 && static_cast<uint32_t>(count) <= queue.max_sge;
}

inline void copy_sges(const ibv_sge* list, uint32_t count, std::byte* to) {
  if (count != 0) memcpy(to, list, count * sizeof(abi::Sge));
}

/// Describes the refusal of a receive work request with `error`.
inline RefusedRequest why_refused(const ibv_recv_wr& wr, const WorkQueue& queue, bool is_ready,
                                  int error) {
  const bool has_too_many = is_ready && !is_valid_sge_count(wr.num_sge, queue);
  return {.error = error,
          .is_state_wrong = !is_ready,
          .has_too_many_sges = has_too_many && wr.num_sge > 0,
          .has_too_much_inline = false,
          .asked = static_cast<uint64_t>(wr.num_sge)};
}

inline void write_recv(const ibv_recv_wr& wr, std::byte* slot) {
  const abi::RecvWqe wqe{wr.wr_id, static_cast<uint32_t>(wr.num_sge), 0};
  memcpy(slot, &wqe, sizeof(wqe));
  copy_sges(wr.sg_list, wqe.num_sge, slot + sizeof(wqe));
}

/// The context of a posting call: the verb, and the doorbell and the object of its work queue
struct Posting {
  ibv_context* context;
  abi::Op call;
  abi::DoorbellKind kind;
  uint32_t object;
  const void* handle;  // the ibv_qp or ibv_srq

  int ask() const { return provider::ask(context, call, object); }
  template <class Wr>
  PostedRequests shown(const WorkQueue& queue, uint64_t posted_before, const Wr* list) const {
    const bool is_receive = kind != abi::DoorbellKind::kSend;
    return {.kind = kind == abi::DoorbellKind::kSrqRecv ? abi::WorkQueue::kSrq
                    : is_receive                        ? abi::WorkQueue::kRecv
                                                        : abi::WorkQueue::kSend,
            .object = handle,
            .call = call == abi::Op::kBindMw     ? "ibv_bind_mw"
                    : !is_receive                ? "ibv_post_send"
                    : call == abi::Op::kPostRecv ? "ibv_post_recv"
                                                 : "ibv_post_srq_recv",
            .queue = queue,
            .begin = posted_before,
            .end = queue.posted,
            .head = list,
            .head_wr_id = list != nullptr ? list->wr_id : 0};
  }
  int ring(uint64_t posted) const {
    return context_of(context)->parts.doorbells.ring(kind, object, posted);
  }
};

/// Posts a list up to the first request that `check` refuses or for which the queue is full. If a
/// rule refuses the call or the daemon has ended, nothing is posted. `why` describes a refused
/// request.
template <class Wr, class Check, class Write, class Why>
int post_list(WorkQueue* queue, const Posting& posting, Wr* list, Wr** bad_wr, Check check,
              Write write, Why why) {
  if (const int error = posting.ask(); error != 0) {
    *bad_wr = list;
    return error;
  }
  const Guard guard(queue->lock);
  const uint64_t posted_before = queue->posted;
  Wr* wr = list;
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    error = check(*wr);
    if (error == 0 && queue->is_full()) error = ENOMEM;
    if (error != 0) break;
    write(*wr, queue->next_slot());
    ++queue->posted;
  }
  note_call(posting.call, queue->posted - posted_before);
  if (sanitizer() != nullptr) [[unlikely]] {
    const RefusedRequest refused = error != 0 ? why(*wr, error) : RefusedRequest{};
    sanitizer()->posted(posting.shown(*queue, posted_before, list),
                        error != 0 ? &refused : nullptr);
  }
  queue->tell();  // before another thread can get the completion
  if (queue->posted != posted_before && posting.ring(queue->posted) != 0) {
    if (sanitizer() != nullptr) [[unlikely]]
      sanitizer()->taken_back(posting.shown(*queue, posted_before, list));
    queue->posted = posted_before;
    queue->tell();
    error = EIO;
    wr = list;
  }
  if (error != 0) *bad_wr = wr;
  return error;
}

}  // namespace rocemu::provider
