#include "emulator/engine/requester.h"

#include <algorithm>
#include <array>
#include <bit>

#include "emulator/engine/gather.h"
#include "emulator/engine/request.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::requester {
namespace {

using abi::QpState;
using abi::SendWqe;
using abi::WcStatus;
using abi::WrOpcode;
using wire::Opcode;
using wire::Psn;

/// Packets of one turn: one gather of payload, then the next QP.
constexpr uint32_t kBurst = 16;
/// Packets in flight at most; IBTA vol 1, 9.7.2 allows 2^23 - 1.
constexpr int32_t kWindow = 1 << 20;
/// rnr_retry and retry_cnt are 3 bits; 7 means "for ever" for RNR only (ibv_modify_qp(3)).
constexpr uint8_t kInfiniteRnrRetry = 7;

/// What is wrong with the WQE itself, before any of it is sent.
std::optional<LocalError> check_wqe(const Fabric& fabric, const QueuePair& qp, const SendWqe& wqe,
                                    uint64_t length) {
  const auto kind = request_kind(static_cast<WrOpcode>(wqe.opcode));
  if (!kind) return LocalError{WcStatus::kLocQpOpErr, VendorError::kOpcodeNotSupported};
  const bool is_inline = (wqe.flags & abi::kSendInline) != 0;
  if (is_inline ? wqe.inline_size > qp.attr.cap.max_inline_data
                : wqe.num_sge > qp.attr.cap.max_send_sge) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  }
  if (length > kMaxMessage) return LocalError{WcStatus::kLocLenErr, VendorError::kMessageTooLong};
  if (!wants_response(*kind)) return std::nullopt;

  // ibv_modify_qp(3), max_rd_atomic: with none outstanding allowed, none can be sent.
  if (is_inline || qp.attr.max_rd_atomic == 0) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  }
  if (*kind == RequestKind::kAtomic && length != sizeof(uint64_t)) {
    return LocalError{WcStatus::kLocLenErr, VendorError::kBadWqe};
  }
  // The answer needs a place before it is asked for.
  const SgeList list = read_sges(qp.send.queue.rest(qp.send.next, sizeof(SendWqe)), wqe.num_sge);
  if (!resolve(fabric.mrs, qp, list, 0, length, abi::kAccessLocalWrite)) {
    return LocalError{WcStatus::kLocProtErr, VendorError::kBadSendLKey};
  }
  return std::nullopt;
}

/// The sizes in a WQE come from the client: never beyond what the QP has room for.
uint64_t message_length(const QueuePair& qp, uint32_t index, const SendWqe& wqe) {
  if ((wqe.flags & abi::kSendInline) != 0) return wqe.inline_size;
  const uint32_t count = std::min(wqe.num_sge, qp.attr.cap.max_send_sge);
  return read_sges(qp.send.queue.rest(index, sizeof(SendWqe)), count).total();
}

void report(Fabric& fabric, const QueuePair& qp, uint32_t index, WcStatus status,
            VendorError vendor) {
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  if (status == WcStatus::kSuccess && (wqe.flags & abi::kSendSignaled) == 0 && !qp.sq_sig_all) {
    return;
  }
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
  // ibv_req_notify_cq(3): a successful send is unsolicited, any failure counts as solicited.
  fabric.complete(qp.send_cq, cqe, status != WcStatus::kSuccess);
}

/// The oldest WQE failed: it completes so, and the QP with it (IBTA vol 1, 10.3.1.5).
void fail_oldest(Fabric& fabric, QueuePair& qp, LocalError error) {
  report(fabric, qp, qp.send.queue.head(), error.status, error.vendor);
  qp.send.queue.pop();
  fabric.enter_error(qp);
}

/// A local error ends the stream at WQE `next`; those before it complete first, in order.
void stop_at_next(Fabric& fabric, QueuePair& qp, LocalError error) {
  qp.send.error = error;
  if (qp.send.next == qp.send.queue.head()) fail_oldest(fabric, qp, error);
}

