#include "emulator/engine/transport/response_queue.h"
#include "emulator/engine/transport/placement/direct_placement.h"

#include <algorithm>
#include <array>

#include "emulator/engine/objects/memory_access.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/congestion.h"
#include "emulator/engine/transport/failure.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/remote_access.h"
#include "wire/aeth.h"

namespace rocemu::engine::response_queue {
namespace {

using wire::Opcode;
using wire::Psn;

/// The maximum number of packets that a responder sends in one quantum; a requester has the same
/// limit
constexpr uint32_t kBurst = 16;

/// Records that the acknowledgement or response with that PSN is sent, and returns whether it
/// repeats an earlier one. Responses are sent in the order of PSNs, except those to duplicate
/// requests (IBTA vol 1, 9.7.5.1).
Resend mark_answer(RecvHalf& recv, Psn psn) {
  if (wire::psn_before(psn, recv.answered)) return {.why = Resent::kDuplicate, .begins = true};
  recv.answered = psn + 1;
  return {};
}

void send_acknowledge(TransportContext& context, QueuePair& qp, Psn psn, uint8_t syndrome,
                      uint32_t msn) {
  wire::Packet packet;
  packet.bth.opcode = in_transport(transport_of(qp.type), Opcode::kRcAck);
  packet.bth.psn = psn;
  packet.aeth = {.syndrome = syndrome, .msn = msn};
  const bool is_ack = wire::aeth_kind(syndrome) == wire::AethKind::kAck;
  context.transmitter().send(qp, packet, 0, context.transmitter().allocate(),
                             is_ack ? mark_answer(qp.recv, psn) : Resend{});
}

void send_atomic_answer(TransportContext& context, QueuePair& qp, const Response& response) {
  wire::Packet packet;
  packet.bth.opcode = in_transport(transport_of(qp.type), Opcode::kRcAtomicAck);
  packet.bth.psn = response.psn;
  packet.aeth = {.syndrome = wire::ack_syndrome(), .msn = response.msn};
  packet.atomic_ack = {.original = response.value};
  context.transmitter().send(qp, packet, 0, context.transmitter().allocate(),
                             mark_answer(qp.recv, response.psn));
}

bool takes_resources(const Response& response) {
  return response.kind == Response::Kind::kRead || response.kind == Response::Kind::kAtomic;
}

/// Returns whether the queue contains only an acknowledgement that `--adversarial=order` delays.
bool is_held(const TransportContext& context, const RecvHalf& recv) {
  return recv.responses.size() == 1 && recv.responses.front().held_until > context.now();
}

/// Decides whether to drop the first response, an acknowledgement that the following response
/// covers (`--adversarial=order`).
bool is_dropped(const TransportContext& context, const RecvHalf& recv) {
  if (recv.responses.size() == 1 || recv.responses[0].held_until == Instant{}) return false;
  return wire::psn_before(recv.responses[0].psn, recv.responses[1].psn) &&
         context.adversary()->drops_acknowledgement();
}

/// Returns the PSN of the last packet that belongs to the response.
Psn last_psn(const QueuePair& qp, const Response& response) {
  return response.psn + psn_count(response.left, qp.mtu()) - 1;
}

/// Fails the QP: sends the NAK, reports the error through the receive WQE in use or through an
/// event, and flushes the QP.
void execute_refusal(TransportContext& context, QueuePair& qp, Psn psn, Verdict verdict) {
  const ResponderAction action = action_for(verdict);
  context.counters_of(qp).add(Counter::kErrorNaksSent);
  send_acknowledge(context, qp, psn, wire::nak_syndrome(action.nak), qp.recv.msn);
  if (qp.recv.wqe) {
    receive_queue::fail(context, qp, action.status, action.vendor);
  } else {
    context.raise(qp, action.event);
  }
  enter_error(context, qp);
}

/// Reads the next `length` bytes of a READ's data. The R_Key is checked again for each burst, since
/// the region may have been destroyed in the meantime.
std::optional<Verdict> read_for(TransportContext& context, QueuePair& qp, const Response& response,
                                uint32_t length, std::span<const std::span<uint8_t>> targets) {
  const MemoryUser user{.pd = response.pd, .qp = qp.number};
  const auto place = context.objects().mrs.resolve_remote(user, response.rkey, response.address,
                                                          length, abi::kAccessRemoteRead);
  if (!place)
    return remote_access::refuse(context, qp, user, response.rkey, {response.address, length},
                                 abi::kAccessRemoteRead);
  return verdict_of(MemoryList(*place, length).read(context.memory(), targets),
                    Verdict::kRemoteMemoryUnreachable);
}

/// Sends up to `budget` packets of a READ's data. When all data has been sent, response.left is 0
/// and response.begun is true. Returns nothing if the data must be read later; the QP is then
/// scheduled for that time.
std::optional<uint32_t> send_read_data(TransportContext& context, QueuePair& qp, Response& response,
                                       uint32_t budget) {
  adversarial::Adversary* adversary = context.adversary();
  if (adversary != nullptr && adversary->awaits_response(qp, response)) [[unlikely]]
    return std::nullopt;
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
    packet.bth.opcode =
        in_transport(transport_of(qp.type), first && last ? Opcode::kRcReadResponseOnly
                                            : first       ? Opcode::kRcReadResponseFirst
                                            : last        ? Opcode::kRcReadResponseLast
                                                          : Opcode::kRcReadResponseMiddle);
    packet.bth.psn = response.psn + i;
    packet.aeth = {.syndrome = wire::ack_syndrome(), .msn = response.msn};
    frames[i] = context.transmitter().allocate();
    targets[i] =
        std::span<uint8_t>(frames[i].storage()).subspan(wire::payload_offset(packet), size);
    bytes += size;
  }
  if (response.is_placed && !direct_placement::is_payload_watched(context)) {
    for (uint32_t i = 0; i < count; ++i) frames[i].set_placed();
  } else if (bytes != 0) {
    if (const auto verdict =
            read_for(context, qp, response, bytes, std::span(targets).first(count))) {
      if (*verdict == Verdict::kMemoryNotReady) {
        context.scheduler().wait_for_memory(qp);
        return std::nullopt;
      }
      if (*verdict != Verdict::kReceiverGone) {
        execute_refusal(context, qp, response.psn, *verdict);
      }
      return 0;
    }
    if (adversary != nullptr &&
        !adversary->takes_response(qp, response, std::span(targets).first(count))) [[unlikely]] {
      return std::nullopt;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    context.transmitter().send(qp, packets[i], targets[i].size(), std::move(frames[i]),
                               mark_answer(qp.recv, packets[i].bth.psn));
  }
  response.begun = true;
  response.psn += count;
  response.address += bytes;
  response.left -= bytes;
  return count;
}

}  // namespace

void queue(TransportContext& context, QueuePair& qp, const Response& response) {
  qp.recv.responses.push_back(response);
  context.scheduler().schedule(qp);
}

bool has_room(const QueuePair& qp) {
  return std::ranges::count_if(qp.recv.responses, takes_resources) < qp.attr.max_dest_rd_atomic;
}

bool make_room(QueuePair& qp) {
  auto& responses = qp.recv.responses;
  while (!has_room(qp)) {
    const auto oldest = std::ranges::find_if(responses, takes_resources);
    if (oldest == responses.end() || !oldest->is_repeat) return false;
    responses.erase(oldest);
  }
  return true;
}

void queue_again(TransportContext& context, QueuePair& qp, const Response& response) {
  auto& responses = qp.recv.responses;
  const Psn last = last_psn(qp, response);
  if (!wire::psn_before(last, qp.recv.expected)) return;
  bool is_repeat = true;
  std::erase_if(responses, [&](const Response& pending) {
    if (!takes_resources(pending) || wire::psn_before(last, pending.psn) ||
        wire::psn_before(last_psn(qp, pending), response.psn)) {
      return false;
    }
    is_repeat = is_repeat && pending.is_repeat;
    return true;
  });
  if (!has_room(qp)) return;
  const auto behind = std::ranges::find_if(
      responses, [&](const Response& pending) { return wire::psn_before(last, pending.psn); });
  responses.insert(behind, response)->is_repeat = is_repeat;
  context.scheduler().schedule(qp);
}

void answer(TransportContext& context, QueuePair& qp, Psn psn, uint8_t syndrome) {
  auto& responses = qp.recv.responses;
  const bool is_ack = syndrome == wire::ack_syndrome();
  uint32_t messages = 1;
  Instant held_until{};
  // IBTA vol 1, 9.7.5.1.2: an acknowledgement covers all earlier ones as well, so a waiting one is
  // replaced.
  const bool joins = !responses.empty() && responses.back().kind == Response::Kind::kAcknowledge;
  if (joins) {
    const Response& waiting = responses.back();
    messages += waiting.messages;
    if (wire::psn_before(psn, waiting.psn)) {  // that of a duplicate: the newer one covers it
      psn = waiting.psn;
      syndrome = waiting.syndrome;
    }
  }
  if (context.adversary() != nullptr && is_ack) [[unlikely]] {
    held_until =
        joins ? responses.back().held_until : context.adversary()->hold_acknowledgement(qp);
  }
  const bool waits =
      is_ack && (context.delays_acknowledgement(messages) || held_until > context.now());
  const bool is_full =
      joins && responses.size() == 1 && messages == context.config().ack_coalescing;
  if ((responses.empty() || is_full) && !waits) {
    responses.clear();
    return send_acknowledge(context, qp, psn, syndrome, qp.recv.msn);
  }
  if (!joins) {
    return queue(context, qp,
                 {.kind = Response::Kind::kAcknowledge,
                  .psn = psn,
                  .msn = qp.recv.msn,
                  .syndrome = syndrome,
                  .messages = messages,
                  .held_until = held_until});
  }
  Response& waiting = responses.back();
  waiting.psn = psn;
  waiting.msn = qp.recv.msn;
  waiting.syndrome = syndrome;
  waiting.messages = messages;
  waiting.held_until = held_until;
  context.scheduler().schedule(qp);  // unlike the acknowledgement, a NAK does not wait
}

void flush_held_ack(TransportContext& context, QueuePair& qp) {
  auto& responses = qp.recv.responses;
  if (responses.empty() || responses.front().kind != Response::Kind::kAcknowledge) return;
  const Response response = responses.front();
  responses.pop_front();
  send_acknowledge(context, qp, response.psn, response.syndrome, response.msn);
}

void refuse(TransportContext& context, QueuePair& qp, Psn psn, Verdict verdict) {
  // The client's process has died, and the daemon is about to detach the client. Until then, its
  // QPs send no responses either.
  if (verdict == Verdict::kReceiverGone) return;
  if (qp.recv.responses.empty()) return execute_refusal(context, qp, psn, verdict);
  qp.recv.refusing = true;
  queue(context, qp, {.kind = Response::Kind::kRefuse, .psn = psn, .verdict = verdict});
}

uint32_t transmit(TransportContext& context, QueuePair& qp) {
  RecvHalf& recv = qp.recv;
  uint32_t sent = 0;
  const uint32_t burst = congestion::packets_of_quantum(context, kBurst);
  while (sent < burst && !recv.responses.empty()) {
    Response& response = recv.responses.front();
    switch (response.kind) {
      case Response::Kind::kAcknowledge:
        if (is_held(context, recv)) return sent;
        if (is_dropped(context, recv)) break;
        send_acknowledge(context, qp, response.psn, response.syndrome, response.msn);
        ++sent;
        break;
      case Response::Kind::kAtomic:
        send_atomic_answer(context, qp, response);
        ++sent;
        break;
      case Response::Kind::kRefuse: {
        const Response refusal = response;
        execute_refusal(context, qp, refusal.psn, refusal.verdict);
        return sent + 1;
      }
      case Response::Kind::kRead: {
        const std::optional<uint32_t> frames = send_read_data(context, qp, response, burst - sent);
        if (!frames) return sent;
        sent += *frames;
        if (*frames == 0) {  // the memory or the process does not exist
          recv.responses.clear();
          return sent;
        }
        if (response.left != 0) continue;
        break;
      }
    }
    recv.responses.pop_front();
  }
  if (!recv.responses.empty()) context.scheduler().schedule(qp);
  return sent;
}

}  // namespace rocemu::engine::response_queue
