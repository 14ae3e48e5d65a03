#include "emulator/engine/transport/requester.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/abi/send_opcodes.h"
#include "emulator/engine/faults/request_faults.h"
#include "emulator/engine/objects/sge_list.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/completer.h"
#include "emulator/engine/transport/congestion.h"
#include "emulator/engine/transport/placement/direct_placement.h"
#include "emulator/engine/transport/send_queue.h"
#include "emulator/engine/transport/ud.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::requester {
namespace {

using abi::SendWqe;
using abi::WcStatus;
using abi::WrOpcode;
using send_queue::may_send;
using send_queue::stop_at_next;
using wire::Opcode;
using wire::Psn;

/// The maximum number of packets in one quantum. Their payload is read from memory together; then
/// the next QP has its quantum.
constexpr uint32_t kBurst = 16;
/// The maximum number of packets in flight; IBTA vol 1, 9.7.2 allows 2^23 - 1.
constexpr int32_t kWindow = 1 << 20;
int32_t window_of(const TransportContext& context, const QueuePair& qp) {
  return context.is_remote(qp) ? qp.send.window : kWindow;
}

/// Returns the error that the WQE itself has; called before any part of the WQE is sent.
std::optional<LocalError> check_wqe(const TransportContext& context, const QueuePair& qp,
                                    const SendWqe& wqe, uint64_t length) {
  const auto kind = request_kind(static_cast<WrOpcode>(wqe.opcode));
  if (!kind || !abi::supports(qp.type, static_cast<WrOpcode>(wqe.opcode))) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kOpcodeNotSupported};
  }
  if ((qp.late_failures & abi::opcode_bit(static_cast<WrOpcode>(wqe.opcode))) != 0) [[unlikely]] {
    context.device_of(qp).failed_late |= abi::opcode_bit(static_cast<WrOpcode>(wqe.opcode));
    return LocalError{WcStatus::kLocQpOpErr, static_cast<VendorError>(qp.late_vendor_err)};
  }
  if (*kind == RequestKind::kLocal) return std::nullopt;
  const bool is_inline = (wqe.flags & abi::kSendInline) != 0;
  if (is_inline ? wqe.inline_size > qp.attr.cap.max_inline_data
                : wqe.num_sge > qp.attr.cap.max_send_sge) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  }
  if (length > qp.max_message)
    return LocalError{WcStatus::kLocLenErr, VendorError::kMessageTooLong};
  if (qp.type == abi::QpType::kUd) return ud::check(context, qp, wqe, length);
  if (!wants_response(*kind)) return std::nullopt;

  // ibv_modify_qp(3), max_rd_atomic: if this is 0, no READ or atomic may be outstanding, so none
  // can be sent.
  if (qp.attr.max_rd_atomic == 0) return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  if (const uint32_t only = traits_of(*kind).length; only != 0 && length != only) {
    return LocalError{WcStatus::kLocLenErr, VendorError::kBadWqe};
  }
  // A missing buffer for the response is detected when the response arrives (completer.cc).
  if (places_response(*kind) && is_inline) {
    return LocalError{WcStatus::kLocQpOpErr, VendorError::kBadWqe};
  }
  return std::nullopt;
}

Opcode opcode_of(const QueuePair& qp, const SendWqe& wqe, bool first, bool last) {
  return in_transport(transport_of(qp.type),
                      request_opcode(static_cast<WrOpcode>(wqe.opcode), first, last));
}

/// Executes a BIND_MW or LOCAL_INV, which concern only this device.
std::optional<LocalError> execute_local(TransportContext& context, const QueuePair& qp,
                                        const SendWqe& wqe) {
  // IBTA vol 1, 11.6.2: a BIND_MW or LOCAL_INV that is not allowed fails with a "memory management
  // operation error", which libibverbs calls IBV_WC_MW_BIND_ERR.
  if (static_cast<WrOpcode>(wqe.opcode) == WrOpcode::kLocalInv) {
    if (context.objects().mrs.invalidate(qp.memory_user(), wqe.imm_data)) return std::nullopt;
    return LocalError{WcStatus::kMwBindErr, VendorError::kBadInvalidate};
  }
  const bool bound = context.objects().mrs.bind(qp.memory_user(), {.window = MwId{wqe.window},
                                                                   .rkey = wqe.rkey,
                                                                   .lkey = wqe.bind.lkey,
                                                                   .address = wqe.remote_address,
                                                                   .length = wqe.bind.length,
                                                                   .access = wqe.bind.access});
  if (bound) return std::nullopt;
  return LocalError{WcStatus::kMwBindErr, VendorError::kBadBind};
}