/// The timer runs while a request that asked for an acknowledgement waits for one. Progress and
/// going back restart it; sending more does not, or a busy sender would never notice a dead peer.
void restart_ack_timer(Fabric& fabric, QueuePair& qp) {
  const bool waiting = wire::psn_before(qp.send.unacked, qp.send.ack_limit);
  if (!waiting || qp.send.waiting_for_rnr || qp.attr.timeout == 0) {
    TimerQueue::cancel(qp.timers, TimerKind::kAck);
    return;
  }
  // IBTA vol 1, 9.7.6.1.3: 4.096 us * 2^timeout; 0 means never.
  fabric.set_timer(qp, TimerKind::kAck, fabric.now() + Duration(int64_t{4096} << qp.attr.timeout));
}

void reset_retries(QueuePair& qp) {
  qp.send.retries_left = qp.attr.retry_cnt;
  qp.send.rnr_retries_left = qp.attr.rnr_retry;
}

/// Back to the oldest unacknowledged PSN, which is in the oldest WQE.
void go_back(Fabric& fabric, QueuePair& qp) {
  SendHalf& send = qp.send;
  if (send.unacked == send.sent_limit) return;
  send.ack_limit = send.unacked;  // what is sent again asks again
  send.error.reset();             // found again when its turn comes
  send.next = send.queue.head();
  send.next_packet =
      static_cast<uint32_t>(wire::psn_distance(send.queue.state(send.next).first, send.unacked));
  fabric.schedule(qp);
}

/// The oldest WQE is done.
void complete_oldest(Fabric& fabric, QueuePair& qp) {
  SendHalf& send = qp.send;
  const bool was_next = send.next == send.queue.head();
  if (wants_response(send.queue.state(send.queue.head()).kind)) --send.responses_outstanding;
  report(fabric, qp, send.queue.head(), WcStatus::kSuccess, VendorError::kNone);
  send.queue.pop();
  if (was_next) {  // acknowledged while it was being sent again
    ++send.next;
    send.next_packet = 0;
  }
}

/// How far an acknowledgement of everything before `psn` reaches: not past a READ or an atomic
/// whose answer has not come.
Psn acknowledgeable(const QueuePair& qp, Psn psn) {
  const SendHalf& send = qp.send;
  for (uint32_t i = send.queue.head(); i != send.queue.tail(); ++i) {
    const SendState& state = send.queue.state(i);
    if (!state.started || !wire::psn_before(state.first, psn)) break;
    if (wants_response(state.kind)) {
      return wire::psn_before(state.first, send.unacked) ? send.unacked : state.first;
    }
  }
  return psn;
}

struct Acknowledged {
  bool progress;  // it was news
  bool all;       // and nothing before `psn` is missing
};

/// Everything before `psn` is acknowledged: completes what that finishes.
Acknowledged acknowledge_before(Fabric& fabric, QueuePair& qp, Psn psn) {
  SendHalf& send = qp.send;
  const Psn reached = acknowledgeable(qp, psn);
  const bool all = reached == psn;
  if (wire::psn_distance(send.unacked, reached) <= 0) return {false, all};
  send.unacked = reached;
  reset_retries(qp);
  while (!send.queue.empty()) {
    const SendState& state = send.queue.state(send.queue.head());
    if (!state.started || !wire::psn_before(state.last, reached)) break;
    complete_oldest(fabric, qp);
  }
  if (!send.queue.empty() && send.next == send.queue.head()) {
    const SendState& state = send.queue.state(send.next);
    if (state.started && wire::psn_before(state.first, reached)) {
      send.next_packet = std::max(send.next_packet,
                                  static_cast<uint32_t>(wire::psn_distance(state.first, reached)));
    }
    if (send.error) fail_oldest(fabric, qp, *send.error);
  }
  return {true, all};
}

