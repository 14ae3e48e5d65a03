#include "emulator/network/network_model.h"

#include <algorithm>
#include <cmath>

#include "emulator/network/network_deliveries.h"

namespace rocemu::network {
namespace {

constexpr uint32_t kPlaceBits = 29;  // of NetworkEvent::order; the bits above are the kind
constexpr uint8_t kEctMask = 3;

uint64_t picoseconds(Instant instant) {
  return engine::nanoseconds_since_start(instant) * 1000;
}

/// Returns the time rounded up to the next nanosecond.
Instant rounded_up(uint64_t time_ps) {
  return Instant(Duration(static_cast<int64_t>((time_ps + 999) / 1000)));
}

/// Applies the last step of MurmurHash3, by which every bit of the hash affects all other bits.
uint32_t mixed(uint32_t hash) {
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

}  // namespace

Shares::Shares(const PriorityParameters& parameters, uint32_t largest_frame_bytes)
    : strict(parameters.strict) {
  // The quantum of the smallest share is one frame, so that each turn of a queue sends at least
  // one.
  const uint32_t least = std::max(1u, *std::ranges::min_element(parameters.weights));
  for (size_t i = 0; i < kPriorities; ++i) {
    quantum_bytes[i] = uint64_t{largest_frame_bytes} * std::max(1u, parameters.weights[i]) / least;
  }
}

Network::Model::Model(const Topology& topology, uint64_t seed)
    : topology_(topology),
      shares_(topology.priorities, topology.largest_frame_bytes),
      port_infos_(ports_of(topology_)),
      link_ports_(topology.links.size()),
      link_is_wanted_up_(topology.links.size(), true),
      link_is_up_(topology.links.size(), true),
      routes_(topology_, port_infos_) {
  ports_.resize(port_infos_.size());
  counters_.resize(ports_.size() * kPriorities);
  const auto lossless_count = static_cast<uint64_t>(std::popcount(topology_.priorities.lossless));
  std::vector<uint64_t> reserved(topology_.switches.size(), 0);
  engine::Random seeds(seed);
  for (PortId i = 0; i < ports_.size(); ++i) {
    PortState& port = ports_[i];
    port.info = port_infos_[i];
    const Link& link = topology_.links[port.info.link];
    port.serializer.set_rate(link.rate_bps);
    port.delay_ps = static_cast<uint64_t>(link.delay.count()) * 1000;
    port.random = engine::Random(seeds.next());
    link_ports_[port.info.link][port.info.peer > i ? 0 : 1] = i;
    if (!port.info.node.is_switch) continue;
    const SwitchParameters& at = topology_.switches[port.info.node.index].parameters;
    if (!at.pfc) continue;
    port.ingress.headroom_limit = at.pfc->headroom_bytes != 0
                                      ? at.pfc->headroom_bytes
                                      : needed_headroom(link, topology_.largest_frame_bytes);
    reserved[port.info.node.index] += port.ingress.headroom_limit * lossless_count;
  }
  switches_.resize(topology_.switches.size());
  for (SwitchId i = 0; i < switches_.size(); ++i) {
    const SwitchParameters& parameters = topology_.switches[i].parameters;
    switches_[i].buffer.configure(parameters, topology_.priorities.lossless, reserved[i]);
    switches_[i].decrements_ttl = parameters.decrements_ttl;
    switches_[i].salt = mixed(i + 1);
    if (parameters.queue_limit_bytes != 0) switches_[i].queue_limit = parameters.queue_limit_bytes;
    set_ecn(i, parameters.ecn);
  }
  routes_.compute(link_is_up_);
}

Network::Model::~Model() = default;

void Network::Model::push(uint64_t time_ps, Kind kind, uint32_t place, uint32_t value) {
  events_.push({time_ps, static_cast<uint32_t>(kind) << kPlaceBits | place, value});
}

void Network::Model::wake_up(PortId port, uint64_t time_ps) {
  if (ports_[port].has_wake_up) return;
  ports_[port].has_wake_up = true;
  push(std::max(time_ps, ports_[port].busy_until_ps), Kind::kWakeUp, port, 0);
}

void Network::Model::inject(const Packet& packet, Instant now) {
  const uint32_t frame = frames_.take();
  const uint8_t priority = topology_.priorities.of_dscp[packet.dscp % kDscpValues];
  frames_[frame] = {.token = packet.token,
                    .bytes = packet.bytes_on_wire,
                    .flow_hash = packet.flow_hash,
                    .to = packet.to,
                    .generation = frames_[frame].generation,
                    .priority = priority,
                    .ttl = packet.ttl,
                    .can_be_marked = (packet.ecn & kEctMask) != 0,
                    .is_marked = (packet.ecn & kEctMask) == kEctMask};
  PortState& port = ports_[packet.from];
  now_ps_ = std::max(now_ps_, picoseconds(now));
  enqueue(packet.from, frame);
  if (port.queues.bytes(priority) >= topology_.nic.queue_bytes) {
    if (port.full == 0 && deliveries_ != nullptr) deliveries_->host_became_full(packet.from);
    port.full |= static_cast<uint8_t>(1u << priority);
  }
  wake_up(packet.from, now_ps_);
  if (deliveries_ != nullptr) deliveries_->add(frame);
}

std::optional<Instant> Network::Model::next_event() const {
  if (events_.empty()) return std::nullopt;
  return rounded_up(events_.top().time_ps);
}

void Network::Model::advance(Instant now, Sink& sink) {
  sink_ = &sink;
  const uint64_t end_ps = picoseconds(now);
  while (!events_.empty() && events_.top().time_ps <= end_ps) {
    const NetworkEvent event = events_.top();
    events_.pop();
    now_ps_ = event.time_ps;
    happen(event);
  }
  now_ps_ = std::max(now_ps_, end_ps);
  sink_ = nullptr;
}

void Network::Model::happen(const NetworkEvent& event) {
  const uint32_t place = event.order & ((1u << kPlaceBits) - 1);
  switch (static_cast<Kind>(event.order >> kPlaceBits)) {
    case Kind::kPfcArrival:
      return on_pfc(place, event.value);
    case Kind::kArrival:
      return on_arrival(place, event.value);
    case Kind::kWakeUp:
      ports_[place].has_wake_up = false;
      return serve(place);
    case Kind::kOutageEnd:
      return end_outage(place);
  }
}

void Network::Model::on_pfc(PortId at, uint32_t value) {
  PortState& port = ports_[at];
  const auto stopped = static_cast<uint8_t>(value & 0xff);
  if (value >> 8 != (port.link_epoch & 0xffffff) || !port.is_up) return;
  const auto changed = static_cast<uint8_t>(stopped ^ port.paused);
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if ((changed >> i & 1) == 0) continue;
    PriorityCounters& counters = counters_of(at, i);
    if ((stopped >> i & 1) != 0) {
      ++counters.rx_pauses;
      port.paused_since_ps[i] = now_ps_;
    } else {
      counters.paused += Duration(static_cast<int64_t>((now_ps_ - port.paused_since_ps[i]) / 1000));
    }
  }
  port.paused = stopped;
  serve(at);
}

void Network::Model::on_arrival(PortId at, uint32_t frame) {
  PortState& port = ports_[at];
  FrameSlot& slot = frames_[frame];
  if (slot.link_epoch != port.link_epoch) return lose(frame, at, DropReason::kLinkDown);
  if (port.corruption != 0 && port.random.next() >> 32 < port.corruption)
    return lose(frame, at, DropReason::kCorrupted);
  PriorityCounters& counters = counters_of(at, slot.priority);
  ++counters.rx_packets;
  counters.rx_bytes += slot.bytes;
  if (port.info.node.is_switch) return forward(at, frame);
  if (slot.to != at) return lose(frame, at, DropReason::kNoRoute);
  const uint64_t token = slot.token;
  const bool is_marked = slot.is_marked;
  frames_.give_back(frame);
  sink_->deliver(token, at, rounded_up(now_ps_), is_marked);
}

void Network::Model::forward(PortId at, uint32_t frame) {
  FrameSlot& slot = frames_[frame];
  SwitchState& through = switches_[ports_[at].info.node.index];
  if (through.decrements_ttl) {
    if (slot.ttl <= 1) return lose(frame, at, DropReason::kTtlExpired);
    --slot.ttl;
  }
  const std::optional<PortId> next = next_port(ports_[at].info.node.index, slot);
  if (!next) return lose(frame, at, DropReason::kNoRoute);
  const PortId out = *next;
  PortState& egress = ports_[out];
  const uint8_t priority = slot.priority;
  if (!through.buffer.is_lossless(priority) &&
      egress.queues.bytes(priority) + slot.bytes > through.queue_limit)
    return lose(frame, out, DropReason::kBufferFull);
  switch (through.buffer.admit(ports_[at].ingress, priority, slot.bytes)) {
    case Admission::kShared:
    case Admission::kHeadroom:
      break;
    case Admission::kNoHeadroom:
      return lose(frame, out, DropReason::kHeadroomFull);
    case Admission::kBufferFull:
      return lose(frame, out, DropReason::kBufferFull);
  }
  slot.ingress = at;
  enqueue(out, frame);
  update_pause(at, priority);
  serve(out);
}

/// Returns the port by which the frame leaves the switch; nothing if there is no path.
std::optional<PortId> Network::Model::next_port(SwitchId from, const FrameSlot& frame) const {
  const auto choices = routes_.ports_to(from, frame.to);
  if (choices.empty()) return std::nullopt;
  if (choices.size() == 1) return choices[0];
  return choices[uint64_t{mixed(frame.flow_hash ^ switches_[from].salt)} * choices.size() >> 32];
}

void Network::Model::enqueue(PortId id, uint32_t frame) {
  PortQueues& queues = ports_[id].queues;
  const uint8_t priority = frames_[frame].priority;
  queues.push(frames_, frame);
  frames_[frame].at = id;
  frames_[frame].arrives_ps = kNotOnLink;
  PriorityCounters& counters = counters_of(id, priority);
  counters.queue_high_water_bytes =
      std::max(counters.queue_high_water_bytes, queues.bytes(priority));
}

void Network::Model::update_pause(PortId ingress, uint8_t priority) {
  PortState& port = ports_[ingress];
  const SwitchBuffer& buffer = switches_[port.info.node.index].buffer;
  const auto bit = static_cast<uint8_t>(1u << priority);
  if ((port.wanted_pause & bit) == 0) {
    if (!buffer.has_to_pause(port.ingress, priority)) return;
    port.wanted_pause |= bit;
  } else {
    if (!buffer.may_resume(port.ingress, priority)) return;
    port.wanted_pause &= static_cast<uint8_t>(~bit);
  }
  serve(ingress);
}

void Network::Model::serve(PortId id) {
  PortState& port = ports_[id];
  if (!port.is_up) return discard_queues(id);
  const auto candidates = static_cast<uint8_t>(port.queues.filled() & ~port.paused);
  if (candidates == 0 && port.wanted_pause == port.sent_pause) return;
  if (port.busy_until_ps > now_ps_) return wake_up(id, port.busy_until_ps);
  if (port.busy_until_ps < now_ps_) port.serializer.rest();
  if (port.wanted_pause != port.sent_pause) return send_pfc(id);
  send_frame(id, candidates);
}

void Network::Model::send_pfc(PortId id) {
  PortState& port = ports_[id];
  const auto stops = static_cast<uint8_t>(port.wanted_pause & ~port.sent_pause);
  for (uint8_t i = 0; i < kPriorities; ++i)
    if ((stops >> i & 1) != 0) ++counters_of(id, i).tx_pauses;
  port.sent_pause = port.wanted_pause;
  port.busy_until_ps = now_ps_ + port.serializer.picoseconds(kPfcFrameBytes);
  push(port.busy_until_ps + port.delay_ps, Kind::kPfcArrival, port.info.peer,
       (port.link_epoch & 0xffffff) << 8 | port.sent_pause);
  serve(id);  // the next frame that waits
}

void Network::Model::send_frame(PortId id, uint8_t candidates) {
  PortState& port = ports_[id];
  const uint8_t priority = port.queues.choose(frames_, candidates, shares_);
  const uint32_t frame = port.queues.pop(frames_, priority);
  FrameSlot& slot = frames_[frame];
  slot.next = kNoFrame;
  slot.link_epoch = port.link_epoch;
  PriorityCounters& counters = counters_of(id, priority);
  ++counters.tx_packets;
  counters.tx_bytes += slot.bytes;
  ++hops_;
  if (port.info.node.is_switch && slot.can_be_marked && !slot.is_marked &&
      switches_[port.info.node.index].is_marking(port, port.queues.bytes(priority))) {
    slot.is_marked = true;
    ++counters.ecn_marks;
  }
  port.busy_until_ps = now_ps_ + port.serializer.picoseconds(slot.bytes);
  slot.at = port.info.peer;
  slot.arrives_ps = port.busy_until_ps + port.delay_ps;
  push(slot.arrives_ps, Kind::kArrival, port.info.peer, frame);
  if ((port.queues.filled() & ~port.paused) != 0) wake_up(id, port.busy_until_ps);
  const FrameSlot sent = slot;
  leave_buffer(id, sent);
  if (observes_hops_)
    sink_->on_hop({id, sent.token, rounded_up(now_ps_), sent.is_marked, sent.ttl});
}

/// Returns whether to mark a frame that leaves the port. Decides by the number of bytes that stay
/// in the queue, so that the mark is only as old as the link's delay, and not as old as the frame's
/// wait in the queue (Zhu et al., "ECN or Delay", CoNEXT 2016, section 5.2).
bool Network::Model::SwitchState::is_marking(PortState& port, uint64_t queue_bytes) const {
  if (queue_bytes <= kmin) return false;
  if (queue_bytes >= kmax) return true;
  const uint64_t probability = pmax * (queue_bytes - kmin) / (kmax - kmin);
  return port.random.next() >> 32 < probability;
}

/// Frees the buffer space of a frame that has left the port's queue.
void Network::Model::leave_buffer(PortId id, const FrameSlot& frame) {
  PortState& port = ports_[id];
  if (port.info.node.is_switch) {
    switches_[port.info.node.index].buffer.release(ports_[frame.ingress].ingress, frame.priority,
                                                   frame.bytes);
    update_pause(frame.ingress, frame.priority);
    return;
  }
  const auto bit = static_cast<uint8_t>(1u << frame.priority);
  if ((port.full & bit) == 0 || port.queues.bytes(frame.priority) >= topology_.nic.queue_bytes)
    return;
  port.full &= static_cast<uint8_t>(~bit);
  if (port.full == 0 && deliveries_ != nullptr) deliveries_->host_has_room(id);
  sink_->host_resumed(id);
}

void Network::Model::discard_queues(PortId id) {
  const NodeRef node = ports_[id].info.node;
  const bool is_reboot = node.is_switch && switches_[node.index].is_down;
  for (uint8_t priority = 0; priority < kPriorities; ++priority) {
    while ((ports_[id].queues.filled() >> priority & 1) != 0) {
      const uint32_t frame = ports_[id].queues.pop(frames_, priority);
      const FrameSlot lost = frames_[frame];
      lose(frame, id, is_reboot ? DropReason::kSwitchDown : DropReason::kLinkDown);
      leave_buffer(id, lost);
    }
  }
}

void Network::Model::lose(uint32_t frame, PortId where, DropReason why) {
  const uint64_t token = frames_[frame].token;
  ++counters_of(where, frames_[frame].priority).drops;
  frames_.give_back(frame);
  sink_->drop(token, where, why);
}

}  // namespace rocemu::network
