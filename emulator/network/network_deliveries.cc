#include "emulator/network/network_deliveries.h"

#include <functional>

namespace rocemu::network {

void Network::Model::Deliveries::push(const Bound& bound) {
  bounds_.push_back(bound);
  std::ranges::push_heap(bounds_, std::greater());
}

void Network::Model::Deliveries::pop() {
  std::ranges::pop_heap(bounds_, std::greater());
  bounds_.pop_back();
}

void Network::Model::Deliveries::add(uint32_t frame) {
  const FrameSlot& slot = model_.frames_[frame];
  push({earliest_delivery(slot), frame, slot.generation});
}

uint64_t Network::Model::Deliveries::next_event_ps() const {
  return model_.events_.empty() ? UINT64_MAX : model_.events_.top().time_ps;
}

/// Returns a lower bound of the time at which the frame arrives at its host. It is exact if the
/// frame meets no other frame from now on.
uint64_t Network::Model::Deliveries::earliest_delivery(const FrameSlot& frame) const {
  const std::vector<PortState>& ports = model_.ports_;
  PortId at = frame.at;
  uint64_t time_ps = frame.arrives_ps;
  if (time_ps == kNotOnLink) {
    const PortState& port = ports[at];
    time_ps = std::max(model_.now_ps_, port.busy_until_ps);
    // A pause of the port can only end at an event, so the frame cannot leave before the next
    // event.
    if ((port.paused >> frame.priority & 1) != 0) time_ps = std::max(time_ps, next_event_ps());
    if (time_ps == UINT64_MAX) return time_ps;
    time_ps += port.serializer.picoseconds_at_least(port.queues.bytes_before(frame) + frame.bytes) +
               port.delay_ps;
    at = port.info.peer;
  }
  while (ports[at].info.node.is_switch) {
    const std::optional<PortId> next = model_.next_port(ports[at].info.node.index, frame);
    if (!next) break;
    time_ps += ports[*next].serializer.picoseconds_at_least(frame.bytes) + ports[*next].delay_ps;
    at = ports[*next].info.peer;
  }
  return std::max(time_ps, model_.now_ps_ + 1);
}

/// Returns a lower bound of the time at which can_inject() becomes true for the host.
uint64_t Network::Model::Deliveries::earliest_resume(HostId host) const {
  if (next_event_ps() <= model_.now_ps_) return model_.now_ps_;
  const PortState& port = model_.ports_[host];
  const bool is_paused = (port.full & ~port.paused) == 0;
  return !is_paused && port.busy_until_ps > model_.now_ps_ ? port.busy_until_ps : next_event_ps();
}

std::optional<Instant> Network::Model::Deliveries::next() {
  uint64_t next_ps = UINT64_MAX;
  while (!bounds_.empty()) {
    Bound bound = bounds_.front();
    const FrameSlot& frame = model_.frames_[bound.frame];
    const bool is_here = frame.generation == bound.generation;
    if (is_here && bound.time_ps > model_.now_ps_) {
      next_ps = bound.time_ps;
      break;
    }
    pop();
    if (!is_here) continue;
    bound.time_ps = earliest_delivery(frame);
    push(bound);
  }
  for (const HostId host : full_hosts_) next_ps = std::min(next_ps, earliest_resume(host));
  if (next_ps == UINT64_MAX) return std::nullopt;
  return Instant(Duration(static_cast<int64_t>((next_ps + 999) / 1000)));
}

void Network::Model::Deliveries::update() {
  for (Bound& bound : bounds_) {
    const FrameSlot& frame = model_.frames_[bound.frame];
    bound.time_ps = frame.generation == bound.generation ? earliest_delivery(frame) : 0;
  }
  std::ranges::make_heap(bounds_, std::greater());
}

}  // namespace rocemu::network