bool retry(Fabric& fabric, QueuePair& qp, VendorError exhausted) {
  if (qp.send.retries_left == 0) {
    fail_oldest(fabric, qp, {WcStatus::kRetryExcErr, exhausted});
    return false;
  }
  --qp.send.retries_left;
  go_back(fabric, qp);
  restart_ack_timer(fabric, qp);
  return true;
}

void on_rnr_nak(Fabric& fabric, QueuePair& qp, uint8_t timer_code) {
  fabric.device_of(qp).counters.add(Counter::kRnrNaksReceived);
  SendHalf& send = qp.send;
  if (send.waiting_for_rnr) return;
  if (qp.attr.rnr_retry != kInfiniteRnrRetry) {
    if (send.rnr_retries_left == 0) {
      return fail_oldest(fabric, qp, {WcStatus::kRnrRetryExcErr, VendorError::kRnrRetries});
    }
    --send.rnr_retries_left;
  }
  send.waiting_for_rnr = true;
  TimerQueue::cancel(qp.timers, TimerKind::kAck);
  fabric.set_timer(qp, TimerKind::kRnr, fabric.now() + Duration(wire::kRnrTimerNs[timer_code]));
}

/// Syndromes without a meaning for reliable connections: nothing may be concluded from them, not
/// even that what came before was received (IBTA vol 1, 9.7.5.2.8).
bool is_reserved(wire::AethKind kind, uint8_t detail) {
  if (kind != wire::AethKind::kNak) return kind == wire::AethKind::kReserved;
  const auto code = static_cast<wire::NakCode>(detail);
  return code != wire::NakCode::kPsnSequenceError && !action_for(code);
}

void on_nak(Fabric& fabric, QueuePair& qp, uint8_t code) {
  const auto nak = static_cast<wire::NakCode>(code);
  Counters& counters = fabric.device_of(qp).counters;
  if (nak == wire::NakCode::kPsnSequenceError) {
    counters.add(Counter::kSequenceNaksReceived);
    // While the receiver is known not to be ready, sending again has to wait for the RNR timer.
    if (!qp.send.waiting_for_rnr) retry(fabric, qp, VendorError::kSequenceRetries);
    return;
  }
  const auto action = action_for(nak);
  if (!action) return;
  counters.add(Counter::kErrorNaksReceived);
  fail_oldest(fabric, qp, {action->status, action->vendor});
}

/// Sends one request packet, whose answers end before `limit`, and keeps account of it.
void send_request(Fabric& fabric, QueuePair& qp, wire::Packet& packet, Psn limit, size_t payload,
                  Frame frame) {
  SendHalf& send = qp.send;
  if (packet.bth.ack_req) send.ack_limit = limit;
  if (wire::psn_before(packet.bth.psn, send.sent_limit)) {
    fabric.device_of(qp).counters.add(Counter::kRetransmittedFrames);
  } else {
    send.sent_limit = limit;
  }
  fabric.send(qp, packet, payload, std::move(frame));
}

/// Fills one frame with packet `number` of the message; the payload, if any, is in place.
void send_packet(Fabric& fabric, QueuePair& qp, const SendWqe& wqe, const SendState& state,
                 uint32_t number, uint32_t packets, size_t payload, Frame frame) {
  const bool last = number + 1 == packets;
  wire::Packet packet;
  packet.bth.opcode = request_opcode(static_cast<WrOpcode>(wqe.opcode), number == 0, last);
  packet.bth.solicited = last && (wqe.flags & abi::kSendSolicited) != 0;
  packet.bth.psn = state.first + number;
  packet.imm.value = wqe.imm_data;
  packet.reth = {.va = wqe.remote_address, .rkey = wqe.rkey, .dma_length = state.length};
  // The last packet that the window has room for asks too, or nothing would ever open it again.
  packet.bth.ack_req = last || wire::psn_distance(qp.send.unacked, packet.bth.psn) == kWindow - 1;
  send_request(fabric, qp, packet, packet.bth.psn + 1, payload, std::move(frame));
}

