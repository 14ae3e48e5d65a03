#include "emulator/timeline/reading/frame_follower.h"

#include <fmt/format.h>

#include "wire/aeth.h"
#include "wire/cm/cm_messages.h"
#include "wire/cm/cm_print.h"
#include "wire/cm/mad.h"
#include "wire/opcode.h"
#include "wire/print.h"
#include "wire/psn.h"

namespace rocemu::timeline {
namespace {

using wire::Psn;

std::string qp_text(uint32_t qpn) {
  return fmt::format("QP {:#x}", qpn);
}

/// Returns the opcode's name without the transport. The lane's heading already shows the transport.
std::string name_without_transport(const wire::OpcodeInfo& info) {
  const size_t space = info.name.find(' ');
  return std::string(space == std::string_view::npos ? info.name : info.name.substr(space + 1));
}

std::string psn_text(std::optional<int32_t> relative, uint32_t psn) {
  return relative ? fmt::format("psn {:+} ({})", *relative, psn) : fmt::format("psn {}", psn);
}

/// Returns the distance of a PSN from the connection's first PSN. A negative distance is possible
/// only if the PSN is shortly before the first PSN. All other distances are positive, since a long
/// connection uses the PSNs up to there.
std::optional<int32_t> relative_to(std::optional<uint32_t> start, uint32_t psn) {
  constexpr int32_t kLittle = 1 << 16;
  if (!start) return std::nullopt;
  const int32_t distance = wire::psn_distance(Psn(*start), Psn(psn));
  return distance < 0 && distance >= -kLittle ? distance
                                              : static_cast<int32_t>((Psn(psn) - *start).value());
}

std::string nak_text(uint8_t syndrome) {
  using wire::AethKind, wire::NakCode;
  const uint8_t detail = wire::aeth_detail(syndrome);
  if (wire::aeth_kind(syndrome) == AethKind::kRnrNak)
    return "RNR NAK, timer " + duration_text(engine::Duration(wire::kRnrTimerNs[detail]));
  if (wire::aeth_kind(syndrome) == AethKind::kAck) return "ACK";
  std::string text = wire::to_string(wire::Aeth{.syndrome = syndrome});
  return text.substr(0, text.find(" msn="));
}

}  // namespace

void FrameFollower::set_peer(const QpKey& key, const QpKey& peer) {
  qps_[key].peer = peer;
  Qp& other = qps_[peer];
  if (!other.peer) other.peer = key;
}

std::string FrameFollower::place_of(const wire::IpAddress& address) const {
  std::string text = wire::to_string(address);
  const auto found = devices_.find(text);
  return found == devices_.end() ? text : found->second;
}

uint32_t FrameFollower::lane_of(const QpKey& key) {
  Qp& qp = qps_[key];
  if (qp.lane == kNoLane) {
    qp.lane = static_cast<uint32_t>(timeline_.lanes.size());
    timeline_.lanes.push_back(
        {.process = {}, .pid = 0, .device = key.first, .type = {}, .qpn = key.second});
  }
  return qp.lane;
}

/// Returns the QPN of the sender. A connection's frame does not contain this number: the sender is
/// the QP whose peer is the receiver.
std::optional<uint32_t> FrameFollower::sender_qpn(const wire::Packet& packet, const QpKey& to,
                                                  const std::string& from) {
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  if (info != nullptr && info->has(wire::ExtendedHeader::kDeth)) return packet.deth.src_qpn;
  if (const auto found = qps_.find(to); found != qps_.end() && found->second.peer)
    return found->second.peer->second;
  for (const auto& [key, qp] : qps_) {
    if (key.first == from && qp.peer == to) return key.second;
  }
  return std::nullopt;
}

Happening& FrameFollower::add(engine::Instant at, const wire::Packet& packet,
                              std::vector<uint8_t> bytes, uint32_t size) {
  Happening& happening = timeline_.happenings.emplace_back();
  happening.at = at;
  happening.kind = Kind::kFrame;
  happening.bytes = std::move(bytes);
  happening.size = size;
  const std::string from = place_of(packet.src_ip), to = place_of(packet.dst_ip);
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  happening.details = {{"frame", wire::to_string(packet)}};
  if (add_cm(packet, from, to, happening)) return happening;

  const QpKey receiver_key{to, packet.bth.dest_qpn};
  happening.to = lane_of(receiver_key);
  const auto qpn = sender_qpn(packet, receiver_key, from);
  const QpKey sender_key{from, qpn.value_or(0)};
  happening.lane = lane_of(sender_key);
  Qp& sender = qps_[sender_key];
  Qp& receiver = qps_[receiver_key];
  happening.text = info == nullptr
                       ? fmt::format("opcode {:#x}", static_cast<uint32_t>(packet.bth.opcode))
                       : name_without_transport(*info);
  if (info == nullptr || info->transport == wire::Transport::kCnp) return happening;
  if (timeline_.lanes[happening.to].type.empty())
    timeline_.lanes[happening.to].type = info->name.substr(0, info->name.find(' '));
  if (info->is_response) {
    add_response(packet, receiver, happening);
  } else {
    add_request(packet, sender, receiver, happening);
  }
  if (info->has_payload && !packet.payload.empty())
    happening.text += fmt::format(", {} B", packet.payload.size());
  return happening;
}

void FrameFollower::add_request(const wire::Packet& packet, Qp& sender, Qp& receiver,
                                Happening& happening) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  const uint32_t psn = packet.bth.psn.value();
  happening.is_request = true;
  if (!sender.send_start) sender.send_start = receiver.receive_start.value_or(psn);
  happening.psn = relative_to(sender.send_start, psn);
  happening.text += " " + psn_text(happening.psn, psn);
  if (info.operation == wire::Operation::kReadRequest) {
    happening.text += fmt::format(", asks for {} B", packet.reth.dma_length);
  }
}

