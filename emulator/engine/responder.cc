#include "emulator/engine/responder.h"

#include <bit>

#include "emulator/engine/gather.h"
#include "emulator/engine/request.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::responder {
namespace {

using abi::QpState;
using abi::RecvWqe;
using abi::WcStatus;
using wire::Opcode;
using wire::Operation;
using wire::Psn;

/// Packets of one turn, as the requester's.
constexpr uint32_t kBurst = 16;

// ---- Responses ----

void send_acknowledge(Fabric& fabric, QueuePair& qp, Psn psn, uint8_t syndrome, uint32_t msn) {
  wire::Packet packet;
  packet.bth.opcode = Opcode::kRcAck;
  packet.bth.psn = psn;
  packet.aeth = {.syndrome = syndrome, .msn = msn};
  fabric.send(qp, packet, 0, fabric.frames().allocate());
}

void send_atomic_answer(Fabric& fabric, QueuePair& qp, const Response& response) {
  wire::Packet packet;
  packet.bth.opcode = Opcode::kRcAtomicAck;
  packet.bth.psn = response.psn;
  packet.aeth = {.syndrome = wire::ack_syndrome(), .msn = response.msn};
  packet.atomic_ack = {.original = response.value};
  fabric.send(qp, packet, 0, fabric.frames().allocate());
}

void queue_response(Fabric& fabric, QueuePair& qp, const Response& response) {
  qp.recv.responses.push_back(response);
  fabric.schedule(qp);
}

/// An acknowledgement, at once unless something is to go before it. One that waits stands for those
/// before it, so that only the newest waits.
void answer(Fabric& fabric, QueuePair& qp, Psn psn, uint8_t syndrome) {
  auto& responses = qp.recv.responses;
  if (responses.empty()) return send_acknowledge(fabric, qp, psn, syndrome, qp.recv.msn);
  const Response response{
      .kind = Response::Kind::kAcknowledge, .psn = psn, .msn = qp.recv.msn, .syndrome = syndrome};
  if (responses.back().kind == Response::Kind::kAcknowledge) {
    responses.back() = response;
  } else {
    queue_response(fabric, qp, response);
  }
}

// ---- Completions and refusals ----

void report(Fabric& fabric, const QueuePair& qp, abi::Cqe cqe, WcStatus status, VendorError vendor,
            bool solicited) {
  const uint32_t index = qp.recv.queue.head();
  cqe.wr_id = qp.recv.queue.header<RecvWqe>(index).wr_id;
  cqe.status = static_cast<uint32_t>(status);
  cqe.vendor_err = static_cast<uint32_t>(vendor);
  cqe.qp_num = qp.number.value;
  cqe.wqe_count = index + 1;
  cqe.qp_generation = qp.generation;
  cqe.queue = abi::WorkQueue::kRecv;
  fabric.complete(qp.recv_cq, cqe, solicited || status != WcStatus::kSuccess);
}

abi::Cqe receive_cqe() {
  abi::Cqe cqe{};
  cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecv);
  return cqe;
}

/// A SEND fills the oldest receive WQE from its first packet on; a WRITE uses none before its end.
bool wqe_in_use(const RecvHalf& recv) {
  return recv.in_message && recv.operation == Operation::kSend;
}

/// The QP is lost: NAK, tell the application through the receive WQE in use or an event, flush.
void execute_refusal(Fabric& fabric, QueuePair& qp, Psn psn, Verdict verdict) {
  const ResponderAction action = action_for(verdict);
  fabric.device_of(qp).counters.add(Counter::kErrorNaksSent);
  send_acknowledge(fabric, qp, psn, wire::nak_syndrome(action.nak), qp.recv.msn);
  if (wqe_in_use(qp.recv)) {
    report(fabric, qp, receive_cqe(), action.status, action.vendor, true);
    qp.recv.queue.pop();
  } else {
    fabric.raise(qp.client, action.event, qp.user_handle);
  }
  fabric.enter_error(qp);
}

