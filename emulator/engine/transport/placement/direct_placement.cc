#include "emulator/engine/transport/placement/direct_placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "emulator/abi/send_opcodes.h"
#include "emulator/engine/objects/sge_list.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/requester.h"
#include "emulator/engine/transport/send_queue.h"

namespace rocemu::engine::direct_placement {
namespace {

using abi::SendWqe;
using abi::WrOpcode;

/// The minimum number of bytes of a message. To hand over a shorter one takes longer than the
/// system call that it saves.
constexpr uint64_t kLeastBytes = 16384;
/// The same for a message that is the only one in the send queue, so that its copy and the work of
/// the engine do not overlap.
constexpr uint64_t kLeastBytesAlone = 32768;
/// The maximum number of packets of a copy, as many as a requester sends in one quantum.
constexpr uint32_t kMostPackets = 16;
/// The number of copies that are begun before they are needed. The program makes the next ones
/// while the engine sends the packets of the previous ones, even if the two have to share a
/// processor.
constexpr uint32_t kAhead = 12;
/// The minimum ACK timeout, as in ibv_modify_qp(3): 4.096 us * 2^14 = 67 ms. The program that
/// copies may have to wait for a processor in the meantime.
constexpr uint8_t kLeastTimeout = 14;

bool is_read(const SendWqe& wqe) {
  return static_cast<WrOpcode>(wqe.opcode) == WrOpcode::kRdmaRead;
}

bool takes_receive_wqe(WrOpcode opcode) {
  return opcode != WrOpcode::kRdmaWrite && opcode != WrOpcode::kRdmaRead;
}

/// A position in the send queue: the next packets to be copied
struct Position {
  uint32_t index;     // of the WQE
  uint32_t packet;    // of the message
  wire::Psn psn;      // of that packet
  uint32_t receives;  // the number of receive WQEs that earlier packets finish
};

/// Returns the responder of the QP's requests, if it is in the fabric and will accept them.
const QueuePair* responder_of(const TransportContext& context, const QueuePair& qp) {
  if (!qp.path.inside || qp.type != abi::QpType::kRc) return nullptr;
  if (qp.attr.timeout != 0 && qp.attr.timeout < kLeastTimeout) return nullptr;
  const QueuePair* peer = context.objects().qps.find(qp.path.peer);
  if (peer == nullptr || peer->device != *qp.path.inside || peer->type != abi::QpType::kRc ||
      !peer->can_receive() || peer->recv.refusing || peer->recv.nak_outstanding ||
      peer->mtu() != qp.mtu() || peer->path.dst_ip != qp.path.src_ip ||
      peer->path.src_ip != qp.path.dst_ip || qp.path.src_ip.is_v4() != qp.path.dst_ip.is_v4()) {
    return nullptr;
  }
  const bool ports_are_up =
      context.device_of(qp).port_is_up() && context.device_of(*peer).port_is_up();
  return ports_are_up ? peer : nullptr;
}

/// Returns whether the message can be copied, as far as the requester knows.
bool is_suitable(const QueuePair& qp, const SendWqe& wqe, uint64_t length) {
  const auto opcode = static_cast<WrOpcode>(wqe.opcode);
  const bool is_plain = opcode == WrOpcode::kRdmaWrite || opcode == WrOpcode::kRdmaWriteWithImm ||
                        opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm ||
                        (opcode == WrOpcode::kRdmaRead && qp.attr.max_rd_atomic != 0);
  return is_plain && (wqe.flags & (abi::kSendInline | abi::kSendFence)) == 0 &&
         wqe.inline_size == 0 && wqe.slot == 0 && length >= kLeastBytes &&
         length <= qp.max_message && wqe.num_sge <= qp.attr.cap.max_send_sge &&
         (qp.late_failures & abi::opcode_bit(opcode)) == 0;
}

/// Returns the memory in which the responder will store the bytes [offset, offset + bytes) of the
/// message, or from which it will read them.
std::optional<MemoryList> remote_memory(const TransportContext& context, const QueuePair& peer,
                                        const SendWqe& wqe, const Position& at, uint64_t length,
                                        uint64_t offset, uint64_t bytes) {
  const MemoryTable& memory = context.objects().mrs;
  const auto opcode = static_cast<WrOpcode>(wqe.opcode);
  std::optional<ReceiveWqe> receive;
  if (takes_receive_wqe(opcode)) {
    receive = receive_queue::find_next(peer, at.receives);
    if (!receive) return std::nullopt;
  }
  if (opcode != WrOpcode::kSend && opcode != WrOpcode::kSendWithImm) {
    const uint32_t access =
        opcode == WrOpcode::kRdmaRead ? abi::kAccessRemoteRead : abi::kAccessRemoteWrite;
    if ((peer.attr.qp_access_flags & access) == 0) return std::nullopt;
    const auto resolve = [&](uint64_t from, uint64_t size) {
      return memory.resolve_remote(peer.memory_user(), wqe.rkey, wqe.remote_address + from, size,
                                   access);
    };
    // A work request can take a window away at any time (LOCAL_INV, SEND with invalidate).
    const auto whole = resolve(0, length);
    if (!whole || whole->by_window) return std::nullopt;
    const auto found = resolve(offset, bytes);
    return found ? std::optional(MemoryList(*found, bytes)) : std::nullopt;
  }
  if (!receive->well_formed || length > total(receive->sges)) return std::nullopt;
  return resolve(memory, receive->pd, receive->sges, offset, bytes, abi::kAccessLocalWrite);
}

/// Begins the copy for the next `count` packets at this position.
bool begin(TransportContext& context, const QueuePair& qp, const QueuePair& peer,
           const SendWqe& wqe, const Position& at, uint64_t length, uint32_t count) {
  const uint64_t offset = uint64_t{at.packet} * qp.mtu();
  const uint64_t bytes = std::min<uint64_t>(uint64_t{count} * qp.mtu(), length - offset);
  const SgeList list = read_sges(qp.send.queue.rest(at.index, sizeof(SendWqe)), wqe.num_sge);
  const auto local = resolve(context.objects().mrs, qp.pd, list, offset, bytes,
                             is_read(wqe) ? uint32_t{abi::kAccessLocalWrite} : 0);
  const auto remote = remote_memory(context, peer, wqe, at, length, offset, bytes);
  // The requests of the two clients, and of no other, can take the memory or the QPs away.
  if (!local || local->owner_of_plain() != qp.client || !remote ||
      remote->owner_of_plain() != peer.client) {
    return false;
  }
  DirectCopy copy{.key = {qp.number, at.psn.value()},
                  .maker = qp.client,
                  .from = qp.client,
                  .source = local->ranges(),
                  .to = peer.client,
                  .target = remote->ranges()};
  if (is_read(wqe)) {
    std::swap(copy.from, copy.to);
    std::swap(copy.source, copy.target);
  }
  return context.memory().begin_copy(copy);
}

/// Moves the position behind the next `count` packets.
void advance(const SendWqe& wqe, uint32_t packets, uint32_t count, Position& at) {
  at.psn = at.psn + count;
  at.packet += count;
  if (at.packet < packets) return;
  at.packet = 0;
  ++at.index;
  if (takes_receive_wqe(static_cast<WrOpcode>(wqe.opcode))) ++at.receives;
}

/// Begins copies from this position on. If `follows_read` is true, begins only those of READs: if a
/// READ must be executed by packets after all, it does not see what a later request has written.
void begin_ahead(TransportContext& context, const QueuePair& qp, const QueuePair& peer, Position at,
                 uint32_t most, bool follows_read) {
  for (uint32_t i = 0; i < most && at.index != qp.send.queue.tail(); ++i) {
    const auto wqe = qp.send.queue.header<SendWqe>(at.index);
    const uint64_t length = requester::message_length(qp, at.index, wqe);
    if (!is_suitable(qp, wqe, length) || (follows_read && !is_read(wqe))) return;
    // Data that a response has yet to bring would replace that of a later READ.
    if (is_read(wqe) && wire::psn_before(qp.send.unacked, qp.send.unplaced_limit)) return;
    follows_read = is_read(wqe);
    const uint32_t packets = psn_count(static_cast<uint32_t>(length), qp.mtu());
    const uint32_t count = std::min(packets - at.packet, kMostPackets);
    const CopyKey key{qp.number, at.psn.value()};
    const CopyProgress progress = context.memory().copy_progress(qp.client, key);
    if (progress == CopyProgress::kFailed) return;  // the packets carry this payload
    const bool has_begun = progress != CopyProgress::kNone;
    if (!has_begun && !begin(context, qp, peer, wqe, at, length, count)) return;
    advance(wqe, packets, count, at);
  }
}

/// Begins the copy of the `count` packets at this position, if it has not begun, and later ones.
/// Returns false if that is possible only after the frames that have arrived.
bool continue_copies(TransportContext& context, const QueuePair& qp, const QueuePair& peer,
                     Position at, uint32_t packets, uint32_t count) {
  const CopyKey key{qp.number, at.psn.value()};
  const CopyProgress progress = context.memory().copy_progress(qp.client, key);
  // The packets [first in flight, here) were sent when the responder had executed all before them.
  const bool all_executed = peer.recv.expected == at.psn - at.packet + qp.send.next_packet;
  if (progress == CopyProgress::kFailed || !context.memory().may_copy(qp.client)) return true;
  if (!all_executed) return progress != CopyProgress::kNone || !context.has_arrivals();
  const auto wqe = qp.send.queue.header<SendWqe>(at.index);
  if (progress == CopyProgress::kNone) {
    const SendState& state = qp.send.queue.state(at.index);
    const bool is_alone = qp.send.queue.size() == 1 && state.length < kLeastBytesAlone;
    // The placed packets of a message are consecutive.
    const bool fits = state.placed_to == state.placed_from || state.placed_to == at.packet;
    if (!is_alone && fits) begin_ahead(context, qp, peer, at, kAhead, false);
  } else {
    advance(wqe, packets, count, at);
    begin_ahead(context, qp, peer, at, kAhead - 1, is_read(wqe));
  }
  return true;
}

}  // namespace

bool is_payload_watched(const TransportContext& context) {
  return context.config().trace_frames || context.adversary() != nullptr ||
         context.crossing().is_there() || context.faults().watches_frames() ||
         context.faults().watches(faults::Where::kRequest) || context.is_link_paused();
}

Placement place(TransportContext& context, QueuePair& qp, uint32_t count) {
  const SendHalf& send = qp.send;
  const uint32_t first = send.next_packet;
  SendState& state = qp.send.queue.state(send.next);
  if (state.length < kLeastBytes) return {Payload::kInPackets, count};
  if (first >= state.placed_from && first < state.placed_to) {
    return {Payload::kPlaced, std::min(count, state.placed_to - first)};
  }
  if (first < state.placed_from) count = std::min(count, state.placed_from - first);
  const wire::Psn psn = state.first + first;
  if (wire::psn_before(psn, send.sent_limit)) return {Payload::kInPackets, count};

  const CopyKey key{qp.number, psn.value()};
  const uint32_t packets = psn_count(state.length, qp.mtu());
  const uint32_t wanted = std::min(packets - first, kMostPackets);
  const QueuePair* peer = is_payload_watched(context) ? nullptr : responder_of(context, qp);
  if (peer != nullptr) {
    const Position at{send.next, first, psn, 0};
    if (!continue_copies(context, qp, *peer, at, packets, wanted)) return {Payload::kLater, 0};
  }
  const CopyProgress progress = context.memory().copy_progress(qp.client, key);
  if (progress == CopyProgress::kNone) return {Payload::kInPackets, count};
  if (progress == CopyProgress::kUnderWay) return {Payload::kAwaited, 0};
  context.memory().forget_copy(qp.client, key);
  if (progress == CopyProgress::kFailed) return {Payload::kInPackets, count};
  if (state.placed_to == state.placed_from) state.placed_from = first;
  state.placed_to = first + wanted;
  return {Payload::kPlaced, std::min(count, wanted)};
}

Payload place_response(TransportContext& context, QueuePair& qp) {
  SendHalf& send = qp.send;
  const SendState& state = send.queue.state(send.next);
  if (state.length < kLeastBytes) return Payload::kInPackets;
  // The comparison of PSNs is valid only while they are near each other.
  if (!wire::psn_before(send.unacked, send.unplaced_limit)) send.unplaced_limit = send.unacked;
  const uint32_t packets = psn_count(state.length, qp.mtu());
  const bool is_new = send.next_packet == 0 && !wire::psn_before(state.first, send.sent_limit);
  const QueuePair* peer = nullptr;
  if (is_new && !is_payload_watched(context)) peer = responder_of(context, qp);
  while (send.placed < packets) {
    const wire::Psn psn = state.first + send.placed;
    const CopyKey key{qp.number, psn.value()};
    const uint32_t count = std::min(packets - send.placed, kMostPackets);
    if (peer != nullptr) {
      const Position at{send.next, send.placed, psn, 0};
      if (!continue_copies(context, qp, *peer, at, packets, count)) return Payload::kLater;
    }
    const CopyProgress progress = context.memory().copy_progress(qp.client, key);
    if (progress == CopyProgress::kUnderWay) return Payload::kAwaited;
    context.memory().forget_copy(qp.client, key);
    if (progress != CopyProgress::kDone) break;
    send.placed += count;
  }
  const bool is_placed = send.placed == packets && peer != nullptr;
  send.placed = 0;
  return is_placed ? Payload::kPlaced : Payload::kInPackets;
}

}  // namespace rocemu::engine::direct_placement