/// Sends one request packet, and updates the counts. `limit` is the PSN after the last PSN that the
/// request and its responses use.
void send_request(TransportContext& context, QueuePair& qp, wire::Packet& packet, Psn limit,
                  size_t payload, Frame frame) {
  SendHalf& send = qp.send;
  if (packet.bth.ack_req) send.ack_limit = limit;
  Resend resend;
  if (wire::psn_before(packet.bth.psn, send.sent_limit)) {
    context.counters_of(qp).add(Counter::kRetransmittedFrames);
    resend = send.resend;
    send.resend.begins = false;
  }
  // A part of a READ that is requested again may be smaller than before, so `limit` may be lower
  // than sent_limit.
  if (wire::psn_before(send.sent_limit, limit)) send.sent_limit = limit;
  context.transmitter().send(qp, packet, payload, std::move(frame), resend);
}

/// Sends packet `number` of the message. `frame` contains the packet's payload already, if it has
/// one.
void send_packet(TransportContext& context, QueuePair& qp, const SendWqe& wqe,
                 const SendState& state, uint32_t number, uint32_t packets, size_t payload,
                 Frame frame) {
  const bool last = number + 1 == packets;
  wire::Packet packet;
  packet.bth.opcode = opcode_of(qp, wqe, number == 0, last);
  packet.bth.solicited = last && (wqe.flags & abi::kSendSolicited) != 0 &&
                         can_be_solicited(state.kind, static_cast<WrOpcode>(wqe.opcode));
  packet.bth.psn = state.first + number;
  packet.imm.value = wqe.imm_data;
  packet.ieth.rkey = wqe.imm_data;
  packet.reth = {.va = wqe.remote_address, .rkey = wqe.rkey, .dma_length = state.length};
  // The last packet for which the window has space also requests an acknowledgement, since
  // otherwise nothing would ever open the window again. For a remote peer, other packets request
  // one, too, so that the window moves in time.
  packet.bth.ack_req =
      is_reliable(qp.type) &&
      (last || wire::psn_distance(qp.send.unacked, packet.bth.psn) == window_of(context, qp) - 1 ||
       (context.is_remote(qp) && (number + 1) % kFirstWindow == 0));
  packet.xrceth.srqn = wqe.remote_srqn & 0xffffff;
  packet.deth = {.qkey = ud::qkey_of(qp, wqe), .src_qpn = qp.number.value};
  send_request(context, qp, packet, packet.bth.psn + 1, payload, std::move(frame));
}

/// Assigns PSNs to WQE `next`. Returns false if the WQE cannot be sent.
bool begin_wqe(TransportContext& context, QueuePair& qp, const SendWqe& wqe) {
  SendHalf& send = qp.send;
  const uint64_t length = message_length(qp, send.next, wqe);
  if (const auto error = check_wqe(context, qp, wqe, length)) {
    stop_at_next(context, qp, *error);
    return false;
  }
  if (context.faults().watches(faults::Where::kWorkRequest)) [[unlikely]] {
    if (const auto error = faults::work_request_fault(context.faults(), qp, send.next, length)) {
      stop_at_next(context, qp, *error);
      return false;
    }
  }
  const RequestKind kind = *request_kind(static_cast<WrOpcode>(wqe.opcode));
  if (kind == RequestKind::kLocal) {
    if (const auto error = execute_local(context, qp, wqe)) {
      stop_at_next(context, qp, *error);
      return false;
    }
  }
  if (qp.type == abi::QpType::kUd) qp.path = ud::path_of(context, qp, wqe);
  SendState& state = send.queue.state(send.next);
  state.started = true;
  state.kind = kind;
  if (wants_response(state.kind)) ++send.responses_outstanding;
  state.length = static_cast<uint32_t>(length);
  state.first = send.next_psn;
  if (kind != RequestKind::kLocal) send.next_psn += psn_count(state.length, qp.mtu());
  state.last = send.next_psn - 1;
  return true;
}

