#include "emulator/engine/requester.h"

#include <algorithm>
#include <array>

#include "emulator/engine/gather.h"
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

abi::WcOpcode completion_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite:
    case WrOpcode::kRdmaWriteWithImm:
      return abi::WcOpcode::kRdmaWrite;
    case WrOpcode::kRdmaRead:
      return abi::WcOpcode::kRdmaRead;
    case WrOpcode::kAtomicCmpAndSwp:
      return abi::WcOpcode::kCompSwap;
    case WrOpcode::kAtomicFetchAndAdd:
      return abi::WcOpcode::kFetchAdd;
    case WrOpcode::kLocalInv:
      return abi::WcOpcode::kLocalInv;
    case WrOpcode::kBindMw:
      return abi::WcOpcode::kBindMw;
    case WrOpcode::kAtomicWrite:
      return abi::WcOpcode::kAtomicWrite;
    default:
      return abi::WcOpcode::kSend;
  }
}

uint32_t packet_count(const QueuePair& qp, uint32_t length) {
  return std::max<uint32_t>(1, (length + qp.mtu() - 1) / qp.mtu());
}

Opcode send_opcode(bool with_imm, bool first, bool last) {
  if (!last) return first ? Opcode::kRcSendFirst : Opcode::kRcSendMiddle;
  if (first) return with_imm ? Opcode::kRcSendOnlyImm : Opcode::kRcSendOnly;
  return with_imm ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
}

/// What is wrong with the WQE itself, before any of it is sent.
std::optional<LocalError> check_wqe(const QueuePair& qp, const SendWqe& wqe, uint64_t length) {
  switch (static_cast<WrOpcode>(wqe.opcode)) {
    case WrOpcode::kSend:
    case WrOpcode::kSendWithImm:
      break;
    default:
      return LocalError{WcStatus::kLocQpOpErr, VendorError::kOpcodeNotSupported};
  }
  if ((wqe.flags & abi::kSendInline) != 0 ? wqe.inline_size > qp.attr.cap.max_inline_data
                                          : wqe.num_sge > qp.attr.cap.max_send_sge) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  }
  if (length > kMaxMessage) return LocalError{WcStatus::kLocLenErr, VendorError::kMessageTooLong};
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

