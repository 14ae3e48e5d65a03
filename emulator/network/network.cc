#include "emulator/network/network.h"

#include "emulator/network/network_deliveries.h"

namespace rocemu::network {

std::string_view name_of(DropReason reason) {
  switch (reason) {
    case DropReason::kBufferFull:
      return "buffer full";
    case DropReason::kHeadroomFull:
      return "headroom full";
    case DropReason::kLinkDown:
      return "link down";
    case DropReason::kSwitchDown:
      return "switch down";
    case DropReason::kNoRoute:
      return "no route";
    case DropReason::kCorrupted:
      return "corrupted";
    case DropReason::kTtlExpired:
      return "TTL expired";
  }
  return "";
}

Network::Network(const Topology& topology, uint64_t seed)
    : model_(std::make_unique<Model>(topology, seed)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

const Topology& Network::topology() const {
  return model_->topology_;
}

uint8_t Network::priority_of(uint8_t dscp) const {
  return model_->topology_.priorities.of_dscp[dscp % kDscpValues];
}

bool Network::can_inject(HostId host, uint8_t priority) const {
  return (model_->ports_[host].full >> priority & 1) == 0;
}

void Network::inject(const Packet& packet, Instant now) {
  model_->inject(packet, now);
}

std::optional<Instant> Network::next_event() const {
  return model_->next_event();
}

void Network::track_deliveries() {
  model_->deliveries_ = std::make_unique<Model::Deliveries>(*model_);
}

std::optional<Instant> Network::next_delivery() {
  return model_->deliveries_->next();
}

void Network::advance(Instant now, Sink& sink) {
  model_->advance(now, sink);
}

void Network::observe_hops(bool is_on) {
  model_->observes_hops_ = is_on;
}

size_t Network::port_count() const {
  return model_->ports_.size();
}

const PortInfo& Network::port(PortId port) const {
  return model_->port_infos_[port];
}

const PriorityCounters& Network::counters(PortId port, uint8_t priority) const {
  PriorityCounters& counters = model_->counters_of(port, priority);
  counters.queue_bytes = model_->ports_[port].queues.bytes(priority);
  return counters;
}

bool Network::is_paused(PortId port, uint8_t priority) const {
  return (model_->ports_[port].paused >> priority & 1) != 0;
}

uint64_t Network::rate_bps(LinkId link) const {
  return model_->topology_.links[link].rate_bps;
}

bool Network::is_link_up(LinkId link) const {
  return model_->link_is_up_[link];
}

size_t Network::packets_in_flight() const {
  return model_->frames_.used();
}

uint64_t Network::packet_hops() const {
  return model_->hops_;
}

uint64_t Network::buffered_bytes(SwitchId switch_id) const {
  return model_->switches_[switch_id].buffer.used();
}

void Network::set_link_state(LinkId link, bool is_up, Instant now) {
  model_->set_link_state(link, is_up, now);
}

void Network::set_link_rate(LinkId link, uint64_t rate_bps, Instant) {
  model_->set_link_rate(link, rate_bps);
}

void Network::set_corruption(LinkId link, double probability) {
  model_->set_corruption(link, probability);
}

void Network::reboot_switch(SwitchId switch_id, Duration outage, Instant now) {
  model_->reboot_switch(switch_id, outage, now);
}

void Network::set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now) {
  model_->set_pause_storm(host, priority, is_on, now);
}

void Network::set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds) {
  model_->set_ecn(switch_id, thresholds);
}

}  // namespace rocemu::network