/// Answers to earlier requests go first; until then the QP hears nothing more.
void refuse(Fabric& fabric, QueuePair& qp, Psn psn, Verdict verdict) {
  // The daemon is about to detach the client; until then its NIC is as dead as the process.
  if (verdict == Verdict::kReceiverGone) return;
  if (qp.recv.responses.empty()) return execute_refusal(fabric, qp, psn, verdict);
  qp.recv.refusing = true;
  queue_response(fabric, qp, {.kind = Response::Kind::kRefuse, .psn = psn, .verdict = verdict});
}

void not_ready(Fabric& fabric, QueuePair& qp, Psn psn) {
  // 9.7.5.2.8: the requester is to come back with this PSN after min_rnr_timer. What it has sent
  // behind it draws no further NAK.
  qp.recv.nak_outstanding = true;
  fabric.device_of(qp).counters.add(Counter::kRnrNaksSent);
  answer(fabric, qp, psn, wire::rnr_nak_syndrome(qp.attr.min_rnr_timer));
}

// ---- The checks, in the specification's order ----

void repeat(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
            const wire::OpcodeInfo& info);

/// 9.7.1: is the packet the one expected? If not, this is all that happens to it.
bool check_psn(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const int32_t distance = wire::psn_distance(recv.expected, packet.bth.psn);
  if (distance == 0) return true;
  Counters& counters = fabric.device_of(qp).counters;
  if (distance < 0) {
    counters.add(Counter::kDuplicateRequests);
    repeat(fabric, qp, packet, info);
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

/// 9.7.4.1.2: First and Only begin a message, Middle and Last go on with one of the same kind.
bool opcode_in_sequence(const RecvHalf& recv, const wire::OpcodeInfo& info) {
  if (recv.in_message != info.is_first) {
    return !recv.in_message || recv.operation == info.operation;
  }
  return false;
}

/// 9.7.4.1.6: all packets but the last are full, a Last is not empty, none exceeds the path MTU.
bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload) {
  if (!info.has_payload) return true;
  if (!info.is_last) return payload == qp.mtu();
  if (!info.is_first && payload == 0) return false;
  return payload <= qp.mtu();
}

/// 9.7.4.1.3: does the QP allow its peer this operation at all?
bool operation_allowed(const QueuePair& qp, const wire::OpcodeInfo& info) {
  const uint32_t access = qp.attr.qp_access_flags;
  switch (info.operation) {
    case Operation::kSend:
      return !info.has(wire::ExtendedHeader::kIeth);
    case Operation::kWrite:
      return (access & abi::kAccessRemoteWrite) != 0;
    case Operation::kReadRequest:
      return (access & abi::kAccessRemoteRead) != 0;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return (access & abi::kAccessRemoteAtomic) != 0;
    default:
      return false;
  }
}

/// 9.7.4.1.5: READs and atomics that are not answered yet are limited (max_dest_rd_atomic).
bool has_room_for_query(const QueuePair& qp) {
  uint32_t pending = 0;
  for (const Response& response : qp.recv.responses) {
    if (response.kind == Response::Kind::kRead) ++pending;
  }
  return pending < qp.attr.max_dest_rd_atomic;
}

// ---- Execution ----

std::optional<Verdict> verdict_of(MemoryResult result, Verdict fault) {
  switch (result) {
    case MemoryResult::kDone:
      return std::nullopt;
    case MemoryResult::kFault:
      return fault;
    case MemoryResult::kGone:
      return Verdict::kReceiverGone;
  }
  __builtin_unreachable();
}

/// SEND: places the payload behind what the message already brought.
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
  return verdict_of(fabric.host_memory().write(qp.client, ranges->span(), source),
                    Verdict::kReceiveMemoryUnwritable);
}

