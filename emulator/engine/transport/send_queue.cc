#include "emulator/engine/transport/send_queue.h"

#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/failure.h"

namespace rocemu::engine::send_queue {
namespace {

using abi::QpState;
using abi::SendWqe;
using abi::WcStatus;
using abi::WrOpcode;
using wire::Psn;

/// Fills the buffer of a READ or atomic with a pattern, because the request began and failed.
void spoil_answer(TransportContext& context, const QueuePair& qp, uint32_t index,
                  const SendWqe& wqe) {
  const SendState& state = qp.send.queue.state(index);
  const AnsweredBy answer = traits_of(state.kind).answer;
  const bool has_buffer =
      answer == AnsweredBy::kReadResponse || answer == AnsweredBy::kAtomicAcknowledge;
  if (!state.started || !has_buffer || wqe.num_sge > qp.attr.cap.max_send_sge) return;
  const SgeList buffer = read_sges(qp.send.queue.rest(index, sizeof(SendWqe)), wqe.num_sge);
  context.adversary()->spoil(qp.pd, buffer, state.length);
}

/// Reports the completion of a WQE. Returns false if a rule turned the completion into a failure.
bool report(TransportContext& context, const QueuePair& qp, uint32_t index, WcStatus status,
            VendorError vendor) {
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  if (status != WcStatus::kSuccess && context.adversary() != nullptr) [[unlikely]]
    spoil_answer(context, qp, index, wqe);
  const bool wanted =
      status != WcStatus::kSuccess || (wqe.flags & abi::kSendSignaled) != 0 || qp.sq_sig_all;
  if (!wanted && !context.faults().watches(faults::Where::kCompletion)) return true;
  abi::Cqe cqe{};
  cqe.wr_id = wqe.wr_id;
  cqe.status = static_cast<uint32_t>(status);
  cqe.opcode = static_cast<uint32_t>(completion_opcode(static_cast<WrOpcode>(wqe.opcode)));
  cqe.vendor_err = static_cast<uint32_t>(vendor);
  cqe.byte_len = qp.send.queue.state(index).length;
  cqe.qp_num = qp.number.value;
  cqe.wqe_count = index + 1;
  cqe.qp_generation = qp.generation;
  cqe.queue = abi::WorkQueue::kSend;
  // ibv_req_notify_cq(3): a successful send is unsolicited; a failure always counts as solicited.
  return context.complete(qp, qp.send_cq, cqe, status != WcStatus::kSuccess, wanted);
}

/// Moves the QP to the state that it enters when its oldest WQE fails.
void fail_queue(TransportContext& context, QueuePair& qp) {
  if (is_reliable(qp.type)) return enter_error(context, qp);
  // IBTA vol 1, 10.3.1.6: only the send queue of an unreliable QP stops; later posts are flushed.
  qp.state = QpState::kSqe;
  flush(context, qp);
}

/// Completes the oldest WQE successfully, unless a rule prevents this.
void complete_oldest(TransportContext& context, QueuePair& qp) {
  SendHalf& send = qp.send;
  const bool was_next = send.next == send.queue.head();
  if (wants_response(send.queue.state(send.queue.head()).kind)) --send.responses_outstanding;
  const bool succeeded =
      report(context, qp, send.queue.head(), WcStatus::kSuccess, VendorError::kNone);
  send.queue.pop();
  if (was_next) {  // acknowledged while it was being retransmitted
    ++send.next;
    send.next_packet = 0;
  }
  if (!succeeded) fail_queue(context, qp);
}

}  // namespace

void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe) {
  SendHalf& send = qp.send;
  switch (qp.state) {
    case QpState::kReset:
    case QpState::kInit:
    case QpState::kRtr:
      // The provider refuses to post in this state, so another thread has changed the state in the
      // meantime.
      send.queue.clear();
      send.queue.skip();
      send.next = send.queue.tail();
      return;
    case QpState::kSqe:
    case QpState::kErr:
      send.queue.push(wqe);
      flush(context, qp);
      return;
    case QpState::kSqd:
      send.queue.push(wqe);
      return;
    case QpState::kRts:
      send.queue.push(wqe);
      context.scheduler().schedule(qp);
      return;
  }
}

void start(TransportContext& context, QueuePair& qp) {
  SendHalf& send = qp.send;
  send.next_psn = send.unacked = send.sent_limit = send.ack_limit = Psn(qp.attr.sq_psn);
  send.unplaced_limit = send.unacked;
  send.next = send.queue.head();
  send.next_packet = 0;
  reset_retries(qp);
  resume(context, qp);
}

void resume(TransportContext& context, QueuePair& qp) {
  qp.send.drained_reported = false;
  if (qp.send.unacked == qp.send.sent_limit) reset_retries(qp);  // SQD may have changed them
  if (may_send(qp)) context.scheduler().schedule(qp);
}

bool may_send(const QueuePair& qp) {
  const SendHalf& send = qp.send;
  if (send.waiting_for_rnr || send.error || send.next == send.queue.tail()) return false;
  if (qp.state == QpState::kRts) return true;
  // IBTA vol 1, 10.3.1.4: a queue that is draining finishes requests that have begun, but begins no
  // further ones.
  return qp.state == QpState::kSqd && send.queue.state(send.next).started;
}

void complete_acknowledged(TransportContext& context, QueuePair& qp) {
  const SendHalf& send = qp.send;
  while (!send.queue.empty()) {
    const SendState& state = send.queue.state(send.queue.head());
    if (!state.started || !wire::psn_before(state.last, send.unacked)) return;
    complete_oldest(context, qp);
  }
}

void fail_oldest(TransportContext& context, QueuePair& qp, LocalError error) {
  report(context, qp, qp.send.queue.head(), error.status, error.vendor);
  qp.send.queue.pop();
  fail_queue(context, qp);
}

void stop_at_next(TransportContext& context, QueuePair& qp, LocalError error) {
  qp.send.error = error;
  if (qp.send.next == qp.send.queue.head()) fail_oldest(context, qp, error);
}

void flush(TransportContext& context, QueuePair& qp) {
  SendHalf& send = qp.send;
  while (!send.queue.empty()) {
    report(context, qp, send.queue.head(), WcStatus::kWrFlushErr, VendorError::kFlushed);
    send.queue.pop();
  }
  send.next = send.queue.head();
  send.next_packet = 0;
  send.error.reset();
  send.waiting_for_rnr = false;
  send.answer_unplaced = false;
  send.responses_outstanding = 0;
  send.placed = 0;
  context.memory().forget_copies(qp.client, qp.number);
  send.unacked = send.sent_limit = send.ack_limit = send.unplaced_limit = send.next_psn;
}

void reset_retries(QueuePair& qp) {
  qp.send.loss_noticed = false;
  qp.send.retries_left = qp.attr.retry_cnt;
  qp.send.rnr_retries_left = qp.attr.rnr_retry;
}

void check_drained(TransportContext& context, QueuePair& qp) {
  if (qp.state != QpState::kSqd || qp.send.drained_reported || !drained(qp)) return;
  qp.send.drained_reported = true;
  if (qp.attr.en_sqd_async_notify != 0) {
    context.raise(qp, abi::EventType::kSqDrained);
  }
}

bool drained(const QueuePair& qp) {
  const SendHalf& send = qp.send;
  return send.queue.empty() || !send.queue.state(send.queue.head()).started;
}

}  // namespace rocemu::engine::send_queue
