#include "emulator/engine/transport/receive_queue.h"

#include <array>

#include "emulator/engine/objects/sge_list.h"
#include "emulator/engine/transport/failure.h"

namespace rocemu::engine::receive_queue {
namespace {

using abi::QpState;
using abi::RecvWqe;
using abi::WcStatus;
using wire::Operation;

/// Completes the WQE in use. Returns false if a rule turned a success into a failure.
bool report(TransportContext& context, QueuePair& qp, abi::Cqe cqe, WcStatus status,
            VendorError vendor, bool solicited) {
  const ReceiveWqe& wqe = *qp.recv.wqe;
  cqe.wr_id = wqe.wr_id;
  cqe.status = static_cast<uint32_t>(status);
  cqe.vendor_err = static_cast<uint32_t>(vendor);
  cqe.qp_num = qp.number.value;
  cqe.wqe_count = wqe.wqe_count;
  cqe.qp_generation = qp.generation;
  cqe.queue = wqe.srq ? abi::WorkQueue::kSrq : abi::WorkQueue::kRecv;
  if (wqe.srq) shared_receive_queue::finish(context.objects(), wqe);
  const CqId cq = wqe.cq;
  qp.recv.wqe.reset();
  return context.complete(qp, cq, cqe, solicited || status != WcStatus::kSuccess);
}

/// Returns WQE `index` of the QP's own queue.
ReceiveWqe own_wqe(const QueuePair& qp, uint32_t index) {
  const RecvHalf& recv = qp.recv;
  const auto header = recv.queue.header<RecvWqe>(index);
  const bool well_formed = header.num_sge <= qp.attr.cap.max_recv_sge;
  return {
      .wr_id = header.wr_id,
      .wqe_count = index + 1,
      .srq = {},
      .pd = qp.pd,
      .cq = qp.recv_cq,
      .well_formed = well_formed,
      .sges = read_sges(recv.queue.rest(index, sizeof(RecvWqe)), well_formed ? header.num_sge : 0)};
}

/// Returns the WQE in use or, if there is none, the next WQE, which must exist.
ReceiveWqe next(const TransportContext& context, const QueuePair& qp) {
  if (qp.recv.wqe) return *qp.recv.wqe;
  if (qp.srq) {
    ReceiveWqe wqe = shared_receive_queue::oldest(*context.objects().srqs.find(*qp.srq));
    if (qp.type != abi::QpType::kXrcRecv) wqe.cq = qp.recv_cq;
    return wqe;
  }
  return own_wqe(qp, qp.recv.queue.head());
}

abi::Cqe receive_cqe() {
  abi::Cqe cqe{};
  cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecv);
  return cqe;
}

/// Returns the type of a RoCE packet. Like mlx5, rocemu stores it in the low bits of a datagram's
/// service level. UCX before 1.19 reads the type there on every NIC, to find the position of the
/// GID that it compares.
uint8_t roce_packet_type(const wire::Packet& packet) {
  constexpr uint8_t kIpv6 = 1, kIpv4 = 2;  // 0 is RoCE v1
  return packet.src_ip.is_v4() ? kIpv4 : kIpv6;
}

}  // namespace

void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe) {
  if (qp.state == QpState::kReset) {  // as send_queue::post
    qp.recv.queue.clear();
    qp.recv.queue.skip();
    return;
  }
  qp.recv.queue.push(wqe);
  if (qp.state == QpState::kErr) flush(context, qp);
}

bool failed(const TransportContext& context, const QueuePair& qp) {
  return qp.srq && context.objects().srqs.find(*qp.srq)->failed;
}

bool available(const TransportContext& context, const QueuePair& qp) {
  if (qp.recv.wqe) return true;
  return qp.srq ? !context.objects().srqs.find(*qp.srq)->queue.empty() : !qp.recv.queue.empty();
}

bool has_room(const TransportContext& context, const QueuePair& qp, uint64_t length) {
  const ReceiveWqe wqe = next(context, qp);
  return !wqe.well_formed || length <= total(wqe.sges);
}

std::optional<ReceiveWqe> find_next(const QueuePair& qp, uint32_t ahead) {
  if (qp.recv.wqe && ahead == 0) return qp.recv.wqe;
  const uint32_t behind_head = ahead - (qp.recv.wqe ? 1 : 0);
  if (qp.srq || behind_head >= qp.recv.queue.size()) return std::nullopt;
  return own_wqe(qp, qp.recv.queue.head() + behind_head);
}

