#include "emulator/network/programs/program_network.h"

#include <algorithm>
#include <utility>

#include "emulator/network/dcqcn.h"
#include "emulator/network/programs/fault_targets.h"

namespace rocemu::network {

ProgramNetwork::ProgramNetwork(const Topology& topology, uint64_t seed,
                               std::vector<PortId> captured_ports)
    : network_(topology, seed), captured_ports_(std::move(captured_ports)) {
  for (const Link& link : topology.links) rates_bps_.push_back(link.rate_bps);
  network_.track_deliveries();
  network_.observe_hops(!captured_ports_.empty());
}

bool ProgramNetwork::can_inject(engine::DeviceIndex from, uint8_t dscp) const {
  return network_.can_inject(from.value, network_.priority_of(dscp));
}

void ProgramNetwork::inject(const engine::Injection& injection, Instant now) {
  network_.inject({.token = injection.token,
                   .from = injection.from.value,
                   .to = injection.to.value,
                   .bytes_on_wire = injection.bytes_on_wire,
                   .flow_hash = injection.flow_hash,
                   .dscp = injection.dscp,
                   .ecn = injection.ecn,
                   .ttl = injection.ttl},
                  now);
  if (observer_ != nullptr) observer_->on_inject(injection, now);
}

void ProgramNetwork::advance(Instant now, engine::NetworkEvents& events) {
  events_ = &events;
  network_.advance(now, *this);
  events_ = nullptr;
}

void ProgramNetwork::set_fault(const engine::NetworkElement& element,
                               const engine::NetworkChange& change, bool is_on, Instant now) {
  const FaultTarget at = find_target(network_.topology(), element);
  if (at.link) set_link_fault(*at.link, change, is_on, now);
  if (at.switch_id) set_switch_fault(*at.switch_id, change, is_on, now);
  if (at.host && change.pause_storm) set_host_fault(*at.host, *change.pause_storm, is_on, now);
}

void ProgramNetwork::set_link_fault(LinkId link, const engine::NetworkChange& change, bool is_on,
                                    Instant now) {
  if (change.is_down || change.flap) network_.set_link_state(link, !is_on, now);
  if (change.bits_per_second != 0)
    network_.set_link_rate(link, is_on ? change.bits_per_second : rates_bps_[link], now);
  if (change.corruption > 0) network_.set_corruption(link, is_on ? change.corruption : 0);
}

/// Starts or ends a fault of a switch. Nothing has to be done at the end of an outage, which ends
/// by itself.
void ProgramNetwork::set_switch_fault(SwitchId of, const engine::NetworkChange& change, bool is_on,
                                      Instant now) {
  if (change.outage && is_on) network_.reboot_switch(of, *change.outage, now);
  if (!change.ecn) return;
  std::optional<EcnThresholds> thresholds = network_.topology().switches[of].parameters.ecn;
  if (is_on && change.ecn->is_off) thresholds.reset();
  if (is_on && !change.ecn->is_off) {
    thresholds = EcnThresholds{.kmin_bytes = change.ecn->kmin_bytes,
                               .kmax_bytes = change.ecn->kmax_bytes,
                               .pmax = change.ecn->pmax};
  }
  network_.set_ecn(of, thresholds);
}

void ProgramNetwork::set_host_fault(HostId host, const engine::PauseStorm& storm, bool is_on,
                                    Instant now) {
  const uint8_t lossless = network_.topology().priorities.lossless;
  for (uint8_t priority = 0; priority < kPriorities; ++priority) {
    const bool is_paused = storm.priority ? *storm.priority == priority : lossless >> priority & 1;
    if (is_paused) network_.set_pause_storm(host, priority, is_on, now);
  }
}

std::unique_ptr<engine::RateController> ProgramNetwork::make_rate_controller(
    engine::DeviceIndex from, Instant now) const {
  const std::optional<DcqcnParameters>& dcqcn = network_.topology().nic.dcqcn;
  if (!dcqcn) return nullptr;
  const uint64_t line_rate_bps = network_.rate_bps(network_.port(from.value).link);
  return std::make_unique<Dcqcn>(*dcqcn, line_rate_bps, now);
}

engine::PauseCounters ProgramNetwork::pauses_of(engine::DeviceIndex device) const {
  engine::PauseCounters pauses;
  for (uint8_t priority = 0; priority < kPriorities; ++priority) {
    const PriorityCounters& counters = network_.counters(device.value, priority);
    pauses.received[priority] = counters.rx_pauses;
    pauses.sent[priority] = counters.tx_pauses;
  }
  return pauses;
}

void ProgramNetwork::observe(NetworkObserver& observer) {
  observer_ = &observer;
  network_.observe_hops(true);
}

void ProgramNetwork::deliver(uint64_t token, HostId, Instant at, bool is_marked) {
  events_->deliver(token, at, is_marked);
}

void ProgramNetwork::drop(uint64_t token, PortId where, DropReason) {
  if (observer_ != nullptr) observer_->on_drop(network_, where, latest_);
  events_->drop(token);
}

void ProgramNetwork::on_hop(const Hop& hop) {
  latest_ = std::max(latest_, hop.at);
  if (observer_ != nullptr) observer_->on_hop(network_, hop);
  const auto captured = std::ranges::find(captured_ports_, hop.port);
  if (captured == captured_ports_.end()) return;
  events_->capture(static_cast<uint32_t>(captured - captured_ports_.begin()), hop.token, hop.at,
                   hop.is_marked, hop.ttl);
}

}  // namespace rocemu::network
