#include "emulator/engine/transport/responder.h"

#include <algorithm>

#include "emulator/engine/faults/request_faults.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/remote_access.h"
#include "emulator/engine/transport/response_queue.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::responder {
namespace {

using abi::QpState;
using response_queue::answer;
using response_queue::refuse;
using wire::Operation;
using wire::Psn;

void not_ready(TransportContext& context, QueuePair& qp, Psn psn) {
  // IBTA vol 1, 9.7.5.2.8: the requester must send this PSN again after min_rnr_timer. The packets
  // that it has already sent after this PSN cause no further NAK.
  qp.recv.nak_outstanding = true;
  context.counters_of(qp).add(Counter::kRnrNaksSent);
  answer(context, qp, psn, wire::rnr_nak_syndrome(qp.attr.min_rnr_timer));
}

/// Answers a request that could not be executed. If the program has yet to provide the memory,
/// sends an RNR NAK ("temporarily unable", IBTA vol 1, 9.7.5.2.8), like a NIC with on-demand paging
/// that must wait for a page. All other verdicts are final.
void turn_away(TransportContext& context, QueuePair& qp, Psn psn, Verdict verdict) {
  if (verdict == Verdict::kMemoryNotReady) return not_ready(context, qp, psn);
  refuse(context, qp, psn, verdict);
}

void count_request(Counters& counters, Operation operation) {
  switch (operation) {
    case Operation::kWrite:
    case Operation::kAtomicWrite:
      return counters.add(Counter::kWriteRequests);
    case Operation::kReadRequest:
      return counters.add(Counter::kReadRequests);
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return counters.add(Counter::kAtomicRequests);
    default:
      return;
  }
}

// ---- The checks, in the specification's order ----

void repeat(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
            const wire::OpcodeInfo& info);

/// Returns whether the packet is the expected one (IBTA vol 1, 9.7.1). If not, answers a duplicate,
/// or sends a NAK for a gap.
bool check_psn(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
               const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const int32_t distance = wire::psn_distance(recv.expected, packet.bth.psn);
  if (distance == 0) return true;
  Counters& counters = context.counters_of(qp);
  if (distance < 0) {
    counters.add(Counter::kDuplicateRequests);
    repeat(context, qp, packet, info);
    return false;
  }
  counters.add(Counter::kOutOfSequence);
  // C9-114: the responder sends one NAK, and then nothing until the expected request arrives.
  if (!recv.nak_outstanding) {
    recv.nak_outstanding = true;
    counters.add(Counter::kSequenceNaksSent);
    answer(context, qp, recv.expected, wire::nak_syndrome(wire::NakCode::kPsnSequenceError));
  }
  return false;
}

/// Returns whether the packet may follow the previous one (IBTA vol 1, 9.7.4.1.2): First and Only
/// begin a message, Middle and Last continue a message of the same kind.
bool opcode_in_sequence(const RecvHalf& recv, const wire::OpcodeInfo& info) {
  if (recv.in_message != info.is_first) {
    return !recv.in_message || recv.operation == info.operation;
  }
  return false;
}

// ---- Execution ----

/// Answers a duplicate request (IBTA vol 1, 9.7.5.1.4 and C9-105). A SEND or WRITE is acknowledged
/// again, but not executed. A READ is executed again. An atomic is answered with the stored result,
/// and an ATOMIC WRITE or a FLUSH with a response without contents.
void repeat(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
            const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const KindTraits* request = find_request_traits(info.operation);
  switch (request == nullptr ? AnsweredBy::kAcknowledge : request->answer) {
    case AnsweredBy::kReadResponse: {
      Response response;
      // The region or the allowed operations have changed since the first request. No answer is
      // sent, so the requester runs out of retries.
      if (!operation_allowed(qp, info) ||
          remote_access::begin_read(context, qp, packet, response)) {
        return;
      }
      response.msn = recv.msn;
      return response_queue::queue_again(context, qp, response);
    }
    case AnsweredBy::kAtomicAcknowledge: {
      const auto kept = std::ranges::find(recv.atomic_answers, packet.bth.psn, &Response::psn);
      if (kept == recv.atomic_answers.end()) return;
      Response again = *kept;
      again.msn = recv.msn;  // 9.7.7.1: the number of messages that are complete now
      return response_queue::queue_again(context, qp, again);
    }
    case AnsweredBy::kEmptyReadResponse:
      return response_queue::queue_again(
          context, qp, {.kind = Response::Kind::kRead, .psn = packet.bth.psn, .msn = recv.msn});
    case AnsweredBy::kAcknowledge:
    case AnsweredBy::kNobody:
      return answer(context, qp,
                    psn_for_duplicate(recv, qp.attr.max_dest_rd_atomic, packet.bth.psn),
                    wire::ack_syndrome());
  }
}

void count_message(RecvHalf& recv) {
  recv.in_message = false;
  recv.received = 0;
  recv.msn = (recv.msn + 1) & wire::kPsnMask;
}

/// Handles a message that is complete, but that no program received, because the CQ overran (IBTA
/// vol 1, 9.9.3, class G). The message is not acknowledged. The QP fails together with its CQ, and
/// sends nothing more. An XRC target QP is not bound to a CQ and would continue, so it fails here.
void lose_message(TransportContext& context, QueuePair& qp, Psn psn) {
  if (qp.type == abi::QpType::kXrcRecv) refuse(context, qp, psn, Verdict::kReceiveQueueFailed);
}

/// Handles a packet of a SEND or WRITE.
void on_message_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                       const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const Psn psn = packet.bth.psn;
  const bool is_send = info.operation == Operation::kSend;
  // A SEND needs its receive WQE from the first packet on; a WRITE with immediate needs one for the
  // last packet.
  const bool takes_wqe = is_send ? info.is_first : info.has(wire::ExtendedHeader::kImmDt);
  if ((is_send || takes_wqe) && receive_queue::failed(context, qp)) {
    return refuse(context, qp, psn, Verdict::kReceiveQueueFailed);
  }
  if (takes_wqe && !receive_queue::available(context, qp)) {
    context.note(ReceiveMissing{qp.client, qp.device, qp.number, qp.srq,
                                QpNumber{qp.attr.dest_qp_num}, /*is_repeated=*/true});
    return not_ready(context, qp, psn);
  }
  if (info.is_first) recv.operation = info.operation;
  const bool was_in_message = recv.in_message;
  recv.in_message = true;
  // The WQE is taken before anything can fail, because its completion reports the error to the
  // application (IBTA vol 1, 9.9.3, class C).
  if (takes_wqe) receive_queue::take(context, qp);
  auto verdict =
      is_send ? receive_queue::scatter(context, qp, packet.payload, receive_queue::extent_of(info))
              : remote_access::write(context, qp, packet, info);
  if (!verdict && info.has(wire::ExtendedHeader::kIeth) &&
      !context.objects().mrs.invalidate(qp.memory_user(), packet.ieth.rkey)) {
    verdict = Verdict::kBadInvalidate;
  }
  if (verdict) {
    if (*verdict == Verdict::kReceiverGone || *verdict == Verdict::kMemoryNotReady) {
      recv.in_message = was_in_message;
    }
    return turn_away(context, qp, psn, *verdict);
  }
  recv.received += packet.payload.size();
  ++recv.expected;
  recv.nak_outstanding = false;
  report_established(context, qp);
  if (info.is_last) {
    if ((is_send || takes_wqe) && !receive_queue::complete(context, qp, packet, info)) {
      return lose_message(context, qp, psn);
    }
    count_message(recv);
  }
  if (packet.bth.ack_req) answer(context, qp, psn, wire::ack_syndrome());
}

