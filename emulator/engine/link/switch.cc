#include "emulator/engine/link/switch.h"

#include <algorithm>
#include <utility>

#include "wire/cm/mad.h"
#include "wire/packet.h"

namespace rocemu::engine {

bool Switch::forward_to_shard(Departure& departure) {
  if (!departure.to) return false;
  QpNumber qp{};  // of what cannot be parsed the device will say so
  if (const wire::Packet* packet = departure.frame.packet()) {
    qp.value = packet->bth.dest_qpn;
  } else if (const auto parsed = wire::parse_frame(departure.frame.bytes())) {
    qp.value = parsed->bth.dest_qpn;
  }
  if (config_.shard.has(*departure.to, qp)) return false;
  step_.emit(ForwardFrame{*departure.to, qp.value == wire::kGsiQpn, departure.check_icrc,
                          std::move(departure.frame)});
  return true;
}

/// The sender to a group does not know which shards have members.
bool Switch::concerns_nobody(const ForwardedFrame& forwarded) const {
  if (forwarded.packet != nullptr) return false;  // these have one receiver
  const auto packet = wire::parse_frame(forwarded.bytes);
  return packet && packet->dst_ip.is_multicast() &&
         multicast_.members(forwarded.to, packet->dst_ip).empty();
}

void Switch::receive(const ForwardedFrames& input) {
  for (const ForwardedFrame& forwarded : input.frames) {
    if (concerns_nobody(forwarded)) continue;
    Frame frame = frames_.allocate();
    if (const wire::Packet* packet = forwarded.packet) {
      frame.set_packet(*packet, packet->payload.size());
      std::ranges::copy(packet->payload,
                        frame.storage().subspan(wire::payload_offset(*packet)).begin());
    } else {
      std::ranges::copy(forwarded.bytes, frame.storage().begin());
      frame.set_size(forwarded.bytes.size());
    }
    link_.push({step_.now() + config_.link_latency, forwarded.to, std::move(frame),
                forwarded.check_icrc, false});
  }
}

}  // namespace rocemu::engine