/// WRITE: checks the RETH on the first packet, then the length, and writes.
std::optional<Verdict> write(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                             const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  if (info.is_first) {
    recv.write_length = packet.reth.dma_length;
    if (recv.write_length > kMaxMessage) return Verdict::kInvalidRequest;
    // C9-88: a WRITE of no bytes names no memory.
    if (recv.write_length != 0) {
      const auto address =
          fabric.mrs.resolve_remote(qp.client, qp.pd, packet.reth.rkey, packet.reth.va,
                                    recv.write_length, abi::kAccessRemoteWrite);
      if (!address) return Verdict::kRemoteAccess;
      recv.write_address = *address;
    }
  }
  // 9.7.4.1.6: the payloads of the message add up to what the RETH announced.
  const uint64_t after = recv.received + packet.payload.size();
  if (info.is_last ? after != recv.write_length : after >= recv.write_length) {
    return Verdict::kInvalidRequest;
  }
  if (packet.payload.empty()) return std::nullopt;
  const std::array<RemoteRange, 1> range{
      {{recv.write_address + recv.received, packet.payload.size()}}};
  const std::array<std::span<const uint8_t>, 1> source{packet.payload};
  return verdict_of(fabric.host_memory().write(qp.client, range, source),
                    Verdict::kRemoteMemoryUnreachable);
}

/// READ: what is to be sent, if the peer may read it.
std::optional<Verdict> begin_read(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                                  Response& response) {
  response = {.kind = Response::Kind::kRead, .psn = packet.bth.psn, .left = packet.reth.dma_length};
  if (packet.reth.dma_length > kMaxMessage) return Verdict::kInvalidRequest;
  if (packet.reth.dma_length == 0) return std::nullopt;
  const auto address = fabric.mrs.resolve_remote(qp.client, qp.pd, packet.reth.rkey, packet.reth.va,
                                                 packet.reth.dma_length, abi::kAccessRemoteRead);
  if (!address) return Verdict::kRemoteAccess;
  response.address = *address;
  return std::nullopt;
}

/// CMP_SWAP and FETCH_ADD on 8 bytes, in host byte order (IBTA vol 1, 9.4.5).
std::optional<Verdict> execute_atomic(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                                      const wire::OpcodeInfo& info, uint64_t& original) {
  constexpr uint64_t kSize = sizeof(uint64_t);
  if (packet.atomic.va % kSize != 0) return Verdict::kInvalidRequest;  // C9-96
  const auto address = fabric.mrs.resolve_remote(qp.client, qp.pd, packet.atomic.rkey,
                                                 packet.atomic.va, kSize, abi::kAccessRemoteAtomic);
  if (!address) return Verdict::kRemoteAccess;
  const std::array<RemoteRange, 1> range{{{*address, kSize}}};
  std::array<uint8_t, kSize> bytes{};
  const std::array<std::span<uint8_t>, 1> target{bytes};
  if (const auto verdict = verdict_of(fabric.host_memory().read(qp.client, range, target),
                                      Verdict::kRemoteMemoryUnreachable)) {
    return verdict;
  }
  original = std::bit_cast<uint64_t>(bytes);
  if (info.operation == Operation::kCompareSwap && original != packet.atomic.compare) {
    return std::nullopt;
  }
  bytes = std::bit_cast<std::array<uint8_t, kSize>>(info.operation == Operation::kFetchAdd
                                                        ? original + packet.atomic.swap_add
                                                        : packet.atomic.swap_add);
  const std::array<std::span<const uint8_t>, 1> source{bytes};
  return verdict_of(fabric.host_memory().write(qp.client, range, source),
                    Verdict::kRemoteMemoryUnreachable);
}

/// 9.7.5.1.4 and C9-105: a duplicate SEND or WRITE is acknowledged again, not executed (the answer
/// names the newest PSN, which stands for all before it); a READ is executed again; an atomic is
/// answered from what was kept.
void repeat(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
            const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  if (info.operation == Operation::kReadRequest) {
    Response response;
    if (!has_room_for_query(qp) || !operation_allowed(qp, info) ||
        begin_read(fabric, qp, packet, response)) {
      return;  // no longer what it was: the requester's retries come to an end
    }
    response.msn = recv.msn;
    // What is being answered already is answered anew from there, not twice.
    std::erase_if(recv.responses, [&](const Response& pending) {
      return pending.kind == Response::Kind::kRead || pending.kind == Response::Kind::kAcknowledge;
    });
    return queue_response(fabric, qp, response);
  }
  if (info.operation == Operation::kCompareSwap || info.operation == Operation::kFetchAdd) {
    for (const Response& kept : recv.atomic_answers) {
      if (kept.psn == packet.bth.psn) return queue_response(fabric, qp, kept);
    }
    return;
  }
  answer(fabric, qp, recv.expected - 1, wire::ack_syndrome());
}

