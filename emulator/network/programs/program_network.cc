#include "emulator/network/programs/program_network.h"

#include <algorithm>
#include <utility>

#include "emulator/network/dcqcn.h"

namespace rocemu::network {

ProgramNetwork::ProgramNetwork(const Topology& topology, uint64_t seed,
                               std::vector<PortId> captured_ports)
    : network_(topology, seed), captured_ports_(std::move(captured_ports)) {
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
}

void ProgramNetwork::advance(Instant now, engine::NetworkEvents& events) {
  events_ = &events;
  network_.advance(now, *this);
  events_ = nullptr;
}

std::unique_ptr<engine::RateController> ProgramNetwork::make_rate_controller(
    engine::DeviceIndex from, Instant now) const {
  const std::optional<DcqcnParameters>& dcqcn = network_.topology().nic.dcqcn;
  if (!dcqcn) return nullptr;
  const uint64_t line_rate_bps = network_.rate_bps(network_.port(from.value).link);
  return std::make_unique<Dcqcn>(*dcqcn, line_rate_bps, now);
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
