// Implements faults of a simulated network: links go down, are slow or corrupt frames; switches
// reboot; NICs pause their switches without end.
#include <algorithm>
#include <cmath>

#include "emulator/network/network_deliveries.h"

namespace rocemu::network {
namespace {

constexpr double kTwoTo32 = 4294967296.0;

}  // namespace

bool Network::Model::link_should_be_up(LinkId link) const {
  if (!link_is_wanted_up_[link]) return false;
  return std::ranges::none_of(link_ports_[link], [&](PortId port) {
    const NodeRef node = ports_[port].info.node;
    return node.is_switch && switches_[node.index].is_down;
  });
}

/// Takes links up or down according to the faults in effect, and recomputes the routes if a link
/// changed.
void Network::Model::update_links(Instant now) {
  const uint64_t time_ps = std::max(engine::nanoseconds_since_start(now) * 1000, now_ps_);
  bool has_changed = false;
  for (LinkId link = 0; link < link_is_up_.size(); ++link) {
    const bool is_up = link_should_be_up(link);
    if (is_up == link_is_up_[link]) continue;
    has_changed = true;
    link_is_up_[link] = is_up;
    for (const PortId id : link_ports_[link]) {
      PortState& port = ports_[id];
      port.is_up = is_up;
      if (!is_up) ++port.link_epoch;
      // A change of the link cancels all pauses. A pause that is still necessary is sent again.
      port.paused = 0;
      port.sent_pause = 0;
      wake_up(id, time_ps);
    }
  }
  if (!has_changed) return;
  routes_.compute(link_is_up_);
  if (deliveries_ != nullptr) deliveries_->update();
}

void Network::Model::set_link_state(LinkId link, bool is_up, Instant now) {
  link_is_wanted_up_[link] = is_up;
  update_links(now);
}

void Network::Model::set_link_rate(LinkId link, uint64_t rate_bps) {
  topology_.links[link].rate_bps = rate_bps;
  for (const PortId port : link_ports_[link]) ports_[port].serializer.set_rate(rate_bps);
  if (deliveries_ != nullptr) deliveries_->update();
}

void Network::Model::set_corruption(LinkId link, double probability) {
  const double scaled = std::clamp(probability, 0.0, 1.0) * kTwoTo32;
  for (const PortId port : link_ports_[link])
    ports_[port].corruption = static_cast<uint32_t>(std::min(scaled, kTwoTo32 - 1));
}

void Network::Model::reboot_switch(SwitchId switch_id, Duration outage, Instant now) {
  SwitchState& state = switches_[switch_id];
  state.is_down = true;
  state.outage_end_ps = (engine::nanoseconds_since_start(now) +
                         static_cast<uint64_t>(std::max<int64_t>(outage.count(), 0))) *
                        1000;
  push(std::max(state.outage_end_ps, now_ps_), Kind::kOutageEnd, switch_id, 0);
  update_links(now);
}

void Network::Model::end_outage(SwitchId switch_id) {
  SwitchState& state = switches_[switch_id];
  if (!state.is_down || state.outage_end_ps > now_ps_) return;  // another reboot has begun since
  state.is_down = false;
  update_links(Instant(Duration(static_cast<int64_t>(now_ps_ / 1000))));
}

void Network::Model::set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now) {
  PortState& port = ports_[host];
  const auto bit = static_cast<uint8_t>(1u << priority);
  port.wanted_pause =
      static_cast<uint8_t>(is_on ? port.wanted_pause | bit : port.wanted_pause & ~bit);
  wake_up(host, std::max(engine::nanoseconds_since_start(now) * 1000, now_ps_));
  if (deliveries_ != nullptr) deliveries_->update();
}

void Network::Model::set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds) {
  SwitchState& state = switches_[switch_id];
  state.kmin = thresholds ? thresholds->kmin_bytes : UINT64_MAX;
  state.kmax = thresholds ? thresholds->kmax_bytes : UINT64_MAX;
  state.pmax = thresholds ? static_cast<uint64_t>(std::llround(thresholds->pmax * kTwoTo32)) : 0;
}

}  // namespace rocemu::network
