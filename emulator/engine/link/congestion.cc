#include "emulator/engine/link/congestion.h"

namespace rocemu::engine::congestion {
namespace {

/// RFC 3168, 5: both bits of the field are 1, "congestion experienced".
constexpr uint8_t kMark = 0x3;

}  // namespace

void on_packet(Fabric& fabric, QueuePair& qp, const wire::Packet& packet) {
  if ((packet.traffic_class & kMark) != kMark) return;
  Counters& counters = fabric.device_of(qp).counters;
  counters.add(Counter::kCongestionMarks);
  if (fabric.now() < qp.next_cnp) return;
  qp.next_cnp = fabric.now() + kNotificationInterval;
  counters.add(Counter::kCnpsSent);
  wire::Packet notification;
  notification.bth.opcode = wire::Opcode::kCnp;
  notification.bth.becn = true;
  fabric.send(qp, notification, 0, fabric.frames().allocate());
}

}  // namespace rocemu::engine::congestion