/// READ or atomic: one packet, for what of the answer is still missing.
void send_query(Fabric& fabric, QueuePair& qp, const SendWqe& wqe, const SendState& state) {
  const uint32_t have = qp.send.next_packet * qp.mtu();
  wire::Packet packet;
  packet.bth.opcode = request_opcode(static_cast<WrOpcode>(wqe.opcode), true, true);
  packet.bth.ack_req = true;
  packet.bth.psn = state.first + qp.send.next_packet;
  packet.reth = {
      .va = wqe.remote_address + have, .rkey = wqe.rkey, .dma_length = state.length - have};
  const bool compares = static_cast<WrOpcode>(wqe.opcode) == WrOpcode::kAtomicCmpAndSwp;
  packet.atomic = {.va = wqe.remote_address,
                   .rkey = wqe.rkey,
                   .swap_add = compares ? wqe.atomic.swap : wqe.atomic.compare_add,
                   .compare = compares ? wqe.atomic.compare_add : 0};
  send_request(fabric, qp, packet, state.last + 1, 0, fabric.frames().allocate());
}

/// Gives WQE `next` its PSNs. False if it cannot be sent.
bool begin_wqe(Fabric& fabric, QueuePair& qp, const SendWqe& wqe) {
  SendHalf& send = qp.send;
  const uint64_t length = message_length(qp, send.next, wqe);
  if (const auto error = check_wqe(fabric, qp, wqe, length)) {
    stop_at_next(fabric, qp, *error);
    return false;
  }
  SendState& state = send.queue.state(send.next);
  state.started = true;
  state.kind = *request_kind(static_cast<WrOpcode>(wqe.opcode));
  if (wants_response(state.kind)) ++send.responses_outstanding;
  state.length = static_cast<uint32_t>(length);
  state.first = send.next_psn;
  send.next_psn += psn_count(state.length, qp.mtu());
  state.last = send.next_psn - 1;
  return true;
}

size_t payload_offset(const QueuePair& qp, const SendWqe& wqe, bool first, bool last) {
  wire::Packet packet;
  packet.src_ip = qp.path.src_ip;
  packet.dst_ip = qp.path.dst_ip;
  packet.bth.opcode = request_opcode(static_cast<WrOpcode>(wqe.opcode), first, last);
  return wire::payload_offset(packet);
}

/// Reads the payload of packets [number, number + frames.size()) into their frames.
std::optional<LocalError> fill_payload(Fabric& fabric, const QueuePair& qp, uint32_t index,
                                       const SendWqe& wqe, uint32_t number, uint32_t packets,
                                       std::span<Frame> frames) {
  const SendState& state = qp.send.queue.state(index);
  const uint64_t begin = uint64_t{number} * qp.mtu();
  const uint64_t end = std::min<uint64_t>(begin + frames.size() * qp.mtu(), state.length);
  if (begin == end) return std::nullopt;

  std::array<std::span<uint8_t>, kBurst> targets;
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t size = std::min<uint64_t>(qp.mtu(), end - begin - i * qp.mtu());
    const size_t offset = payload_offset(qp, wqe, number + i == 0, number + i + 1 == packets);
    targets[i] = std::span<uint8_t>(frames[i].storage()).subspan(offset, size);
  }
  const auto behind_header = qp.send.queue.rest(index, sizeof(SendWqe));
  if ((wqe.flags & abi::kSendInline) != 0) {
    auto source = behind_header.subspan(begin, end - begin);
    for (size_t i = 0; i < frames.size(); ++i) {
      std::memcpy(targets[i].data(), source.data(), targets[i].size());
      source = source.subspan(targets[i].size());
    }
    return std::nullopt;
  }
  const auto ranges =
      resolve(fabric.mrs, qp, read_sges(behind_header, wqe.num_sge), begin, end - begin, 0);
  if (!ranges) return LocalError{WcStatus::kLocProtErr, VendorError::kBadSendLKey};
  const MemoryResult read =
      fabric.host_memory().read(qp.client, ranges->span(), {targets.data(), frames.size()});
  if (read != MemoryResult::kDone) {
    return LocalError{WcStatus::kLocProtErr, VendorError::kSendMemoryUnreadable};
  }
  return std::nullopt;
}

