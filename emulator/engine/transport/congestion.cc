#include "emulator/engine/transport/congestion.h"

namespace rocemu::engine::congestion {
namespace {

/// Both bits of the ECN field are 1: "congestion experienced" (RFC 3168, 5).
constexpr uint8_t kMark = 0x3;

void send_notification(TransportContext& context, QueuePair& qp) {
  context.counters_of(qp).add(Counter::kCnpsSent);
  wire::Packet notification;
  notification.bth.opcode = wire::Opcode::kCnp;
  notification.bth.becn = true;
  context.transmitter().send(qp, notification, 0, context.transmitter().allocate());
}

CongestionState& state_of(QueuePair& qp) {
  if (qp.congestion == nullptr) qp.congestion = std::make_unique<CongestionState>();
  return *qp.congestion;
}

/// Returns whether to send a CNP. On a simulated network, unmarked packets count as well, since a
/// CNP for earlier marks is due at the end of an interval.
bool should_notify(TransportContext& context, QueuePair& qp, bool is_marked) {
  if (const NetworkPlan* plan = context.config().network.get()) {
    const auto notification = plan->notification();
    if (!notification || (!is_marked && qp.congestion == nullptr)) return false;
    return state_of(qp).notifications.should_send(is_marked, context.now(), notification->interval);
  }
  if (!is_marked || context.now() < qp.next_cnp) return false;
  qp.next_cnp = context.now() + kNotificationInterval;
  return true;
}

}  // namespace

void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet) {
  const bool is_marked = (packet.traffic_class & kMark) == kMark;
  if (is_marked) context.counters_of(qp).add(Counter::kCongestionMarks);
  if (should_notify(context, qp, is_marked)) send_notification(context, qp);
}

void on_notification(TransportContext& context, QueuePair& qp) {
  context.counters_of(qp).add(Counter::kCnpsReceived);
  if (!context.crossing().is_there() || !context.config().network->notification()) return;
  CongestionState& state = state_of(qp);
  if (state.rate == nullptr)
    state.rate = context.crossing().make_rate_controller(qp.device, context.now());
  state.rate->on_cnp(context.now());
  context.counters_of(qp).add(Counter::kCnpsHandled);
}

bool may_transmit(TransportContext& context, QueuePair& qp) {
  NetworkCrossing& crossing = context.crossing();
  if (!crossing.is_there()) [[likely]]
    return true;
  if (qp.congestion && qp.congestion->rate) {
    qp.congestion->rate->advance(context.now());
    const Instant ready = qp.congestion->pacer.ready_at();
    if (ready > context.now()) {
      context.scheduler().set_timer(qp, TimerKind::kPace, ready);
      return false;
    }
  }
  if (crossing.can_inject(qp.device, static_cast<uint8_t>(qp.path.traffic_class >> 2))) return true;
  crossing.wait_for_room(qp.device, qp.number);
  return false;
}

uint32_t packets_of_quantum(const TransportContext& context, uint32_t burst) {
  return context.crossing().is_there() ? 1 : burst;
}

}  // namespace rocemu::engine::congestion