void count_message(RecvHalf& recv) {
  recv.in_message = false;
  recv.received = 0;
  recv.msn = (recv.msn + 1) & wire::kPsnMask;
}

/// The message uses up the oldest receive WQE and completes there.
void complete_receive(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                      const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  abi::Cqe cqe = receive_cqe();
  if (info.operation == Operation::kWrite) {
    cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecvRdmaWithImm);
  }
  cqe.byte_len = static_cast<uint32_t>(recv.received);
  cqe.src_qp = qp.attr.dest_qp_num;
  if (info.has(wire::ExtendedHeader::kImmDt)) {
    cqe.wc_flags = abi::kWcWithImm;
    cqe.imm_data = packet.imm.value;
  }
  report(fabric, qp, cqe, WcStatus::kSuccess, VendorError::kNone, packet.bth.solicited);
  recv.queue.pop();
}

/// What the peer's packet does to a QP in RTR, whatever it is.
void report_established(Fabric& fabric, QueuePair& qp) {
  // ibv_get_async_event(3), IBV_EVENT_COMM_EST: the first message on a QP still in RTR.
  if (qp.state != QpState::kRtr || qp.recv.established_reported) return;
  qp.recv.established_reported = true;
  fabric.raise(qp.client, abi::EventType::kCommEst, qp.user_handle);
}

/// SEND and WRITE.
void on_message_packet(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                       const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const Psn psn = packet.bth.psn;
  const bool is_send = info.operation == Operation::kSend;
  // A SEND needs its receive WQE from the first packet on, a WRITE with immediate at the last.
  const bool takes_wqe = is_send ? info.is_first : info.has(wire::ExtendedHeader::kImmDt);
  if (takes_wqe && recv.queue.empty()) return not_ready(fabric, qp, psn);
  if (info.is_first) recv.operation = info.operation;
  const bool was_in_message = recv.in_message;
  recv.in_message = true;
  const auto verdict =
      is_send ? scatter(fabric, qp, packet.payload) : write(fabric, qp, packet, info);
  if (verdict) {
    if (*verdict == Verdict::kReceiverGone) recv.in_message = was_in_message;
    return refuse(fabric, qp, psn, *verdict);
  }
  recv.received += packet.payload.size();
  ++recv.expected;
  recv.nak_outstanding = false;
  report_established(fabric, qp);
  if (info.is_last) {
    if (is_send || takes_wqe) complete_receive(fabric, qp, packet, info);
    count_message(recv);
  }
  if (packet.bth.ack_req) answer(fabric, qp, psn, wire::ack_syndrome());
}

/// READ and atomics.
void on_query(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const Psn psn = packet.bth.psn;
  const bool is_read = info.operation == Operation::kReadRequest;
  if (!has_room_for_query(qp)) return refuse(fabric, qp, psn, Verdict::kInvalidRequest);
  Response response{.kind = Response::Kind::kAtomic, .psn = psn};
  const auto verdict = is_read ? begin_read(fabric, qp, packet, response)
                               : execute_atomic(fabric, qp, packet, info, response.value);
  if (verdict) return refuse(fabric, qp, psn, *verdict);
  recv.expected += is_read ? psn_count(response.left, qp.mtu()) : 1;
  recv.nak_outstanding = false;
  report_established(fabric, qp);
  count_message(recv);
  response.msn = recv.msn;
  if (!is_read) {
    recv.atomic_answers.push_back(response);
    if (recv.atomic_answers.size() > qp.attr.max_dest_rd_atomic) recv.atomic_answers.pop_front();
  }
  queue_response(fabric, qp, response);
}