void take(TransportContext& context, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  if (recv.wqe) return;
  recv.wqe = next(context, qp);
  if (qp.srq) {
    shared_receive_queue::take(context.faults().events, *context.objects().srqs.find(*qp.srq));
  } else {
    recv.queue.pop();
  }
}

void give_back(TransportContext& context, QueuePair& qp) {
  if (qp.recv.wqe && qp.recv.wqe->srq)
    shared_receive_queue::put_back(context.objects(), *qp.recv.wqe);
  qp.recv.wqe.reset();
}

std::optional<Verdict> scatter(TransportContext& context, QueuePair& qp,
                               std::span<const uint8_t> payload, Extent extent) {
  const RecvHalf& recv = qp.recv;
  const ReceiveWqe& wqe = *recv.wqe;
  if (!wqe.well_formed) return Verdict::kBadReceiveWqe;
  PacketRun& run = context.run_at_hand();
  if (payload.empty() || run.is_written()) return std::nullopt;
  const uint64_t capacity = total(wqe.sges);
  if (recv.received + payload.size() > capacity) return Verdict::kReceiveTooSmall;
  const auto memory_of = [&](uint64_t bytes) {
    return resolve(context.objects().mrs, wqe.pd, wqe.sges, recv.received, bytes,
                   abi::kAccessLocalWrite);
  };
  if (run.write_together(context.memory(), capacity - recv.received, memory_of)) {
    return std::nullopt;
  }
  const auto ranges = memory_of(payload.size());
  if (!ranges) return Verdict::kBadReceiveLKey;
  const std::array<std::span<const uint8_t>, 1> source{payload};
  const CompletionQueue* cq =
      extent == Extent::kWhole ? context.objects().cqs.find(wqe.cq) : nullptr;
  const MemoryResult result = cq != nullptr
                                  ? ranges->write_received(context.memory(), cq->client, qp.number,
                                                           recv.received == 0, source)
                                  : ranges->write(context.memory(), source);
  return verdict_of(result, Verdict::kReceiveMemoryUnwritable);
}

bool complete(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const CqId cq = recv.wqe->cq;
  abi::Cqe cqe = receive_cqe();
  if (info.operation == Operation::kWrite) {
    cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecvRdmaWithImm);
  }
  cqe.byte_len = static_cast<uint32_t>(recv.received);
  cqe.src_qp = qp.attr.dest_qp_num;
  if (qp.type == abi::QpType::kUd) {
    cqe.src_qp = packet.deth.src_qpn;
    cqe.wc_flags |= abi::kWcGrh;  // every RoCE packet has one (annex A17.4.5)
    cqe.sl = roce_packet_type(packet);
  }
  if (info.has(wire::ExtendedHeader::kImmDt)) {
    cqe.wc_flags |= abi::kWcWithImm;
    cqe.imm_data = packet.imm.value;
  } else if (info.has(wire::ExtendedHeader::kIeth)) {
    cqe.wc_flags = abi::kWcWithInv;
    cqe.imm_data = packet.ieth.rkey;
  }
  if (!report(context, qp, cqe, WcStatus::kSuccess, VendorError::kNone, packet.bth.solicited)) {
    enter_error(context, qp);
  }
  const CompletionQueue* told = context.objects().cqs.find(cq);
  return told != nullptr && !told->failed;
}

void fail(TransportContext& context, QueuePair& qp, WcStatus status, VendorError vendor) {
  const bool began = qp.recv.in_message || status != WcStatus::kWrFlushErr;
  if (began && context.adversary() != nullptr) [[unlikely]] {
    const ReceiveWqe& wqe = *qp.recv.wqe;
    context.adversary()->spoil(wqe.pd, wqe.sges, total(wqe.sges));
  }
  report(context, qp, receive_cqe(), status, vendor, true);
}

void flush(TransportContext& context, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  while (recv.wqe || !recv.queue.empty()) {
    take(context, qp);
    fail(context, qp, WcStatus::kWrFlushErr, VendorError::kFlushed);
  }
  recv.in_message = false;
  recv.refusing = false;
  recv.received = 0;
  recv.responses.clear();
}

}  // namespace rocemu::engine::receive_queue
