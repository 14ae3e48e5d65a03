#include "emulator/engine/transport/completer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "emulator/engine/objects/sge_list.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/engine/transport/send_queue.h"
#include "wire/aeth.h"

namespace rocemu::engine::completer {
namespace {

using abi::QpState;
using abi::SendWqe;
using abi::WcStatus;
using send_queue::complete_acknowledged;
using send_queue::fail_oldest;
using send_queue::may_send;
using send_queue::reset_retries;
using wire::Psn;

/// rnr_retry and retry_cnt have 3 bits. 7 means "forever" only for rnr_retry (ibv_modify_qp(3)).
constexpr uint8_t kInfiniteRnrRetry = 7;

/// Returns the time after which the ACK timer expires. IBTA vol 1, 9.7.6.1.3: T = 4.096 us *
/// 2^timeout, and a timeout is detected between T and 4 T. For a remote peer the timer takes 2 T in
/// the second attempt and 4 T in later ones, since a receiver that is short of processor time is
/// not dead.
Duration ack_timeout(const TransportContext& context, const QueuePair& qp) {
  const int attempts = qp.attr.retry_cnt - qp.send.retries_left;
  const int backoff = context.is_remote(qp) ? std::min(attempts, 2) : 0;
  return Duration(int64_t{4096} << (qp.attr.timeout + backoff));
}

/// Goes back to the oldest unacknowledged PSN, which belongs to the oldest WQE.
void go_back(TransportContext& context, QueuePair& qp, Resent why, Duration waited = {}) {
  SendHalf& send = qp.send;
  if (send.unacked == send.sent_limit) return;
  send.resend = {.why = why, .begins = true, .waited = waited};
  send.ack_limit = send.unacked;  // retransmitted requests ask again
  send.error.reset();             // detected again when it is reached
  send.next = send.queue.head();
  send.next_packet =
      static_cast<uint32_t>(wire::psn_distance(send.queue.state(send.next).first, send.unacked));
  context.scheduler().schedule(qp);
}

/// Returns the PSN before which everything is acknowledged if the peer acknowledges everything
/// before `psn`. This does not include a READ or an atomic whose response has not arrived, nor
/// anything after it.
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
  bool progress;  // a PSN was newly acknowledged
  bool all;       // nothing before `psn` is missing
};

/// Acknowledges everything before `psn`, and completes the requests that are then finished.
Acknowledged acknowledge_before(TransportContext& context, QueuePair& qp, Psn psn) {
  SendHalf& send = qp.send;
  const Psn reached = acknowledgeable(qp, psn);
  const bool all = reached == psn;
  const int32_t news = wire::psn_distance(send.unacked, reached);
  if (news <= 0) return {false, all};
  send.window = std::min(send.window + news, kLargestWindow);
  send.unacked = reached;
  reset_retries(qp);
  complete_acknowledged(context, qp);
  if (!send.queue.empty() && send.next == send.queue.head()) {
    const SendState& state = send.queue.state(send.next);
    if (state.started && wire::psn_before(state.first, reached)) {
      send.next_packet = std::max(send.next_packet,
                                  static_cast<uint32_t>(wire::psn_distance(state.first, reached)));
    }
    if (send.error) fail_oldest(context, qp, *send.error);
  }
  return {true, all};
}

/// Goes back and retransmits: to a remote peer, at most `window` packets until some are
/// acknowledged; inside the fabric, all of them at once. Returns false if no retries are left.
bool retry(TransportContext& context, QueuePair& qp, VendorError exhausted, int32_t window,
           Resent why, Duration waited = {}) {
  if (qp.send.retries_left == 0) {
    context.counters_of(qp).add(Counter::kRetriesExceeded);
    fail_oldest(context, qp, {WcStatus::kRetryExcErr, exhausted});
    return false;
  }
  --qp.send.retries_left;
  qp.send.window = window;
  go_back(context, qp, why, waited);
  restart_timer(context, qp);
  return true;
}

/// Handles an implied NAK (IBTA vol 1, 9.7.5.1.2): the response to an earlier READ or atomic was
/// lost. All later responses show the same loss, but one loss causes only one retry.
void on_implied_nak(TransportContext& context, QueuePair& qp) {
  if (qp.send.waiting_for_rnr || qp.send.loss_noticed) return;
  qp.send.loss_noticed = true;
  retry(context, qp, VendorError::kSequenceRetries, kFirstWindow, Resent::kImpliedNak);
}

void on_rnr_nak(TransportContext& context, QueuePair& qp, uint8_t timer_code) {
  context.counters_of(qp).add(Counter::kRnrNaksReceived);
  SendHalf& send = qp.send;
  if (send.waiting_for_rnr) return;
  if (qp.attr.rnr_retry != kInfiniteRnrRetry) {
    if (send.rnr_retries_left == 0) {
      context.counters_of(qp).add(Counter::kRnrRetriesExceeded);
      return fail_oldest(context, qp, {WcStatus::kRnrRetryExcErr, VendorError::kRnrRetries});
    }
    --send.rnr_retries_left;
  }
  send.waiting_for_rnr = true;
  TimerQueue::cancel(qp.timers, TimerKind::kAck);
  send.rnr_timer = Duration(wire::kRnrTimerNs[timer_code]);
  context.scheduler().set_timer(qp, TimerKind::kRnr, context.now() + send.rnr_timer);
}

/// Returns whether the syndrome has no meaning for reliable connections. Such a syndrome proves
/// nothing, not even that earlier requests were received (IBTA vol 1, 9.7.5.2.8).
bool is_reserved(wire::AethKind kind, uint8_t detail) {
  if (kind != wire::AethKind::kNak) return kind == wire::AethKind::kReserved;
  const auto code = static_cast<wire::NakCode>(detail);
  return code != wire::NakCode::kPsnSequenceError && !action_for(code);
}

/// Returns whether the key in the oldest WQE is not an R_Key, but the L_Key of a region of this
/// fabric. On most NICs, that region's R_Key would be equal to this key.
bool names_an_lkey(const TransportContext& context, const QueuePair& qp) {
  if (!qp.path.inside) return false;
  const uint32_t key = qp.send.queue.header<abi::SendWqe>(qp.send.queue.head()).rkey;
  const MemoryRegion* region = context.objects().mrs.find_by_lkey(key);
  return region != nullptr && region->rkey != 0 && region->rkey != key;  // a null region has none
}

void on_nak(TransportContext& context, QueuePair& qp, uint8_t code) {
  const auto nak = static_cast<wire::NakCode>(code);
  Counters& counters = context.counters_of(qp);
  if (nak == wire::NakCode::kPsnSequenceError) {
    counters.add(Counter::kSequenceNaksReceived);
    // While the receiver is not ready, a retransmission must wait for the RNR timer.
    if (!qp.send.waiting_for_rnr) {
      retry(context, qp, VendorError::kSequenceRetries, kFirstWindow, Resent::kSequenceNak);
    }
    return;
  }
  const auto action = action_for(nak);
  if (!action) return;
  counters.add(Counter::kErrorNaksReceived);
  const bool is_confusion = nak == wire::NakCode::kRemoteAccessError && names_an_lkey(context, qp);
  fail_oldest(context, qp,
              {action->status, is_confusion ? VendorError::kLKeyAsRKey : action->vendor});
}

void on_acknowledge(TransportContext& context, QueuePair& qp, const wire::Packet& packet) {
  const wire::AethKind kind = wire::aeth_kind(packet.aeth.syndrome);
  const uint8_t detail = wire::aeth_detail(packet.aeth.syndrome);
  if (is_reserved(kind, detail)) return;
  // IBTA vol 1, 9.7.5.1.1 to 9.7.5.1.3: an ACK covers all PSNs up to its own; a NAK covers those
  // before its own.
  const Psn psn = packet.bth.psn;
  const Psn acknowledged = kind == wire::AethKind::kAck ? psn + 1 : psn;
  const Acknowledged result = acknowledge_before(context, qp, acknowledged);
  if (qp.state == QpState::kErr) return;
  if (!result.all) {
    // If answer_unplaced is set, nothing was lost: the preceding response arrived, and waits for
    // memory.
    if (!qp.send.answer_unplaced) on_implied_nak(context, qp);
    return;
  }
  switch (kind) {
    case wire::AethKind::kAck:
    case wire::AethKind::kReserved:
      break;
    case wire::AethKind::kRnrNak:
      on_rnr_nak(context, qp, detail);
      break;
    case wire::AethKind::kNak:
      on_nak(context, qp, detail);
      break;
  }
  if (qp.state != QpState::kErr && result.progress) restart_timer(context, qp);
}

/// Stores a part of the response in the WQE's buffers. `bytes` is in host byte order. Like a NIC,
/// checks the L_Key only now, since sending the request does not access local memory.
std::optional<LocalError> place_response(TransportContext& context, QueuePair& qp, uint64_t offset,
                                         std::span<const uint8_t> bytes) {
  PacketRun& run = context.run_at_hand();
  if (bytes.empty() || run.is_written()) return std::nullopt;
  const uint32_t index = qp.send.queue.head();
  const auto wqe = qp.send.queue.header<SendWqe>(index);
  const SgeList list = read_sges(qp.send.queue.rest(index, sizeof(SendWqe)), wqe.num_sge);
  const auto memory_of = [&](uint64_t size) {
    return resolve(context.objects().mrs, qp.pd, list, offset, size, abi::kAccessLocalWrite);
  };
  const uint64_t missing = qp.send.queue.state(index).length - offset;
  if (run.write_together(context.memory(), missing, memory_of)) return std::nullopt;
  const auto ranges = memory_of(bytes.size());
  if (!ranges) return LocalError{WcStatus::kLocProtErr, VendorError::kBadSendLKey};
  const std::array<std::span<const uint8_t>, 1> source{bytes};
  const MemoryResult written = ranges->write(context.memory(), source);
  if (written == MemoryResult::kNotYet) {
    context.scheduler().wait_for_memory(qp);
    qp.send.answer_unplaced = true;
    return std::nullopt;
  }
  if (written != MemoryResult::kDone) {
    return LocalError{WcStatus::kLocProtErr, VendorError::kResponseMemoryUnwritable};
  }
  return std::nullopt;
}

/// Requests the missing responses again.
void repeat_unanswered(TransportContext& context, QueuePair& qp, Resent why, Duration waited = {}) {
  go_back(context, qp, why, waited);
  restart_timer(context, qp);
  if (may_send(qp))
    context.scheduler().schedule(qp);  // newly posted requests, with nothing to repeat
}

/// Handles a READ response or an atomic acknowledgement, which belongs to the oldest WQE. Returns
/// an error if the WQE must fail.
std::optional<LocalError> take_answer(TransportContext& context, QueuePair& qp,
                                      const wire::Packet& packet, const wire::OpcodeInfo& info) {
  const SendState& state = qp.send.queue.state(qp.send.queue.head());
  const LocalError bad{WcStatus::kBadRespErr, VendorError::kBadResponse};
  const AnsweredBy expected = traits_of(state.kind).answer;
  if (info.operation == wire::Operation::kAtomicAck) {
    if (expected != AnsweredBy::kAtomicAcknowledge) return bad;
    const auto bytes = std::bit_cast<std::array<uint8_t, 8>>(packet.atomic_ack.original);
    return place_response(context, qp, 0, bytes);
  }
  if (expected == AnsweredBy::kEmptyReadResponse) {
    const bool good = info.is_first && info.is_last && packet.payload.empty();
    return good ? std::nullopt : std::optional(bad);
  }
  if (expected != AnsweredBy::kReadResponse) return bad;
  const uint64_t offset =
      static_cast<uint64_t>(wire::psn_distance(state.first, packet.bth.psn)) * qp.mtu();
  // IBTA vol 1, 9.7.5.2.7: a response with the wrong length or position in the message is a bad
  // response. If the READ was requested in parts, a "last" response may arrive before the end of
  // the message.
  const bool in_parts = context.is_remote(qp);
  if (packet.payload.size() != std::min<uint64_t>(qp.mtu(), state.length - offset) ||
      (packet.bth.psn == state.last ? !info.is_last : info.is_last && !in_parts)) {
    return bad;
  }
  return place_response(context, qp, offset, packet.payload);
}

void on_answer(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info) {
  SendHalf& send = qp.send;
  // The response also acknowledges everything before its PSN.
  const Acknowledged result = acknowledge_before(context, qp, packet.bth.psn);
  if (qp.state == QpState::kErr) return;
  if (!result.all || send.unacked != packet.bth.psn) {
    if (!send.answer_unplaced) on_implied_nak(context, qp);
    return;
  }
  send.answer_unplaced = false;
  if (const auto error = take_answer(context, qp, packet, info)) {
    return fail_oldest(context, qp, *error);
  }
  if (send.answer_unplaced)
    return reset_retries(qp);  // the response counts as lost, but the peer is alive
  const SendState& state = send.queue.state(send.queue.head());
  send.unacked = packet.bth.psn + 1;
  send.window = std::min(send.window + 1, kLargestWindow);
  reset_retries(qp);
  if (packet.bth.psn == state.last) {
    complete_acknowledged(context, qp);
    if (send.error && send.next == send.queue.head()) return fail_oldest(context, qp, *send.error);
  } else if (send.next == send.queue.head()) {
    send.next_packet = std::max(
        send.next_packet, static_cast<uint32_t>(wire::psn_distance(state.first, send.unacked)));
  }
  restart_timer(context, qp);
}

}  // namespace

