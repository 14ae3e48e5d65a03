#include "emulator/engine/responder.h"

#include "emulator/engine/gather.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::responder {
namespace {

using abi::QpState;
using abi::RecvWqe;
using abi::WcStatus;
using wire::Psn;

void answer(Fabric& fabric, QueuePair& qp, Psn psn, uint8_t syndrome) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kRcAck;
  packet.bth.psn = psn;
  packet.aeth = {.syndrome = syndrome, .msn = qp.recv.msn};
  fabric.send(qp, packet, 0, fabric.frames().allocate());
}

void report(Fabric& fabric, const QueuePair& qp, abi::Cqe cqe, WcStatus status, VendorError vendor,
            bool solicited) {
  const uint32_t index = qp.recv.queue.head();
  cqe.wr_id = qp.recv.queue.header<RecvWqe>(index).wr_id;
  cqe.status = static_cast<uint32_t>(status);
  cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecv);
  cqe.vendor_err = static_cast<uint32_t>(vendor);
  cqe.qp_num = qp.number.value;
  cqe.wqe_count = index + 1;
  cqe.qp_generation = qp.generation;
  cqe.queue = abi::WorkQueue::kRecv;
  fabric.complete(qp.recv_cq, cqe, solicited || status != WcStatus::kSuccess);
}

/// The QP is lost: NAK, tell the application through the receive WQE in use or an event, flush.
void refuse(Fabric& fabric, QueuePair& qp, Psn psn, Verdict verdict, bool wqe_in_use) {
  // The daemon is about to detach the client; until then its NIC is as dead as the process.
  if (verdict == Verdict::kReceiverGone) return;
  const ResponderAction action = action_for(verdict);
  fabric.device_of(qp).counters.add(Counter::kErrorNaksSent);
  answer(fabric, qp, psn, wire::nak_syndrome(action.nak));
  if (wqe_in_use) {
    report(fabric, qp, {}, action.status, action.vendor, true);
    qp.recv.queue.pop();
  } else {
    fabric.raise(qp.client, action.event, qp.user_handle);
  }
  fabric.enter_error(qp);
}

/// 9.7.1: is the packet the one expected? If not, this is all that happens to it.
bool check_psn(Fabric& fabric, QueuePair& qp, const wire::Packet& packet) {
  RecvHalf& recv = qp.recv;
  const int32_t distance = wire::psn_distance(recv.expected, packet.bth.psn);
  if (distance == 0) return true;
  Counters& counters = fabric.device_of(qp).counters;
  if (distance < 0) {
    counters.add(Counter::kDuplicateRequests);
    // C9-105: a duplicate SEND is acknowledged again, not executed; the answer names the newest
    // PSN, which stands for all before it.
    answer(fabric, qp, recv.expected - 1, wire::ack_syndrome());
    return false;
  }
  counters.add(Counter::kOutOfSequence);
  // C9-114: one NAK, then silence until the expected request comes.
  if (!recv.nak_outstanding) {
    recv.nak_outstanding = true;
    counters.add(Counter::kSequenceNaksSent);
    answer(fabric, qp, recv.expected, wire::nak_syndrome(wire::NakCode::kPsnSequenceError));
  }
  return false;
}

/// 9.7.4.1.2: First and Only begin a message, Middle and Last go on with one.
bool opcode_in_sequence(const RecvHalf& recv, const wire::OpcodeInfo& info) {
  return recv.in_message != info.is_first;
}

/// 9.7.4.1.6: all packets but the last are full, a Last is not empty, none exceeds the path MTU.
bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload) {
  if (!info.is_last) return payload == qp.mtu();
  if (!info.is_first && payload == 0) return false;
  return payload <= qp.mtu();
}