/// A WQE that is not begun has to wait for answers to earlier ones: of a fence (IBTA vol 1,
/// 10.8.3.3), or because the responder has no room for one more READ or atomic.
bool waits_for_responses(const QueuePair& qp, const SendWqe& wqe) {
  const SendHalf& send = qp.send;
  if (send.responses_outstanding == 0) return false;
  if ((wqe.flags & abi::kSendFence) != 0) return true;
  const auto kind = request_kind(static_cast<WrOpcode>(wqe.opcode));
  return kind && wants_response(*kind) && send.responses_outstanding >= qp.attr.max_rd_atomic;
}

bool may_send(const QueuePair& qp) {
  const SendHalf& send = qp.send;
  if (send.waiting_for_rnr || send.error || send.next == send.queue.tail()) return false;
  if (qp.state == QpState::kRts) return true;
  // IBTA vol 1, 10.3.1.4: a draining queue finishes what it began and begins nothing.
  return qp.state == QpState::kSqd && send.queue.state(send.next).started;
}

}  // namespace

void post(Fabric& fabric, QueuePair& qp, std::span<const std::byte> wqe) {
  SendHalf& send = qp.send;
  switch (qp.state) {
    case QpState::kReset:
    case QpState::kInit:
    case QpState::kRtr:
      // The provider refuses these posts; a thread that changed the state meanwhile wins.
      send.queue.clear();
      send.queue.skip();
      send.next = send.queue.tail();
      return;
    case QpState::kSqe:
    case QpState::kErr:
      send.queue.push(wqe);
      flush(fabric, qp);
      return;
    case QpState::kSqd:
      send.queue.push(wqe);
      return;
    case QpState::kRts:
      send.queue.push(wqe);
      fabric.schedule(qp);
      return;
  }
}

uint32_t transmit(Fabric& fabric, QueuePair& qp) {
  if (!may_send(qp)) return 1;
  SendHalf& send = qp.send;
  const uint32_t index = send.next;
  const auto wqe = send.queue.header<SendWqe>(index);
  if (!send.queue.state(index).started) {
    if (waits_for_responses(qp, wqe)) return 1;  // the answer schedules us
    if (!begin_wqe(fabric, qp, wqe)) return 1;
  }

  const SendState state = send.queue.state(index);
  if (wants_response(state.kind)) {
    send_query(fabric, qp, wqe, state);
    ++send.next;
    send.next_packet = 0;
    if (!TimerQueue::running(qp.timers, TimerKind::kAck)) restart_ack_timer(fabric, qp);
    if (may_send(qp)) fabric.schedule(qp);
    return 1;
  }
  const uint32_t packets = psn_count(state.length, qp.mtu());
  const int32_t window = kWindow - wire::psn_distance(send.unacked, state.first + send.next_packet);
  if (window <= 0) return 1;  // the acknowledgement that opens it schedules us
  const uint32_t first = send.next_packet;
  const uint32_t count = std::min({packets - first, kBurst, static_cast<uint32_t>(window)});

  std::array<Frame, kBurst> frames;
  for (uint32_t i = 0; i < count; ++i) frames[i] = fabric.frames().allocate();
  if (const auto error =
          fill_payload(fabric, qp, index, wqe, first, packets, {frames.data(), count})) {
    stop_at_next(fabric, qp, *error);
    return 1;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = first + i;
    const uint64_t begin = uint64_t{number} * qp.mtu();
    const size_t payload = std::min<uint64_t>(qp.mtu(), state.length - begin);
    send_packet(fabric, qp, wqe, state, number, packets, payload, std::move(frames[i]));
  }
  send.next_packet += count;
  if (send.next_packet == packets) {
    ++send.next;
    send.next_packet = 0;
  }
  if (!TimerQueue::running(qp.timers, TimerKind::kAck)) restart_ack_timer(fabric, qp);
  if (may_send(qp)) fabric.schedule(qp);
  return count;
}