void on_response(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info) {
  SendHalf& send = qp.send;
  Counters& counters = context.counters_of(qp);
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) {
    return counters.add(Counter::kDroppedUnknownQp);
  }
  const Psn psn = packet.bth.psn;
  if (wire::psn_before(psn, send.unacked)) return counters.add(Counter::kStaleAcks);
  // IBTA vol 1, 9.7.5.1: an acknowledgement of a PSN that was never sent (a "ghost") is ignored.
  if (!wire::psn_before(psn, send.sent_limit)) return counters.add(Counter::kGhostAcks);

  if (info.operation == wire::Operation::kAck) {
    on_acknowledge(context, qp, packet);
  } else {
    on_answer(context, qp, packet, info);
  }
  if (qp.state == QpState::kErr) return;
  send_queue::check_drained(context, qp);
  if (may_send(qp)) context.scheduler().schedule(qp);
}

void on_timer(TransportContext& context, QueuePair& qp, TimerKind kind) {
  if (kind == TimerKind::kPace) return context.scheduler().schedule(qp);
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) return;
  switch (kind) {
    case TimerKind::kAck:
      context.counters_of(qp).add(Counter::kAckTimeouts);
      qp.send.loss_noticed = false;
      retry(context, qp, VendorError::kAckTimeout, kWindowAfterTimeout, Resent::kAckTimeout,
            qp.send.ack_timer);
      return;
    case TimerKind::kRnr:
      qp.send.waiting_for_rnr = false;
      return repeat_unanswered(context, qp, Resent::kRnrNak, qp.send.rnr_timer);
    case TimerKind::kPace:
      return;
  }
}

void on_memory_ready(TransportContext& context, QueuePair& qp) {
  if (!std::exchange(qp.send.answer_unplaced, false)) return;
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) return;
  if (!qp.send.waiting_for_rnr) repeat_unanswered(context, qp, Resent::kNoMemory);
}

void restart_timer(TransportContext& context, QueuePair& qp) {
  const bool waiting = wire::psn_before(qp.send.unacked, qp.send.ack_limit);
  const bool never = qp.attr.timeout == 0;  // IBTA vol 1, 9.7.6.1.3
  if (!waiting || qp.send.waiting_for_rnr || never) {
    TimerQueue::cancel(qp.timers, TimerKind::kAck);
    return;
  }
  qp.send.ack_timer = ack_timeout(context, qp);
  context.scheduler().set_timer(qp, TimerKind::kAck, context.now() + qp.send.ack_timer);
}

}  // namespace rocemu::engine::completer
