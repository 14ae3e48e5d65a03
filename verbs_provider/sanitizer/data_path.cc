#include "verbs_provider/sanitizer/data_path.h"

#include <cerrno>
#include <cstring>

#include "emulator/sanitizer/words.h"
#include "verbs_provider/sanitizer/leaving.h"
#include "verbs_provider/sanitizer/mapping_changes.h"
#include "verbs_provider/sanitizer/program.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;
using provider::PostedRequests;
using provider::RefusedRequest;

Queue* queue_of(Objects& objects, const PostedRequests& posted) {
  if (posted.kind == abi::WorkQueue::kSrq) {
    Srq* const srq = objects.srqs.find(posted.object);
    return srq != nullptr ? &srq->receives : nullptr;
  }
  Qp* const qp = objects.qps.find(posted.object);
  if (qp == nullptr) return nullptr;
  return posted.kind == abi::WorkQueue::kSend ? &qp->sends : &qp->receives;
}

/// Returns the QP or SRQ that a completion names; null if it is unknown.
template <class T>
T* find_by_number(RecentMap<NumberInContext, T*, NumberHash>& objects, Handle context,
                  uint32_t number) {
  T** const found = objects.find({context, number});
  return found != nullptr ? *found : nullptr;
}

ibv_context* context_of(const PostedRequests& posted) {
  return posted.kind == abi::WorkQueue::kSrq ? static_cast<const ibv_srq*>(posted.object)->context
                                             : static_cast<const ibv_qp*>(posted.object)->context;
}

void copy_sges(const std::byte* from, uint32_t count, Request& to) {
  to.sges.resize(count);
  if (count != 0) memcpy(to.sges.data(), from, count * sizeof(abi::Sge));
}

void copy_send(const Queue& queue, const std::byte* slot, Request& to) {
  abi::SendWqe wqe;
  memcpy(&wqe, slot, sizeof wqe);
  to.wr_id = wqe.wr_id;
  to.opcode = wqe.opcode;
  to.immediate = wqe.imm_data;
  to.remote_address = wqe.remote_address;
  to.is_inline = (wqe.flags & abi::kSendInline) != 0;
  to.is_fenced = (wqe.flags & abi::kSendFence) != 0;
  to.is_signaled = queue.qp->signals_all || (wqe.flags & abi::kSendSignaled) != 0;
  to.address_handle = queue.qp->type == abi::QpType::kUd ? wqe.ud.ah : 0;
  copy_sges(slot + sizeof wqe, to.is_inline ? 0 : wqe.num_sge, to);
}

void copy_receive(const std::byte* slot, Request& to) {
  abi::RecvWqe wqe;
  memcpy(&wqe, slot, sizeof wqe);
  to.wr_id = wqe.wr_id;
  copy_sges(slot + sizeof wqe, wqe.num_sge, to);
}

void copy_requests(const PostedRequests& posted, const CallSite& site, Queue& queue) {
  // The queue may have missed earlier posts, because it was not in its table during a failed
  // destruction.
  if (queue.requests.posted() != posted.begin) queue.requests.begin_at(posted.begin);
  for (uint64_t i = posted.begin; i != posted.end; ++i) {
    Request& request = queue.requests.push();
    request.posted = site;
    const std::byte* const slot = posted.queue.slot(i);
    if (queue.kind == QueueKind::kSend) {
      copy_send(queue, slot, request);
    } else {
      copy_receive(slot, request);
    }
  }
}

Refusal refusal_of(const RefusedRequest* refused) {
  if (refused == nullptr) return Refusal::kNone;
  if (refused->is_state_wrong) return Refusal::kState;
  if (refused->has_too_many_sges) return Refusal::kTooManySges;
  if (refused->has_too_much_inline) return Refusal::kTooMuchInline;
  return refused->error == ENOMEM ? Refusal::kFull : Refusal::kOther;
}

std::string owner_of(const Queue& queue) {
  return (queue.kind == QueueKind::kShared ? "SRQ " : "QP ") + std::to_string(queue.number);
}

/// Reports a refused request to the rules about refused calls.
void tell_of_refusal(Sanitizer& sanitizer, const Post& post) {
  const Queue& queue = post.queue;
  const bool is_send = queue.kind == QueueKind::kSend;
  if (post.refusal == Refusal::kTooManySges)
    sanitizer.tell(BeyondLimit{"num_sge", post.asked, queue.max_sge, owner_of(queue), post.site});
  if (post.refusal == Refusal::kTooMuchInline)
    sanitizer.tell(BeyondLimit{"bytes with IBV_SEND_INLINE", post.asked, queue.max_inline,
                               owner_of(queue), post.site});
  if (post.refusal != Refusal::kState || queue.qp == nullptr) return;
  const Qp& qp = *queue.qp;
  sanitizer.tell(
      WrongState{(is_send ? "posted a send to " : "posted a receive to ") + qp.title() +
                     ", which is in " + std::string(abi::name_of(qp.state)) + ": " +
                     (is_send ? "sends need RTS"
                              : "it takes receives from INIT on, and none if it has an SRQ"),
                 qp.created, post.site});
}