/// Returns whether the WQE contains the message. The size that the client states is not trusted: a
/// stride has space for kMaxCarried bytes after the longest list of SGEs (abi::send_stride).
bool carries_message(const SendWqe& wqe, uint32_t length) {
  return wqe.inline_size == length && length <= abi::kMaxCarried;
}

/// The reason why a WQE does not continue: an error, or memory that the program has yet to provide.
struct Obstacle {
  LocalError error{};
  bool is_for_a_while = false;
};
constexpr Obstacle kMemoryNotReady{{}, true};

void stop_at(TransportContext& context, QueuePair& qp, const Obstacle& obstacle) {
  if (obstacle.is_for_a_while) return context.scheduler().wait_for_memory(qp);
  stop_at_next(context, qp, obstacle.error);
}

/// Reads the payload of the packets [number, number + frames.size()) into their frames.
std::optional<Obstacle> fill_payload(TransportContext& context, const QueuePair& qp, uint32_t index,
                                     const SendWqe& wqe, uint32_t number, uint32_t packets,
                                     std::span<Frame> frames) {
  const SendState& state = qp.send.queue.state(index);
  const uint64_t begin = uint64_t{number} * qp.mtu();
  const uint64_t end = std::min<uint64_t>(begin + frames.size() * qp.mtu(), state.length);
  if (begin == end) return std::nullopt;

  const bool is_v4 = qp.path.src_ip.is_v4() && qp.path.dst_ip.is_v4();
  std::array<std::span<uint8_t>, kBurst> targets;
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t size = std::min<uint64_t>(qp.mtu(), end - begin - i * qp.mtu());
    const size_t offset =
        wire::payload_offset(is_v4, opcode_of(qp, wqe, number + i == 0, number + i + 1 == packets));
    targets[i] = std::span<uint8_t>(frames[i].storage()).subspan(offset, size);
  }
  const auto copy = [&](std::span<const std::byte> source) {
    for (const std::span<uint8_t> target : std::span(targets).first(frames.size())) {
      std::memcpy(target.data(), source.data(), target.size());
      source = source.subspan(target.size());
    }
  };
  const auto behind_header = qp.send.queue.rest(index, sizeof(SendWqe));
  if ((wqe.flags & abi::kSendInline) != 0) {
    copy(behind_header.subspan(begin, end - begin));
    return std::nullopt;
  }
  const auto ranges = resolve(context.objects().mrs, qp.pd, read_sges(behind_header, wqe.num_sge),
                              begin, end - begin, 0);
  if (!ranges) return Obstacle{{WcStatus::kLocProtErr, VendorError::kBadSendLKey}};
  if (carries_message(wqe, state.length)) {
    const size_t sges = wqe.num_sge * sizeof(abi::Sge);
    copy(behind_header.subspan(sges + begin, end - begin));
    return std::nullopt;
  }
  const auto to = std::span(targets).first(frames.size());
  const MemoryResult read =
      wqe.slot != 0 ? ranges->read_posted(context.memory(), qp.client, wqe.slot - 1, begin, to)
                    : ranges->read(context.memory(), to);
  if (read == MemoryResult::kNotYet) return kMemoryNotReady;
  if (read != MemoryResult::kDone) {
    return Obstacle{{WcStatus::kLocProtErr, VendorError::kSendMemoryUnreadable}};
  }
  return std::nullopt;
}

/// Returns the message of a WQE that contains it.
std::optional<std::span<const std::byte>> contained_message(const QueuePair& qp, uint32_t index,
                                                            const SendWqe& wqe, uint32_t length) {
  const auto behind_header = qp.send.queue.rest(index, sizeof(SendWqe));
  if (length == 0 || (wqe.flags & abi::kSendInline) != 0) return behind_header.first(length);
  if (!carries_message(wqe, length)) return std::nullopt;
  return behind_header.subspan(wqe.num_sge * sizeof(abi::Sge), length);
}

/// Returns whether a request of the QP may travel without a frame (short_requests.h).
bool may_send_unseen(const TransportContext& context, const QueuePair& qp) {
  return context.short_requests().is_allowed() && qp.type == abi::QpType::kRc &&
         context.adversary() == nullptr && !context.faults().rules.watches_anything() &&
         !context.transmitter().is_way_watched(qp);
}