/// Everything before `psn` is acknowledged: completes what that finishes. True if it was news.
bool acknowledge_before(Fabric& fabric, QueuePair& qp, Psn psn) {
  SendHalf& send = qp.send;
  if (wire::psn_distance(send.unacked, psn) <= 0) return false;
  send.unacked = psn;
  reset_retries(qp);
  while (!send.queue.empty()) {
    const uint32_t head = send.queue.head();
    const SendState& state = send.queue.state(head);
    if (!state.started || !wire::psn_before(state.last, psn)) break;
    const bool was_next = send.next == head;
    report(fabric, qp, head, WcStatus::kSuccess, VendorError::kNone);
    send.queue.pop();
    if (was_next) {  // acknowledged while it was being sent again
      ++send.next;
      send.next_packet = 0;
    }
  }
  if (!send.queue.empty() && send.next == send.queue.head()) {
    const SendState& state = send.queue.state(send.next);
    if (state.started && wire::psn_before(state.first, psn)) {
      send.next_packet =
          std::max(send.next_packet, static_cast<uint32_t>(wire::psn_distance(state.first, psn)));
    }
    if (send.error) fail_oldest(fabric, qp, *send.error);
  }
  return true;
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

/// Fills one frame with packet `number` of the message; the payload, if any, is in place.
void send_packet(Fabric& fabric, QueuePair& qp, const SendWqe& wqe, const SendState& state,
                 uint32_t number, uint32_t packets, size_t payload, Frame frame) {
  const bool last = number + 1 == packets;
  const bool with_imm = static_cast<WrOpcode>(wqe.opcode) == WrOpcode::kSendWithImm;
  wire::Packet packet;
  packet.bth.opcode = send_opcode(with_imm, number == 0, last);
  packet.bth.solicited = last && (wqe.flags & abi::kSendSolicited) != 0;
  packet.bth.psn = state.first + number;
  packet.imm.value = wqe.imm_data;

  SendHalf& send = qp.send;
  // The last packet that the window has room for asks too, or nothing would ever open it again.
  packet.bth.ack_req = last || wire::psn_distance(send.unacked, packet.bth.psn) == kWindow - 1;
  if (packet.bth.ack_req) send.ack_limit = packet.bth.psn + 1;
  if (wire::psn_before(packet.bth.psn, send.sent_limit)) {
    fabric.device_of(qp).counters.add(Counter::kRetransmittedFrames);
  } else {
    send.sent_limit = packet.bth.psn + 1;
  }
  fabric.send(qp, packet, payload, std::move(frame));
}

/// Gives WQE `next` its PSNs. False if it cannot be sent.
bool begin_wqe(Fabric& fabric, QueuePair& qp, const SendWqe& wqe) {
  SendHalf& send = qp.send;
  const uint64_t length = message_length(qp, send.next, wqe);
  if (const auto error = check_wqe(qp, wqe, length)) {
    stop_at_next(fabric, qp, *error);
    return false;
  }
  SendState& state = send.queue.state(send.next);
  state.started = true;
  state.length = static_cast<uint32_t>(length);
  state.first = send.next_psn;
  send.next_psn += packet_count(qp, state.length);
  state.last = send.next_psn - 1;
  return true;
}

size_t payload_offset(const QueuePair& qp, const SendWqe& wqe, bool first, bool last) {
  wire::Packet packet;
  packet.src_ip = qp.path.src_ip;
  packet.dst_ip = qp.path.dst_ip;
  packet.bth.opcode =
      send_opcode(static_cast<WrOpcode>(wqe.opcode) == WrOpcode::kSendWithImm, first, last);
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
  if (!send.queue.state(index).started && !begin_wqe(fabric, qp, wqe)) return 1;

  const SendState state = send.queue.state(index);
  const uint32_t packets = packet_count(qp, state.length);
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

void on_response(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info) {
  SendHalf& send = qp.send;
  Counters& counters = fabric.device_of(qp).counters;
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) {
    return counters.add(Counter::kDroppedUnknownQp);
  }
  if (info.operation != wire::Operation::kAck) return counters.add(Counter::kDroppedUnsupported);

  const Psn psn = packet.bth.psn;
  if (wire::psn_before(psn, send.unacked)) return counters.add(Counter::kStaleAcks);
  // 9.7.5.1: an acknowledgement of what was never sent ("ghost") changes nothing.
  if (!wire::psn_before(psn, send.sent_limit)) return counters.add(Counter::kGhostAcks);

  const wire::AethKind kind = wire::aeth_kind(packet.aeth.syndrome);
  const uint8_t detail = wire::aeth_detail(packet.aeth.syndrome);
  if (is_reserved(kind, detail)) return;
  // 9.7.5.1.1 to 9.7.5.1.3: an ACK stands for all PSNs up to its own, a NAK for those before it.
  const Psn acknowledged = kind == wire::AethKind::kAck ? psn + 1 : psn;
  const bool progress = acknowledge_before(fabric, qp, acknowledged);
  if (qp.state == QpState::kErr) return;
  switch (kind) {
    case wire::AethKind::kAck:
      break;
    case wire::AethKind::kRnrNak:
      on_rnr_nak(fabric, qp, detail);
      break;
    case wire::AethKind::kNak:
      on_nak(fabric, qp, detail);
      break;
    case wire::AethKind::kReserved:
      break;
  }
  if (qp.state == QpState::kErr || !progress) return;
  restart_ack_timer(fabric, qp);
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
  send.unacked = send.sent_limit = send.ack_limit = send.next_psn;
}

}  // namespace rocemu::engine::requester