/// Up to `budget` packets of a READ's data. Nothing more to send: response.left is 0 and begun set.
uint32_t send_read_data(Fabric& fabric, QueuePair& qp, Response& response, uint32_t budget) {
  const uint32_t count = std::min(psn_count(response.left, qp.mtu()), budget);
  std::array<Frame, kBurst> frames;
  std::array<std::span<uint8_t>, kBurst> targets;
  std::array<wire::Packet, kBurst> packets;
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t size = std::min(response.left - bytes, qp.mtu());
    const bool first = !response.begun && i == 0;
    const bool last = bytes + size == response.left;
    wire::Packet& packet = packets[i];
    packet.src_ip = qp.path.src_ip;
    packet.dst_ip = qp.path.dst_ip;
    packet.bth.opcode = first && last ? Opcode::kRcReadResponseOnly
                        : first       ? Opcode::kRcReadResponseFirst
                        : last        ? Opcode::kRcReadResponseLast
                                      : Opcode::kRcReadResponseMiddle;
    packet.bth.psn = response.psn + i;
    packet.aeth = {.syndrome = wire::ack_syndrome(), .msn = response.msn};
    frames[i] = fabric.frames().allocate();
    targets[i] =
        std::span<uint8_t>(frames[i].storage()).subspan(wire::payload_offset(packet), size);
    bytes += size;
  }
  if (bytes != 0) {
    const std::array<RemoteRange, 1> range{{{response.address, bytes}}};
    if (const auto verdict =
            verdict_of(fabric.host_memory().read(qp.client, range, {targets.data(), count}),
                       Verdict::kRemoteMemoryUnreachable)) {
      if (*verdict != Verdict::kReceiverGone) {
        execute_refusal(fabric, qp, response.psn, *verdict);
      }
      return 0;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    fabric.send(qp, packets[i], targets[i].size(), std::move(frames[i]));
  }
  response.begun = true;
  response.psn += count;
  response.address += bytes;
  response.left -= bytes;
  return count;
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
  if (qp.recv.refusing) return;
  if (!check_psn(fabric, qp, packet, info)) return;
  if (!opcode_in_sequence(qp.recv, info) || !operation_allowed(qp, info) ||
      !length_valid(qp, info, packet.payload.size())) {
    return refuse(fabric, qp, packet.bth.psn, Verdict::kInvalidRequest);
  }
  if (info.operation == Operation::kSend || info.operation == Operation::kWrite) {
    on_message_packet(fabric, qp, packet, info);
  } else {
    on_query(fabric, qp, packet, info);
  }
}

uint32_t transmit(Fabric& fabric, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  uint32_t sent = 0;
  while (sent < kBurst && !recv.responses.empty()) {
    Response& response = recv.responses.front();
    switch (response.kind) {
      case Response::Kind::kAcknowledge:
        send_acknowledge(fabric, qp, response.psn, response.syndrome, response.msn);
        ++sent;
        break;
      case Response::Kind::kAtomic:
        send_atomic_answer(fabric, qp, response);
        ++sent;
        break;
      case Response::Kind::kRefuse: {
        const Response refusal = response;
        execute_refusal(fabric, qp, refusal.psn, refusal.verdict);
        return sent + 1;
      }
      case Response::Kind::kRead: {
        const uint32_t frames = send_read_data(fabric, qp, response, kBurst - sent);
        sent += frames;
        if (frames == 0) {  // the memory is not there, or the process
          recv.responses.clear();
          return sent;
        }
        if (response.left != 0) continue;
        break;
      }
    }
    recv.responses.pop_front();
  }
  if (!recv.responses.empty()) fabric.schedule(qp);
  return sent;
}

void flush(Fabric& fabric, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  while (!recv.queue.empty()) {
    report(fabric, qp, receive_cqe(), WcStatus::kWrFlushErr, VendorError::kFlushed, true);
    recv.queue.pop();
  }
  recv.in_message = false;
  recv.refusing = false;
  recv.received = 0;
  recv.responses.clear();
}

}  // namespace rocemu::engine::responder