/// Returns whether the QP may read a message of this length from the memory that its WQE names.
bool may_read_message(const TransportContext& context, const QueuePair& qp, uint32_t index,
                      const SendWqe& wqe, uint32_t length) {
  if ((wqe.flags & abi::kSendInline) != 0) return true;
  const auto list = qp.send.queue.rest(index, sizeof(SendWqe));
  for (uint32_t i = 0; i < wqe.num_sge && length != 0; ++i) {
    abi::Sge sge;
    std::memcpy(&sge, &list[i * sizeof(sge)], sizeof(sge));
    const uint32_t part = std::min(sge.length, length);
    if (part == 0) continue;
    if (!context.objects().mrs.resolve_local(qp.pd, sge.lkey, sge.address, part, 0)) return false;
    length -= part;
  }
  return true;
}

/// Sends a message without a frame.
void send_unseen(TransportContext& context, QueuePair& qp, const SendWqe& wqe,
                 const SendState& state, std::span<const std::byte> message) {
  const auto opcode = static_cast<WrOpcode>(wqe.opcode);
  const wire::Opcode packet_opcode = opcode_of(qp, wqe, true, true);
  const size_t frame_size = wire::frame_size(qp.path.src_ip.is_v4(), packet_opcode, message.size());
  ShortRequest& request = context.short_requests().add([&](wire::Packet& packet) {
    context.transmitter().address(qp, packet);
    return *qp.path.inside;
  });
  // Each field is stored by itself: copying a struct that was stored in parts is slow.
  request.opcode = packet_opcode;
  request.solicited =
      (wqe.flags & abi::kSendSolicited) != 0 && can_be_solicited(state.kind, opcode);
  request.psn = state.first;
  request.imm_data = wqe.imm_data;
  request.reth.va = wqe.remote_address;
  request.reth.rkey = wqe.rkey;
  request.reth.dma_length = state.length;
  request.payload = {reinterpret_cast<const uint8_t*>(message.data()), message.size()};
  request.frame_size = static_cast<uint32_t>(frame_size);
  context.transmitter().count_unseen(qp, frame_size);
  qp.send.ack_limit = qp.send.sent_limit = state.first + 1;  // each asks for an acknowledgement
}

/// Returns the number of packets of the response that the next request of this WQE asks for: all
/// that are missing. From a remote peer, a READ asks at most for the window, since nothing else
/// prevents the responder from sending all packets at once.
uint32_t response_packets(const TransportContext& context, const QueuePair& qp,
                          const SendState& state) {
  const uint32_t missing = psn_count(state.length, qp.mtu()) - qp.send.next_packet;
  if (state.kind != RequestKind::kRead || !context.is_remote(qp)) return missing;
  const uint32_t part = std::min(missing, static_cast<uint32_t>(qp.send.window));
  // A repeated request (a "duplicate READ") does not ask for more than the earlier request did;
  // otherwise the responder and the requester would no longer agree on the next PSN.
  const int32_t asked_before =
      wire::psn_distance(state.first + qp.send.next_packet, qp.send.sent_limit);
  return asked_before > 0 ? std::min(part, static_cast<uint32_t>(asked_before)) : part;
}

/// Sends a READ, an atomic, an ATOMIC WRITE or a FLUSH, which is one packet. A READ asks for
/// `packets` packets of its response, starting with the first missing one.
/// `is_placed` means that the requester has the data of the response.
std::optional<Obstacle> send_query(TransportContext& context, QueuePair& qp, const SendWqe& wqe,
                                   const SendState& state, uint32_t packets, bool is_placed) {
  const auto opcode = static_cast<WrOpcode>(wqe.opcode);
  const uint32_t have = qp.send.next_packet * qp.mtu();
  wire::Packet packet;
  packet.bth.opcode = opcode_of(qp, wqe, true, true);
  packet.bth.ack_req = true;
  packet.xrceth.srqn = wqe.remote_srqn & 0xffffff;
  packet.bth.psn = state.first + qp.send.next_packet;
  const auto wanted =
      static_cast<uint32_t>(std::min<uint64_t>(state.length - have, uint64_t{packets} * qp.mtu()));
  packet.reth = {.va = wqe.remote_address + have, .rkey = wqe.rkey, .dma_length = wanted};
  Frame frame = context.transmitter().allocate();
  if (is_placed) frame.set_placed();
  size_t payload = 0;
  if (state.kind == RequestKind::kAtomicWrite) {
    payload = state.length;
    if (const auto obstacle = fill_payload(context, qp, qp.send.next, wqe, 0, 1, {&frame, 1})) {
      return obstacle;
    }
  } else if (state.kind == RequestKind::kFlush) {
    packet.reth.dma_length = wqe.flush.length;
    packet.feth = {.selectivity = static_cast<uint8_t>(wqe.flush.level),
                   .placement = static_cast<uint8_t>(wqe.flush.type)};
  } else if (state.kind == RequestKind::kAtomic) {
    const bool compares = opcode == WrOpcode::kAtomicCmpAndSwp;
    packet.atomic = {.va = wqe.remote_address,
                     .rkey = wqe.rkey,
                     .swap_add = compares ? wqe.atomic.swap : wqe.atomic.compare_add,
                     .compare = compares ? wqe.atomic.compare_add : 0};
  }
  send_request(context, qp, packet, packet.bth.psn + packets, payload, std::move(frame));
  return std::nullopt;
}