namespace {

void on_acknowledge(Fabric& fabric, QueuePair& qp, const wire::Packet& packet) {
  const wire::AethKind kind = wire::aeth_kind(packet.aeth.syndrome);
  const uint8_t detail = wire::aeth_detail(packet.aeth.syndrome);
  if (is_reserved(kind, detail)) return;
  // 9.7.5.1.1 to 9.7.5.1.3: an ACK stands for all PSNs up to its own, a NAK for those before it.
  const Psn psn = packet.bth.psn;
  const Psn acknowledged = kind == wire::AethKind::kAck ? psn + 1 : psn;
  const Acknowledged result = acknowledge_before(fabric, qp, acknowledged);
  if (qp.state == QpState::kErr) return;
  if (!result.all) {
    // 9.7.5.1.2, implied NAK: the answer to an earlier READ or atomic was lost on its way.
    if (!qp.send.waiting_for_rnr) retry(fabric, qp, VendorError::kSequenceRetries);
    return;
  }
  switch (kind) {
    case wire::AethKind::kAck:
    case wire::AethKind::kReserved:
      break;
    case wire::AethKind::kRnrNak:
      on_rnr_nak(fabric, qp, detail);
      break;
    case wire::AethKind::kNak:
      on_nak(fabric, qp, detail);
      break;
  }
  if (qp.state != QpState::kErr && result.progress) restart_ack_timer(fabric, qp);
}

/// Places a part of the answer where the WQE wants it. `bytes` is in host byte order.
std::optional<LocalError> place_response(Fabric& fabric, QueuePair& qp, uint64_t offset,
                                         std::span<const uint8_t> bytes) {
  if (bytes.empty()) return std::nullopt;
  const uint32_t index = qp.send.queue.head();
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  const SgeList list = read_sges(qp.send.queue.rest(index, sizeof(SendWqe)), wqe.num_sge);
  const auto ranges = resolve(fabric.mrs, qp, list, offset, bytes.size(), abi::kAccessLocalWrite);
  if (!ranges) return LocalError{WcStatus::kLocProtErr, VendorError::kBadSendLKey};
  const std::array<std::span<const uint8_t>, 1> source{bytes};
  if (fabric.host_memory().write(qp.client, ranges->span(), source) != MemoryResult::kDone) {
    return LocalError{WcStatus::kLocProtErr, VendorError::kResponseMemoryUnwritable};
  }
  return std::nullopt;
}

/// READ response or atomic acknowledgement: the answer with PSN `psn` of the oldest WQE.
std::optional<LocalError> take_answer(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                                      const wire::OpcodeInfo& info) {
  const SendState& state = qp.send.queue.state(qp.send.queue.head());
  const LocalError bad{WcStatus::kBadRespErr, VendorError::kBadResponse};
  if (info.operation == wire::Operation::kAtomicAck) {
    if (state.kind != RequestKind::kAtomic) return bad;
    const auto bytes = std::bit_cast<std::array<uint8_t, 8>>(packet.atomic_ack.original);
    return place_response(fabric, qp, 0, bytes);
  }
  if (state.kind != RequestKind::kRead) return bad;
  const uint64_t offset =
      static_cast<uint64_t>(wire::psn_distance(state.first, packet.bth.psn)) * qp.mtu();
  // 9.7.5.2.7: a response of the wrong length or place in the message is a bad response.
  if (packet.payload.size() != std::min<uint64_t>(qp.mtu(), state.length - offset) ||
      info.is_last != (packet.bth.psn == state.last)) {
    return bad;
  }
  return place_response(fabric, qp, offset, packet.payload);
}

void on_answer(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info) {
  SendHalf& send = qp.send;
  // It stands for an acknowledgement of all before it.
  const Acknowledged result = acknowledge_before(fabric, qp, packet.bth.psn);
  if (qp.state == QpState::kErr) return;
  if (!result.all || send.unacked != packet.bth.psn) {
    if (!send.waiting_for_rnr) retry(fabric, qp, VendorError::kSequenceRetries);
    return;
  }
  if (const auto error = take_answer(fabric, qp, packet, info)) {
    return fail_oldest(fabric, qp, *error);
  }
  const SendState& state = send.queue.state(send.queue.head());
  send.unacked = packet.bth.psn + 1;
  reset_retries(qp);
  if (packet.bth.psn == state.last) {
    complete_oldest(fabric, qp);
    if (send.error && send.next == send.queue.head()) return fail_oldest(fabric, qp, *send.error);
  } else if (send.next == send.queue.head()) {
    send.next_packet = std::max(
        send.next_packet, static_cast<uint32_t>(wire::psn_distance(state.first, send.unacked)));
  }
  restart_ack_timer(fabric, qp);
}

}  // namespace

