#include "emulator/engine/link/packet_run.h"

#include "wire/opcode.h"

namespace rocemu::engine {
namespace {

/// Returns the parsed packet that the frame carries; null if the frame was changed since it was
/// sent.
const wire::Packet* packet_in(const InFlight& frame) {
  return frame.check_icrc ? nullptr : frame.frame.packet();
}

/// Returns whether `packet` follows `before` in the same message to the same QP. All packets of a
/// message except the last have the payload size `full`. (An XRC target QP chooses its receive
/// queue for each packet, so its packets form no runs.)
bool follows(const wire::Packet& packet, const wire::Packet& before, size_t full) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  const wire::OpcodeInfo& info_before = *wire::find_opcode(before.bth.opcode);
  const bool is_connected =
      info.transport == wire::Transport::kRc || info.transport == wire::Transport::kUc;
  const size_t size = packet.payload.size();
  return is_connected && !info_before.is_last && before.payload.size() == full && !info.is_first &&
         info.operation == info_before.operation && info.transport == info_before.transport &&
         (info.is_last ? size != 0 && size <= full : size == full) &&
         packet.bth.psn == before.bth.psn + 1 && packet.bth.dest_qpn == before.bth.dest_qpn &&
         packet.bth.pkey == before.bth.pkey && packet.src_ip == before.src_ip &&
         packet.dst_ip == before.dst_ip;
}

}  // namespace

bool PacketRun::begin(const wire::Packet& first) {
  clear();
  if (first.payload.empty()) return false;
  payloads_[count_++] = first.payload;
  latest_ = &first;
  return true;
}

bool PacketRun::add(const wire::Packet& next) {
  if (count_ == kMaxPackets || !follows(next, *latest_, payloads_[0].size())) return false;
  payloads_[count_++] = next.payload;
  latest_ = &next;
  return true;
}

void PacketRun::begin(const InFlight& first, const Link& link, Instant now, size_t limit) {
  const wire::Packet* head = packet_in(first);
  if (head == nullptr || !begin(*head)) {
    if (first.frame.is_placed()) count_ = written_ = 1;  // a READ whose data is placed
    return;
  }
  for (const InFlight& frame : link) {
    const wire::Packet* packet = packet_in(frame);
    if (packet == nullptr || count_ == limit || frame.to != first.to || frame.arrives > now ||
        frame.frame.is_placed() != first.frame.is_placed() || !add(*packet)) {
      break;
    }
  }
  if (first.frame.is_placed()) written_ = count_;
}

void PacketRun::begin(std::span<const Arrival> arrivals) {
  const Arrival& first = arrivals.front();
  if (!first.packet || !begin(*first.packet)) return;
  for (const Arrival& next : arrivals.subspan(1)) {
    if (!next.packet || next.to != first.to || !add(*next.packet)) break;
  }
}

}  // namespace rocemu::engine