/// Returns whether a WQE that has not begun must wait for the responses to earlier WQEs, because of
/// a fence (IBTA vol 1, 10.8.3.3) or because the responder has no resources for another READ or
/// atomic.
bool waits_for_responses(const QueuePair& qp, const SendWqe& wqe) {
  const SendHalf& send = qp.send;
  if (send.responses_outstanding == 0) return false;
  if ((wqe.flags & abi::kSendFence) != 0) return true;
  const auto kind = request_kind(static_cast<WrOpcode>(wqe.opcode));
  return kind && wants_response(*kind) && send.responses_outstanding >= qp.attr.max_rd_atomic;
}

/// Completes requests that were sent, since unreliable QPs have no acknowledgements (IBTA vol 1,
/// 9.8.2 and 9.8.3).
void sent_unreliably(TransportContext& context, QueuePair& qp) {
  SendHalf& send = qp.send;
  send.unacked = send.ack_limit = send.sent_limit;
  send_queue::complete_acknowledged(context, qp);
  send_queue::check_drained(context, qp);
}

/// Returns whether the packets cannot be sent now. The QP continues when they can.
bool is_put_off(TransportContext& context, QueuePair& qp, direct_placement::Payload payload) {
  if (payload == direct_placement::Payload::kAwaited) context.scheduler().wait_for_memory(qp);
  if (payload == direct_placement::Payload::kLater) context.scheduler().schedule(qp);
  return payload == direct_placement::Payload::kAwaited ||
         payload == direct_placement::Payload::kLater;
}

