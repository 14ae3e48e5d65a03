// The effects of each UC or UD frame that arrives, in the model.
#include <algorithm>

#include "tests/property/world.h"
#include "wire/ethernet.h"
#include "wire/packet.h"

namespace rocemu::property {
namespace {

Half* receiver_of(Side& side, uint32_t qpn) {
  const auto half = std::ranges::find(side.halves, qpn, &Half::recv_qpn);
  return half != side.halves.end() && !is_reliable(half->kind) ? &*half : nullptr;
}

}  // namespace

/// Records that a frame was sent. Its PSN is that of the next packet of the posted messages.
void World::on_sent(uint32_t side, std::span<const uint8_t> frame) {
  const auto packet = wire::parse_frame(frame);
  Half* receiver = receiver_of(sides_[1 - side], packet->bth.dest_qpn);
  if (receiver == nullptr) return;
  const auto connection = receiver - sides_[1 - side].halves.data();
  auto& to_send = sides_[side].halves[static_cast<size_t>(connection)].to_send;
  if (to_send.empty()) return fail("a frame of UC or UD for which nothing was posted");
  receiver->by_psn[packet->bth.psn.value()] = std::move(to_send.front());
  to_send.pop_front();
}

void World::on_arrival(uint32_t side, std::span<const uint8_t> frame) {
  const auto packet = wire::parse_frame(frame);
  Half* half = receiver_of(sides_[side], packet->bth.dest_qpn);
  if (half == nullptr || half->recv_failed) return;
  const uint32_t psn = packet->bth.psn.value();
  if (half->kind == Kind::kUc) return on_connection_packet(sides_[side], *half, psn);
  on_datagram(sides_[side], *half, half->by_psn.at(psn).message, frame);
}

// IBTA vol 1, 9.8.2.2: a packet out of sequence ends the message in progress; the first packet of
// the next message starts a new sequence.
void World::on_connection_packet(Side& side, Half& half, uint32_t psn) {
  const auto& [message, number, last] = half.by_psn.at(psn);
  const bool begins = number == 0;
  const bool goes_on = half.in_message && psn == half.expected_psn;
  half.in_message = begins || goes_on;
  half.expected_psn = (psn + 1) & 0xffffff;
  if (!half.in_message) return;

  const bool is_send = message.remote == 0;
  const bool has_imm = message.op.act != Act::kSend && message.op.act != Act::kTooLong;
  auto& posted = half.receives->posted;
  const bool needs_receive = is_send ? begins : last && message.op.act == Act::kWriteImm;
  if ((needs_receive && posted.empty()) || message.op.act == Act::kBadWrite ||
      message.op.act == Act::kForeignWrite) {
    half.in_message = false;
    return;
  }
  const auto all = std::span(message.payload);
  const auto payload = all.subspan(std::min<size_t>(number * kMtu, all.size()));
  const auto piece = payload.first(std::min<size_t>(payload.size(), kMtu));
  const size_t end = number * kMtu + piece.size();
  // 9.9.3, class D: the next message uses the receive
  if (is_send && end > posted.front().length) {
    half.in_message = false;
    return;
  }
  side.image.set((is_send ? posted.front().address : message.remote) + number * kMtu, piece);
  if (!last) return;
  half.in_message = false;
  if (!is_send && message.op.act != Act::kWriteImm) return;
  half.due.push_back({posted.front().address, static_cast<uint32_t>(all.size()),
                      has_imm ? std::optional(message.imm) : std::nullopt});
}

// Annex A17.4.5.2: 20 undefined bytes, then the IPv4 header, then the message.
void World::on_datagram(Side& side, Half& half, const Message& message,
                        std::span<const uint8_t> frame) {
  constexpr size_t kIpv4 = 20;
  const auto& posted = half.receives->posted;
  if (posted.empty()) return;
  const Receive& receive = posted.front();
  const auto size = static_cast<uint32_t>(kGrh + message.payload.size());
  if (size > receive.length) return;  // 9.9.3, class D
  side.image.set(receive.address + kGrh - kIpv4, frame.subspan(wire::EthernetHeader::kSize, kIpv4));
  side.image.set(receive.address + kGrh, message.payload);
  half.due.push_back({receive.address, size,
                      message.op.act == Act::kSendImm ? std::optional(message.imm) : std::nullopt});
}

}  // namespace rocemu::property