/// Handles a READ, atomic, ATOMIC WRITE or FLUSH.
void on_query(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
              const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const Psn psn = packet.bth.psn;
  if (!response_queue::make_room(qp)) return refuse(context, qp, psn, Verdict::kInvalidRequest);
  Response response{.kind = Response::Kind::kRead, .psn = psn};
  const bool is_placed = context.run_at_hand().is_written();
  if (const auto verdict = remote_access::execute(context, qp, packet, info, response)) {
    return turn_away(context, qp, psn, *verdict);
  }
  response.is_placed = is_placed;
  recv.query_psns.push_back(psn);
  if (recv.query_psns.size() > qp.attr.max_dest_rd_atomic)
    recv.query_psns.erase(recv.query_psns.begin());
  recv.expected += psn_count(response.left, qp.mtu());
  recv.nak_outstanding = false;
  report_established(context, qp);
  count_message(recv);
  response.msn = recv.msn;
  if (response.kind == Response::Kind::kAtomic) {
    recv.atomic_answers.push_back(response);
    if (recv.atomic_answers.size() > qp.attr.max_dest_rd_atomic) recv.atomic_answers.pop_front();
  }
  response_queue::queue(context, qp, response);
}

/// Returns the verdict whose NAK has this syndrome; nothing if the NAK is not final.
std::optional<Verdict> verdict_for(uint8_t syndrome) {
  if (wire::aeth_kind(syndrome) != wire::AethKind::kNak) return std::nullopt;
  switch (static_cast<wire::NakCode>(wire::aeth_detail(syndrome))) {
    case wire::NakCode::kInvalidRequest:
      return Verdict::kInvalidRequest;
    case wire::NakCode::kRemoteAccessError:
      return Verdict::kRemoteAccess;
    case wire::NakCode::kRemoteOperationalError:
      return Verdict::kRemoteMemoryUnreachable;
    case wire::NakCode::kPsnSequenceError:
    case wire::NakCode::kInvalidRdRequest:
      break;
  }
  return std::nullopt;
}

