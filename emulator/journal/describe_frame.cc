#include "emulator/journal/describe_frame.h"

#include <algorithm>
#include <vector>

#include "wire/aeth.h"
#include "wire/cm/cm_print.h"
#include "wire/cm/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/print.h"

namespace rocemu::journal {
namespace {

/// Returns the bytes of the frame, with zeros for the payload that the journal does not have.
std::vector<uint8_t> restored(const RecordedFrame& frame) {
  std::vector<uint8_t> bytes(frame.size);
  const size_t known = std::min(frame.head.size(), bytes.size());
  if (known > 0) std::memcpy(bytes.data(), frame.head.data(), known);
  return bytes;
}

/// Adds the PSN and its QP. The PSN of a response belongs to the requester, which receives it, and
/// that of a datagram to the sender.
void add_psn(const wire::Packet& packet, const wire::OpcodeInfo& info, Event& event) {
  const uint32_t psn = packet.bth.psn.value();
  if (info.transport == wire::Transport::kUd) {
    event.add("psn", FieldKind::kSendPsn, psn, packet.deth.src_qpn);
  } else if (info.is_response) {
    event.add("psn", FieldKind::kSendPsn, psn, packet.bth.dest_qpn);
  } else {
    event.add("psn", FieldKind::kRecvPsn, psn, packet.bth.dest_qpn);
  }
}

void add_packet(const wire::Packet& packet, Event& event) {
  using wire::ExtendedHeader;
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  event.add("from", wire::to_string(packet.src_ip)).add("to", wire::to_string(packet.dst_ip));
  event.add("opcode", wire::name(packet.bth.opcode));
  event.add("qp", FieldKind::kQp, packet.bth.dest_qpn);
  if (info == nullptr) return;
  add_psn(packet, *info, event);
  if (packet.bth.ack_req) event.add("ack_req", 1);
  if (packet.bth.solicited) event.add("solicited", 1);
  if (info->has(ExtendedHeader::kDeth)) event.add("src_qp", FieldKind::kQp, packet.deth.src_qpn);
  if (info->has(ExtendedHeader::kReth)) {
    event.add("address", FieldKind::kAddress, packet.reth.va)
        .add("rkey", FieldKind::kMrKey, packet.reth.rkey)
        .add("dma_length", packet.reth.dma_length);
  }
  if (info->has(ExtendedHeader::kAeth)) event.add("aeth", wire::to_string(packet.aeth));
  if (info->has_payload) event.add("bytes", packet.payload.size());
}

uint64_t nanoseconds(engine::Duration duration) {
  return static_cast<uint64_t>(duration.count());
}

/// Adds what the engine knew about the frame besides its bytes.
void add_marks(const engine::FrameMarks& marks, Event& event) {
  event.add("number", FieldKind::kName, marks.number);
  if (marks.made_up_with != 0) event.add("made_up_with", FieldKind::kName, marks.made_up_with);
  if (marks.copy != 0) event.add("copy", marks.copy);
  if (marks.lost) event.add("lost", 1);
  if (marks.held.count() != 0) event.add("held_ns", FieldKind::kName, nanoseconds(marks.held));
  if (marks.link_delay.count() != 0) {
    event.add("link_delay_ns", FieldKind::kName, nanoseconds(marks.link_delay));
  }
  for (const auto& [name, why] : engine::kResentNames) {
    if (why == marks.resend.why) event.add("resent", name);
  }
  if (marks.resend.why == engine::Resent::kNo) return;
  if (marks.resend.begins) event.add("begins", 1);
  if (marks.resend.waited.count() != 0) {
    event.add("waited_ns", nanoseconds(marks.resend.waited));
  }
}

bool add_cm_message(const wire::Packet& packet, Event& event) {
  if (packet.bth.dest_qpn != wire::kGsiQpn) return false;
  const auto mad = wire::parse_cm_mad(packet.payload);
  if (!mad) return false;
  event.what = "cm_message";
  event.add("message", wire::name(wire::attribute_of(mad->message)))
      .add("from", wire::to_string(packet.src_ip))
      .add("to", wire::to_string(packet.dst_ip));
  if (const auto* rejection = std::get_if<wire::CmRej>(&mad->message)) {
    event.add("reason", static_cast<uint64_t>(rejection->reason));
  }
  event.add_detail("text", wire::to_string(*mad));
  return true;
}

}  // namespace

void describe_frame(const RecordedFrame& frame, Frames wanted, Event& event) {
  // A frame that is longer than kWholeFrame cannot be a MAD.
  if (wanted == Frames::kConnectionManager && frame.size > kWholeFrame) return;
  const std::vector<uint8_t> bytes = restored(frame);
  const auto packet = wire::parse_frame(bytes);
  if (packet && add_cm_message(*packet, event)) return add_marks(frame.marks, event);
  if (wanted == Frames::kConnectionManager) return;
  event.what = "frame";
  if (frame.leaves_through) event.add("leaves_through", frame.leaves_through->value);
  event.add("size", frame.size);
  if (packet) {
    add_packet(*packet, event);
  } else {
    event.add("malformed", wire::name(packet.error()));
  }
  if (!frame.leaves_through) add_marks(frame.marks, event);
}

void describe_fault(const engine::FrameFault& fault, Event& event) {
  event.add("frame", FieldKind::kName, fault.number);
  for (const auto& [name, change] : engine::kFrameChangeNames) {
    if (engine::has(fault.changes, change)) event.add(name, 1);
  }
  if (fault.delay.count() != 0) {
    event.add("delay_ns", FieldKind::kName, nanoseconds(fault.delay));
  }
}

}  // namespace rocemu::journal