void on_response(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info) {
  SendHalf& send = qp.send;
  Counters& counters = fabric.device_of(qp).counters;
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) {
    return counters.add(Counter::kDroppedUnknownQp);
  }
  const Psn psn = packet.bth.psn;
  if (wire::psn_before(psn, send.unacked)) return counters.add(Counter::kStaleAcks);
  // 9.7.5.1: an acknowledgement of what was never sent ("ghost") changes nothing.
  if (!wire::psn_before(psn, send.sent_limit)) return counters.add(Counter::kGhostAcks);

  if (info.operation == wire::Operation::kAck) {
    on_acknowledge(fabric, qp, packet);
  } else {
    on_answer(fabric, qp, packet, info);
  }
  if (qp.state == QpState::kErr) return;
  check_drained(fabric, qp);
  if (may_send(qp)) fabric.schedule(qp);
}

void on_timer(Fabric& fabric, QueuePair& qp, TimerKind kind) {
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) return;
  switch (kind) {
    case TimerKind::kAck:
      fabric.device_of(qp).counters.add(Counter::kAckTimeouts);
      retry(fabric, qp, VendorError::kAckTimeout);
      return;
    case TimerKind::kRnr:
      qp.send.waiting_for_rnr = false;
      go_back(fabric, qp);
      restart_ack_timer(fabric, qp);
      if (may_send(qp)) fabric.schedule(qp);  // what was posted meanwhile, with nothing to repeat
      return;
  }
}

void start(Fabric& fabric, QueuePair& qp) {
  SendHalf& send = qp.send;
  send.next_psn = send.unacked = send.sent_limit = send.ack_limit = Psn(qp.attr.sq_psn);
  send.next = send.queue.head();
  send.next_packet = 0;
  reset_retries(qp);
  resume(fabric, qp);
}

void resume(Fabric& fabric, QueuePair& qp) {
  qp.send.drained_reported = false;
  if (qp.send.unacked == qp.send.sent_limit) reset_retries(qp);  // SQD may have changed them
  if (may_send(qp)) fabric.schedule(qp);
}

bool drained(const QueuePair& qp) {
  const SendHalf& send = qp.send;
  return send.queue.empty() || !send.queue.state(send.queue.head()).started;
}

void check_drained(Fabric& fabric, QueuePair& qp) {
  if (qp.state != QpState::kSqd || qp.send.drained_reported || !drained(qp)) return;
  qp.send.drained_reported = true;
  if (qp.attr.en_sqd_async_notify != 0) {
    fabric.raise(qp.client, abi::EventType::kSqDrained, qp.user_handle);
  }
}

void flush(Fabric& fabric, QueuePair& qp) {
  SendHalf& send = qp.send;
  while (!send.queue.empty()) {
    report(fabric, qp, send.queue.head(), WcStatus::kWrFlushErr, VendorError::kFlushed);
    send.queue.pop();
  }
  send.next = send.queue.head();
  send.next_packet = 0;
  send.error.reset();
  send.waiting_for_rnr = false;
  send.responses_outstanding = 0;
  send.unacked = send.sent_limit = send.ack_limit = send.next_psn;
}

}  // namespace rocemu::engine::requester