/// Sends up to `budget` packets of WQE `next`. Returns 0 if the WQE failed, or must wait for an
/// event after which the QP is scheduled again. `is_unseen` is the result of may_send_unseen().
uint32_t send_next(TransportContext& context, QueuePair& qp, uint32_t budget, bool is_unseen) {
  SendHalf& send = qp.send;
  const uint32_t index = send.next;
  const auto wqe = send.queue.header<SendWqe>(index);
  if (!send.queue.state(index).started) {
    if (waits_for_responses(qp, wqe)) return 0;
    if (!begin_wqe(context, qp, wqe)) return 0;
  }

  const SendState& state = send.queue.state(index);
  if (state.kind == RequestKind::kLocal) {  // done when it began, however often this is called
    ++send.next;
    send.next_packet = 0;
    send_queue::complete_acknowledged(context, qp);
    return 1;
  }
  const int32_t in_flight = wire::psn_distance(send.unacked, state.first + send.next_packet);
  const int32_t window = window_of(context, qp) - in_flight;
  if (window <= 0) return 0;
  if (wants_response(state.kind)) {
    // The rest of a READ is requested when the previous part has arrived, since the responder
    // counts all parts as one outstanding request.
    if (send.next_packet > 0 && in_flight > 0) return 0;
    auto payload = direct_placement::Payload::kInPackets;
    if (state.kind == RequestKind::kRead) payload = direct_placement::place_response(context, qp);
    if (is_put_off(context, qp, payload)) return 0;
    const bool is_placed = payload == direct_placement::Payload::kPlaced;
    const uint32_t packets = response_packets(context, qp, state);
    if (const auto obstacle = send_query(context, qp, wqe, state, packets, is_placed)) {
      stop_at(context, qp, *obstacle);
      return 0;
    }
    if (!is_placed) send.unplaced_limit = state.last + 1;
    send.next_packet += packets;
    if (state.first + send.next_packet == state.last + 1) {
      ++send.next;
      send.next_packet = 0;
    }
    if (!TimerQueue::running(qp.timers, TimerKind::kAck)) completer::restart_timer(context, qp);
    return 1;
  }
  const uint32_t packets = psn_count(state.length, qp.mtu());
  const uint32_t first = send.next_packet;
  const bool reads_memory = state.length != 0 && (wqe.flags & abi::kSendInline) == 0;
  if (reads_memory && context.adversary() != nullptr &&
      !context.adversary()->may_read(qp, index, first)) [[unlikely]] {
    return 0;
  }
  uint32_t count = std::min({packets - first, budget, static_cast<uint32_t>(window)});
  auto payload = direct_placement::Payload::kInPackets;
  if (reads_memory) {
    const direct_placement::Placement decision = direct_placement::place(context, qp, count);
    if (is_put_off(context, qp, decision.payload)) return 0;
    payload = decision.payload;
    count = decision.count;
  }
  const bool is_placed = payload == direct_placement::Payload::kPlaced;
  const bool is_carried = !is_placed || direct_placement::is_payload_watched(context);
  const auto send_all = [&](std::span<Frame> frames) {
    for (Frame& frame : frames) frame = context.transmitter().allocate();
    if (is_placed) {
      for (Frame& frame : frames) frame.set_placed();
    }
    const auto obstacle =
        is_carried ? fill_payload(context, qp, index, wqe, first, packets, frames) : std::nullopt;
    if (obstacle) {
      stop_at(context, qp, *obstacle);
      return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t number = first + i;
      const uint64_t begin = uint64_t{number} * qp.mtu();
      const size_t bytes = std::min<uint64_t>(qp.mtu(), state.length - begin);
      send_packet(context, qp, wqe, state, number, packets, bytes, std::move(frames[i]));
    }
    return true;
  };
  // A message that needs no frame. It must not overtake a frame on the link.
  const auto unseen = is_unseen && packets == 1 && context.is_link_idle() &&
                              !wire::psn_before(state.first, send.sent_limit)
                          ? contained_message(qp, index, wqe, state.length)
                          : std::nullopt;
  if (unseen) {
    if (!may_read_message(context, qp, index, wqe, state.length)) {
      stop_at_next(context, qp, {WcStatus::kLocProtErr, VendorError::kBadSendLKey});
      return 0;
    }
    send_unseen(context, qp, wqe, state, *unseen);
  } else if (count == 1) {  // most of the array would only be made and destroyed
    Frame frame;
    if (!send_all({&frame, 1})) return 0;
  } else {
    std::array<Frame, kBurst> frames;
    if (!send_all(std::span(frames).first(count))) return 0;
  }
  send.next_packet += count;
  if (send.next_packet == packets) {
    ++send.next;
    send.next_packet = 0;
  }
  if (!is_reliable(qp.type)) {
    sent_unreliably(context, qp);
  } else if (!TimerQueue::running(qp.timers, TimerKind::kAck)) {
    completer::restart_timer(context, qp);
  }
  return count;
}

}  // namespace

uint32_t transmit(TransportContext& context, QueuePair& qp) {
  uint32_t sent = 0;
  // Consecutive short messages are sent in one quantum, so that one acknowledgement can cover all
  // of them.
  const uint32_t burst = congestion::packets_of_quantum(context, kBurst);
  const bool is_unseen = may_send_unseen(context, qp);
  while (sent < burst && may_send(qp)) {
    const uint32_t count = send_next(context, qp, burst - sent, is_unseen);
    if (count == 0) return std::max(sent, 1u);
    sent += count;
  }
  if (may_send(qp)) context.scheduler().schedule(qp);
  return std::max(sent, 1u);
}

uint64_t message_length(const QueuePair& qp, uint32_t index, const SendWqe& wqe) {
  const abi::SendOpcode* opcode = abi::find_send_opcode(static_cast<WrOpcode>(wqe.opcode));
  if (opcode != nullptr && opcode->is_dataless) return 0;
  if ((wqe.flags & abi::kSendInline) != 0) return wqe.inline_size;
  const uint32_t count = std::min(wqe.num_sge, qp.attr.cap.max_send_sge);
  return total(read_sges(qp.send.queue.rest(index, sizeof(SendWqe)), count));
}

}  // namespace rocemu::engine::requester