/// Answers a request whose execution a rule prevents.
void refuse_by_rule(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                    const faults::RequestFault& fault) {
  if (!fault.syndrome) return;
  if (const auto verdict = verdict_for(*fault.syndrome)) {
    return refuse(context, qp, packet.bth.psn, *verdict);
  }
  // IBTA vol 1, 9.7.5.2.8 and C9-114: nothing more is sent until the expected request arrives
  // again.
  const bool is_rnr = wire::aeth_kind(*fault.syndrome) == wire::AethKind::kRnrNak;
  qp.recv.nak_outstanding = true;
  context.counters_of(qp).add(is_rnr ? Counter::kRnrNaksSent : Counter::kSequenceNaksSent);
  answer(context, qp, packet.bth.psn, *fault.syndrome);
}

/// Selects the XRC SRQ of a request (annex A14): each request names the SRQ whose WQEs, PD and CQ
/// it uses. Returns false if the SRQ does not belong to the QP's domain, or differs from that of
/// the earlier packets of the message.
bool select_srq(const TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info) {
  const SharedReceiveQueue* srq = context.objects().srqs.find(SrqId{packet.xrceth.srqn});
  if (srq == nullptr || srq->xrcd != qp.xrcd) return false;
  if (!info.is_first && qp.srq != srq->id) return false;
  qp.srq = srq->id;
  qp.pd = srq->pd;
  return true;
}

}  // namespace

Psn psn_for_duplicate(const RecvHalf& recv, uint32_t max_queries, Psn psn) {
  // Requests are ordered by their distance to the expected PSN, since a query may be so old that
  // its PSN seems to be in the future.
  const int32_t age = wire::psn_distance(psn, recv.expected);
  const auto next = std::ranges::find_if(recv.query_psns, [&](Psn query) {
    const int32_t query_age = wire::psn_distance(query, recv.expected);
    return query_age > 0 && query_age < age;
  });
  if (next == recv.query_psns.end()) return recv.expected - 1;
  const bool may_follow_forgotten_one =
      next == recv.query_psns.begin() && recv.query_psns.size() == max_queries;
  return may_follow_forgotten_one ? psn : *next - 1;
}

bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload) {
  if (!info.has_payload) return true;
  if (!info.is_last) return payload == qp.mtu();
  if (!info.is_first && payload == 0) return false;
  return payload <= qp.mtu();
}

bool operation_allowed(const QueuePair& qp, const wire::OpcodeInfo& info) {
  const KindTraits* request = find_request_traits(info.operation);
  return request != nullptr && (request->access & ~qp.attr.qp_access_flags) == 0;
}

void report_established(TransportContext& context, QueuePair& qp) {
  // ibv_get_async_event(3), IBV_EVENT_COMM_EST: the event is raised for the first message on a QP
  // that is still in RTR.
  if (qp.state != QpState::kRtr || qp.recv.established_reported) return;
  qp.recv.established_reported = true;
  context.raise(qp, abi::EventType::kCommEst);
}

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info) {
  if (qp.recv.refusing) return;
  if (!check_psn(context, qp, packet, info)) return;
  if (context.faults().watches(faults::Where::kRequest)) [[unlikely]] {
    if (const auto fault = faults::request_fault(context.faults(), qp, packet, info)) {
      return refuse_by_rule(context, qp, packet, *fault);
    }
  }
  if (qp.type == abi::QpType::kXrcRecv && !select_srq(context, qp, packet, info)) {
    return refuse(context, qp, packet.bth.psn, Verdict::kInvalidRequest);
  }
  if (!opcode_in_sequence(qp.recv, info) || !operation_allowed(qp, info) ||
      !length_valid(qp, info, packet.payload.size())) {
    return refuse(context, qp, packet.bth.psn, Verdict::kInvalidRequest);
  }
  if (info.is_first) count_request(context.counters_of(qp), info.operation);
  if (info.operation == Operation::kSend || info.operation == Operation::kWrite) {
    on_message_packet(context, qp, packet, info);
  } else {
    on_query(context, qp, packet, info);
  }
}

}  // namespace rocemu::engine::responder
