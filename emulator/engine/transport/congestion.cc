#include "emulator/engine/transport/congestion.h"

namespace rocemu::engine::congestion {
namespace {

/// RFC 3168, 5: both bits of the field are 1, "congestion experienced".
constexpr uint8_t kMark = 0x3;

}  // namespace

void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet) {
  if ((packet.traffic_class & kMark) != kMark) return;
  Counters& counters = context.counters_of(qp);
  counters.add(Counter::kCongestionMarks);
  if (context.now() < qp.next_cnp) return;
  qp.next_cnp = context.now() + kNotificationInterval;
  counters.add(Counter::kCnpsSent);
  wire::Packet notification;
  notification.bth.opcode = wire::Opcode::kCnp;
  notification.bth.becn = true;
  context.transmitter().send(qp, notification, 0, context.transmitter().allocate());
}

}  // namespace rocemu::engine::congestion