/// Places the payload behind what the message already brought.
std::optional<Verdict> scatter(Fabric& fabric, QueuePair& qp, std::span<const uint8_t> payload) {
  RecvHalf& recv = qp.recv;
  const uint32_t index = recv.queue.head();
  const auto wqe = recv.queue.header<RecvWqe>(index);
  if (wqe.num_sge > qp.attr.cap.max_recv_sge) return Verdict::kBadReceiveWqe;
  if (payload.empty()) return std::nullopt;
  const SgeList list = read_sges(recv.queue.rest(index, sizeof(RecvWqe)), wqe.num_sge);
  if (recv.received + payload.size() > list.total()) return Verdict::kReceiveTooSmall;
  const auto ranges =
      resolve(fabric.mrs, qp, list, recv.received, payload.size(), abi::kAccessLocalWrite);
  if (!ranges) return Verdict::kBadReceiveLKey;
  const std::array<std::span<const uint8_t>, 1> source{payload};
  switch (fabric.host_memory().write(qp.client, ranges->span(), source)) {
    case MemoryResult::kDone:
      return std::nullopt;
    case MemoryResult::kFault:
      return Verdict::kReceiveMemoryUnwritable;
    case MemoryResult::kGone:
      return Verdict::kReceiverGone;
  }
  __builtin_unreachable();
}

void finish_message(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                    const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  abi::Cqe cqe{};
  cqe.byte_len = static_cast<uint32_t>(recv.received);
  cqe.src_qp = qp.attr.dest_qp_num;
  if (info.has(wire::ExtendedHeader::kImmDt)) {
    cqe.wc_flags = abi::kWcWithImm;
    cqe.imm_data = packet.imm.value;
  }
  report(fabric, qp, cqe, WcStatus::kSuccess, VendorError::kNone, packet.bth.solicited);
  recv.queue.pop();
  recv.in_message = false;
  recv.received = 0;
  recv.msn = (recv.msn + 1) & wire::kPsnMask;
}

}  // namespace

void post(Fabric& fabric, QueuePair& qp, std::span<const std::byte> wqe) {
  if (qp.state == QpState::kReset) {  // as requester::post
    qp.recv.queue.clear();
    qp.recv.queue.skip();
    return;
  }
  qp.recv.queue.push(wqe);
  if (qp.state == QpState::kErr) flush(fabric, qp);
}

void on_request(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const Psn psn = packet.bth.psn;
  if (!check_psn(fabric, qp, packet)) return;

  if (!opcode_in_sequence(recv, info) || info.operation != wire::Operation::kSend ||
      info.has(wire::ExtendedHeader::kIeth)) {
    return refuse(fabric, qp, psn, Verdict::kInvalidRequest, recv.in_message);
  }
  if (!length_valid(qp, info, packet.payload.size())) {
    return refuse(fabric, qp, psn, Verdict::kInvalidRequest, recv.in_message);
  }
  if (info.is_first && recv.queue.empty()) {
    // 9.7.5.2.8: not ready; the requester is to come back with this PSN after min_rnr_timer. What
    // it has sent behind it draws no further NAK.
    recv.nak_outstanding = true;
    fabric.device_of(qp).counters.add(Counter::kRnrNaksSent);
    return answer(fabric, qp, psn, wire::rnr_nak_syndrome(qp.attr.min_rnr_timer));
  }
  if (const auto verdict = scatter(fabric, qp, packet.payload)) {
    return refuse(fabric, qp, psn, *verdict, true);
  }

  recv.in_message = true;
  recv.received += packet.payload.size();
  ++recv.expected;
  recv.nak_outstanding = false;
  // ibv_get_async_event(3), IBV_EVENT_COMM_EST: the first message on a QP still in RTR.
  if (qp.state == QpState::kRtr && !recv.established_reported) {
    recv.established_reported = true;
    fabric.raise(qp.client, abi::EventType::kCommEst, qp.user_handle);
  }
  if (info.is_last) finish_message(fabric, qp, packet, info);
  if (packet.bth.ack_req) answer(fabric, qp, psn, wire::ack_syndrome());
}

void flush(Fabric& fabric, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  while (!recv.queue.empty()) {
    report(fabric, qp, {}, WcStatus::kWrFlushErr, VendorError::kFlushed, true);
    recv.queue.pop();
  }
  recv.in_message = false;
  recv.received = 0;
}

}  // namespace rocemu::engine::responder