void FrameFollower::add_response(const wire::Packet& packet, Qp& requester, Happening& happening) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  const uint32_t psn = packet.bth.psn.value();
  if (!requester.send_start) requester.send_start = psn;
  happening.psn = relative_to(requester.send_start, psn);
  const bool has_aeth = info.has(wire::ExtendedHeader::kAeth);
  const auto kind = has_aeth ? wire::aeth_kind(packet.aeth.syndrome) : wire::AethKind::kAck;
  if (info.operation == wire::Operation::kAck) happening.text = nak_text(packet.aeth.syndrome);
  happening.text += " " + psn_text(happening.psn, psn);
  if (kind == wire::AethKind::kAck) return;
  happening.tone = Tone::kAgain;
  happening.topic = nak_text(packet.aeth.syndrome);
  if (kind == wire::AethKind::kRnrNak) {
    happening.topic = "RNR NAK";
    happening.reason = "not ready for this message: the requester must wait and send it again";
  } else if (packet.aeth.syndrome == wire::nak_syndrome(wire::NakCode::kPsnSequenceError)) {
    happening.reason =
        "the responder expects " + psn_text(happening.psn, psn) + ": the requester must go back";
  } else {
    happening.tone = Tone::kError;
    happening.reason = "the responder refuses the request for good: the requester's QP fails";
  }
}

/// Returns the lane of the QP to which a communication ID belongs; if the QP is unknown, the lane
/// of the device's connection manager.
uint32_t FrameFollower::cm_lane(const std::string& device, uint32_t comm_id) {
  const auto found = comm_qpns_.find({device, comm_id});
  return lane_of({device, found == comm_qpns_.end() ? wire::kGsiQpn : found->second});
}

bool FrameFollower::add_cm(const wire::Packet& packet, const std::string& from,
                           const std::string& to, Happening& happening) {
  if (packet.bth.dest_qpn != wire::kGsiQpn) return false;
  const auto mad = wire::parse_cm_mad(packet.payload);
  if (!mad) return false;
  happening.kind = Kind::kCm;
  happening.text = wire::name(wire::attribute_of(mad->message));
  happening.topic = "CM " + happening.text;
  happening.details.push_back({"message", wire::to_string(*mad)});
  uint32_t local = 0, remote = 0;
  std::visit(
      [&]<class Message>(const Message& message) {
        if constexpr (requires { message.local_comm_id; }) local = message.local_comm_id;
        if constexpr (requires { message.remote_comm_id; }) remote = message.remote_comm_id;
        if constexpr (requires { message.request_id; }) local = remote = message.request_id;
      },
      mad->message);
  // The starting PSN in a REQ or REP is the first PSN that the recipient of that REQ or REP sends
  // (IBTA vol 1, 12.7.31).
  if (const auto* req = std::get_if<wire::CmReq>(&mad->message)) {
    comm_qpns_[{from, local}] = req->local_qpn;
    set_receive_psn({from, req->local_qpn}, req->starting_psn.value());
    happening.text +=
        fmt::format(", {}, expects psn {}", qp_text(req->local_qpn), req->starting_psn.value());
  } else if (const auto* rep = std::get_if<wire::CmRep>(&mad->message)) {
    comm_qpns_[{from, local}] = rep->local_qpn;
    set_receive_psn({from, rep->local_qpn}, rep->starting_psn.value());
    for (const size_t request : requests_[{from, remote}])
      timeline_.happenings[request].to = lane_of({from, rep->local_qpn});
    requests_.erase({from, remote});
    if (const auto peer = comm_qpns_.find({to, remote}); peer != comm_qpns_.end())
      set_peer({from, rep->local_qpn}, {to, peer->second});
    happening.text +=
        fmt::format(", {}, expects psn {}", qp_text(rep->local_qpn), rep->starting_psn.value());
  } else if (const auto* rej = std::get_if<wire::CmRej>(&mad->message)) {
    happening.tone = Tone::kError;
    happening.reason = "rejected: " + std::string(wire::reject_reason_name(rej->reason)) +
                       fmt::format(" ({})", rej->reason);
    happening.topic = "REJ " + std::string(wire::reject_reason_name(rej->reason));
  }
  happening.lane = cm_lane(from, local);
  happening.to = cm_lane(to, remote);
  if (std::holds_alternative<wire::CmReq>(mad->message))
    requests_[{to, local}].push_back(timeline_.happenings.size() - 1);
  return true;
}

}  // namespace rocemu::timeline