/// Returns the number of completions that the program took from the CQ, modulo 2^32. The caller
/// must hold the CQ's lock.
uint32_t taken_from(ibv_cq* base) {
  return static_cast<uint32_t>(reinterpret_cast<const provider::Cq*>(base)->consumed);
}

struct SavedErrno {
  const int value = errno;
  ~SavedErrno() { errno = value; }
};

}  // namespace

void on_post(const PostedRequests& posted, const RefusedRequest* refused) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  Queue* const queue = queue_of(program->objects(), posted);
  if (queue == nullptr) return;
  take_mapping_changes(*program);
  const CallSite site = program->here(posted.call, context_of(posted));
  copy_requests(posted, site, *queue);
  const Post post{.objects = program->objects(),
                  .queue = *queue,
                  .thread = this_thread(),
                  .site = site,
                  .begin = posted.begin + 1,
                  .end = posted.end + 1,
                  .head = posted.head,
                  .head_wr_id = posted.head_wr_id,
                  .refusal = refusal_of(refused),
                  .asked = refused != nullptr ? refused->asked : 0};
  program->sanitizer().tell(post);
  tell_of_refusal(program->sanitizer(), post);
}

void on_taken_back(const PostedRequests& posted) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  Queue* const queue = queue_of(program->objects(), posted);
  if (queue == nullptr) return;
  program->sanitizer().tell(PostTakenBack{*queue, posted.begin});
  queue->requests.take_back(posted.begin);
}

void on_poll(ibv_cq* base) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  take_mapping_changes(*program);
  Cq* const cq = program->objects().cqs.find(base);
  if (cq == nullptr) return;
  const Thread thread = this_thread();
  ++cq->polls;
  if (cq->polled_by != 0 && cq->polled_by != thread) cq->is_polled_by_several = true;
  cq->polled_by = thread;
  program->sanitizer().tell(Poll{*cq, thread});
}

void on_completion(ibv_cq* base, const abi::Cqe& cqe, uint32_t produced) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  Objects& objects = program->objects();
  Cq* const cq = objects.cqs.find(base);
  if (cq == nullptr) return;
  const bool is_shared = cqe.queue == abi::WorkQueue::kSrq;
  Qp* const qp = find_by_number(objects.qps_by_number, cq->context, cqe.qp_num);
  Srq* const srq =
      is_shared ? find_by_number(objects.srqs_by_number, cq->context, cqe.wqe_count) : nullptr;
  Queue* queue = nullptr;
  if (srq != nullptr) queue = &srq->receives;
  if (!is_shared && qp != nullptr)
    queue = cqe.queue == abi::WorkQueue::kSend ? &qp->sends : &qp->receives;
  const bool is_error = cqe.status != static_cast<uint32_t>(abi::WcStatus::kSuccess);
  uint64_t last = 0;
  bool is_stale = false;  // of a request from before RESET
  if (queue != nullptr) {
    Requests& requests = queue->requests;
    last = is_shared
               ? 0
               : requests.finished() + (cqe.wqe_count - static_cast<uint32_t>(requests.finished()));
    const CallSite site = is_error ? program->here("ibv_poll_cq", base->context) : CallSite{};
    const Request* const request = is_shared ? requests.find(cqe.wr_id)
                                   : last > requests.finished() && last <= requests.posted()
                                       ? &requests.at(last)
                                       : nullptr;
    is_stale = !is_shared && request == nullptr;
    program->sanitizer().tell(Completion{.objects = objects,
                                         .cq = *cq,
                                         .queue = *queue,
                                         .thread = this_thread(),
                                         .site = site,
                                         .last = last,
                                         .status = cqe.status,
                                         .request = request,
                                         .opcode = cqe.opcode,
                                         .length = cqe.byte_len,
                                         .source_qp = cqe.src_qp,
                                         .qp = qp,
                                         .index = taken_from(base) - 1,
                                         .produced = produced});
    is_shared ? (void)requests.finish_one(cqe.wr_id) : requests.finish_up_to(last);
  }
  if (is_error && qp != nullptr && !is_stale)
    qp->note_error(cqe.queue == abi::WorkQueue::kSend ? QueueKind::kSend : QueueKind::kReceive,
                   last);
}

void on_dropped(ibv_cq* base, const abi::Cqe& cqe) {
  Program* const program = Program::get();
  if (program == nullptr || cqe.queue != abi::WorkQueue::kSrq) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  Objects& objects = program->objects();
  Srq* const srq = find_by_number(objects.srqs_by_number, base->context, cqe.wqe_count);
  if (srq == nullptr) return;
  Queue& queue = srq->receives;
  program->sanitizer().tell(DroppedCompletion{queue, cqe.wr_id});
  queue.requests.finish_one(cqe.wr_id);
}

void on_acknowledgement_wait(const void* handle, int32_t completion, int32_t async) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  const Leaving* const leaving = find_leaving(handle);
  if (leaving == nullptr) return;
  program->sanitizer().tell(
      AcknowledgementWait{*leaving->object, completion, async, leaving->site});
}

void on_acknowledgements(const void* handle) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const SavedErrno saved;
  const Guard guard(program->lock);
  if (const Leaving* const leaving = find_leaving(handle))
    program->sanitizer().tell(AcknowledgementsComplete{*leaving->object});
}

}  // namespace rocemu::sanitizer
