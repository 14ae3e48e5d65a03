#include "emulator/timeline/reading/capture_repeats.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/engine/cm/connection.h"
#include "wire/cm/cm_print.h"
#include "wire/cm/mad.h"
#include "wire/opcode.h"
#include "wire/print.h"
#include "wire/psn.h"

namespace rocemu::timeline {
namespace {

/// The size from which a gap in the PSNs does not count as lost requests: the capture began later,
/// or the PSNs begin again.
constexpr int64_t kMaxGap = 4096;

/// Returns whether the READ `rest` requests the last part of what the READ `whole` requested. A
/// requester sends such a READ if only the first responses to `whole` have arrived.
bool is_rest(const wire::Reth& rest, const wire::Reth& whole) {
  return rest.rkey == whole.rkey && rest.va > whole.va &&
         rest.va + rest.dma_length == whole.va + whole.dma_length;
}

}  // namespace

CaptureRepeats::Position CaptureRepeats::position_of(const Requests& requests, wire::Psn psn) {
  if (!requests.newest) return psn.value();
  const auto newest = static_cast<uint32_t>(*requests.newest & wire::kPsnMask);
  return *requests.newest + wire::psn_distance(wire::Psn(newest), psn);
}

void CaptureRepeats::look_at(const wire::Packet& packet, Happening& frame) {
  if (packet.bth.dest_qpn == wire::kGsiQpn) {
    if (const auto mad = wire::parse_cm_mad(packet.payload)) look_at_mad(packet, *mad, frame);
    return;
  }
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  const bool is_reliable = info != nullptr && (info->transport == wire::Transport::kRc ||
                                               info->transport == wire::Transport::kXrc);
  if (!is_reliable) return;
  if (info->is_response) {
    look_at_response(packet, info->has(wire::ExtendedHeader::kAeth), frame);
  } else {
    look_at_request(packet, info->operation == wire::Operation::kReadRequest, frame);
  }
}

void CaptureRepeats::look_at_request(const wire::Packet& packet, bool is_read, Happening& frame) {
  Requests& requests = requests_[{frame.lane, frame.to}];
  const Position psn = position_of(requests, packet.bth.psn);
  const bool asks_for_rest = is_read && requests.read && is_rest(packet.reth, *requests.read);
  const bool is_new = !requests.newest || (psn > *requests.newest && !asks_for_rest);
  if (is_new) {
    // PSNs between two requests are missing in the capture, unless the first request is a READ. A
    // READ uses a PSN for each packet of its response, and so the number of PSNs that it uses is
    // unknown.
    if (requests.newest && !requests.read && psn - *requests.newest < kMaxGap) {
      for (Position gap = *requests.newest + 1; gap < psn; ++gap) requests.missing.insert(gap);
    }
    requests.newest = psn;
    requests.read = is_read ? std::optional(packet.reth) : std::nullopt;
  } else if (requests.missing.erase(psn) != 0) {
    frame.reason =
        "arrived after later requests: it was overtaken, or is a retransmission of a "
        "frame that the capture lacks";
  } else {
    frame.tone = Tone::kAgain;
    frame.topic = "retransmission";
    frame.reason = reason_for(requests, psn, frame.at);
  }
  if (requests.nak && requests.nak->at == psn) requests.nak.reset();
  requests.sent.insert_or_assign(psn, frame.at);
}

std::string CaptureRepeats::reason_for(const Requests& requests, Position psn,
                                       engine::Instant now) {
  if (const auto& nak = requests.nak; nak && nak->at == psn) {
    if (nak->kind == wire::AethKind::kNak) return "retransmission after NAK PSN sequence error";
    if (now - nak->when >= nak->timer)
      return "retransmission after RNR NAK, timer " + duration_text(nak->timer);
  }
  const auto sent = requests.sent.find(psn);
  if (sent != requests.sent.end() && requests.ack_timeout) {
    // The timer restarts at each acknowledgement. It expires between one and four times the ACK
    // timeout (IBTA vol 1, 9.7.6.1.3).
    const engine::Duration waited = now - std::max(sent->second, requests.acknowledged_at);
    if (waited >= *requests.ack_timeout && waited <= 4 * *requests.ack_timeout) {
      return fmt::format("retransmission: no ACK for {}, and the ACK timeout is {}",
                         duration_text(waited), duration_text(*requests.ack_timeout));
    }
  }
  return "again (copy or retransmission)";
}

void CaptureRepeats::look_at_response(const wire::Packet& packet, bool has_aeth,
                                      const Happening& frame) {
  const auto found = requests_.find({frame.to, frame.lane});
  if (found == requests_.end()) return;
  Requests& requests = found->second;
  const Position psn = position_of(requests, packet.bth.psn);
  const uint8_t syndrome = packet.aeth.syndrome;
  const auto kind = has_aeth ? wire::aeth_kind(syndrome) : wire::AethKind::kAck;
  if (kind == wire::AethKind::kAck) {
    requests.nak.reset();
    requests.newest = std::max(*requests.newest, psn);  // a READ's PSNs are those of its responses
    requests.sent.erase(requests.sent.begin(), requests.sent.upper_bound(psn));
    requests.acknowledged_at = frame.at;
    return;
  }
  if (kind == wire::AethKind::kRnrNak) {
    const auto timer = engine::Duration(wire::kRnrTimerNs[wire::aeth_detail(syndrome)]);
    requests.nak = {kind, psn, frame.at, timer};
  } else if (syndrome == wire::nak_syndrome(wire::NakCode::kPsnSequenceError) && !requests.nak) {
    requests.nak = {kind, psn, frame.at, {}};  // after an RNR NAK: the request after it
  }
}

void CaptureRepeats::look_at_mad(const wire::Packet& packet, const wire::CmMad& mad,
                                 Happening& frame) {
  const std::string from = wire::to_string(packet.src_ip), to = wire::to_string(packet.dst_ip);
  const bool is_new = mads_
                          .insert(fmt::format("{} {} {} {}", from, to, mad.transaction_id,
                                              wire::name(wire::attribute_of(mad.message))))
                          .second;
  if (!is_new) {
    frame.tone = Tone::kAgain;
    frame.reason = "the same message again (copy or retransmission)" +
                   (frame.reason.empty() ? "" : "; " + frame.reason);
  }
  if (const auto* req = std::get_if<wire::CmReq>(&mad.message)) {
    ack_timeouts_[{from, req->local_comm_id}] = req->primary.local_ack_timeout;
    return;
  }
  const auto* rep = std::get_if<wire::CmRep>(&mad.message);
  if (rep == nullptr) return;
  const auto code = ack_timeouts_.find({to, rep->remote_comm_id});
  if (code == ack_timeouts_.end()) return;
  // The REQ contains the ACK timeout of the passive side (IBTA vol 1, 12.7.34). The active side's
  // is computed from two packet lifetimes and the delay in the REP, as in Linux.
  using engine::cm::ack_timeout_code, engine::cm::cm_time, engine::cm::life_time_of;
  requests_[{frame.lane, frame.to}].ack_timeout = cm_time(code->second);
  requests_[{frame.to, frame.lane}].ack_timeout =
      cm_time(ack_timeout_code(life_time_of(code->second), rep->target_ack_delay));
}

}  // namespace rocemu::timeline
