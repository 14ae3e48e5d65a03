#include "emulator/engine/transport/uc.h"

#include "emulator/engine/transport/failure.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/remote_access.h"
#include "emulator/engine/transport/responder.h"

namespace rocemu::engine::uc {
namespace {

using wire::Operation;

/// Abandons the message in progress. The next message uses the receive WQE of this one (IBTA vol 1,
/// 9.8.2.2.4).
void abandon(TransportContext& context, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  recv.in_message = false;
  recv.received = 0;
  if (recv.wqe && recv.wqe->srq) receive_queue::give_back(context, qp);
}

/// Returns whether the error is in the peer's message, for example in its length. Such an error
/// drops the message, whereas an error of the receiver's WQE fails the QP (IBTA vol 1, 9.9.3,
/// classes D and A).
bool is_peers_mistake(Verdict verdict) {
  return verdict != Verdict::kBadReceiveLKey && verdict != Verdict::kReceiveMemoryUnwritable &&
         verdict != Verdict::kBadReceiveWqe;
}

}  // namespace

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  Counters& counters = context.counters_of(qp);
  const auto drop = [&](Counter why) {
    counters.add(why);
    abandon(context, qp);
  };
  // IBTA vol 1, 9.8.2.2.1: a gap ends the message in progress; the next First or Only is in
  // sequence again.
  if (packet.bth.psn != recv.expected) {
    counters.add(Counter::kOutOfSequence);
    abandon(context, qp);
  }
  recv.expected = packet.bth.psn + 1;
  if (info.is_first) {
    abandon(context, qp);
    recv.operation = info.operation;
  } else if (!recv.in_message || recv.operation != info.operation) {
    return drop(Counter::kDroppedNoMessage);
  }
  if (!responder::length_valid(qp, info, packet.payload.size()) ||
      !responder::operation_allowed(qp, info)) {
    return drop(Counter::kDroppedInvalidRequest);
  }
  const bool is_send = info.operation == Operation::kSend;
  const bool takes_wqe = is_send ? info.is_first : info.has(wire::ExtendedHeader::kImmDt);
  if (takes_wqe && !receive_queue::available(context, qp)) {
    context.note(ReceiveMissing{qp.client, qp.device, qp.number, qp.srq,
                                QpNumber{qp.attr.dest_qp_num}, /*is_repeated=*/false});
    return drop(Counter::kDroppedNoReceive);
  }
  recv.in_message = true;
  if (is_send) receive_queue::take(context, qp);
  const auto verdict =
      is_send ? receive_queue::scatter(context, qp, packet.payload, receive_queue::extent_of(info))
              : remote_access::write(context, qp, packet, info);
  if (verdict) {
    if (*verdict == Verdict::kReceiverGone || *verdict == Verdict::kMemoryNotReady) {
      return abandon(context, qp);
    }
    if (*verdict == Verdict::kReceiveTooSmall) return drop(Counter::kDroppedReceiveTooSmall);
    if (is_peers_mistake(*verdict)) return drop(Counter::kDroppedInvalidRequest);
    const ResponderAction action = action_for(*verdict);
    receive_queue::fail(context, qp, action.status, action.vendor);
    return enter_error(context, qp);
  }
  recv.received += packet.payload.size();
  responder::report_established(context, qp);
  if (!info.is_last) return;
  if (takes_wqe || is_send) {
    receive_queue::take(context, qp);
    receive_queue::complete(context, qp, packet, info);
  }
  recv.in_message = false;
  recv.received = 0;
}

}  // namespace rocemu::engine::uc
