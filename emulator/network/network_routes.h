// Finds the ports by which a switch sends frames to a host, along all shortest paths or along
// up-down paths.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

class Routes {
 public:
  /// Creates routes for a topology and its ports. Both must outlive this object.
  Routes(const Topology& topology, const std::vector<PortInfo>& ports);

  /// Computes the routes again. They use only links that are up: `is_up` has an element for each
  /// LinkId.
  void compute(const std::vector<bool>& is_up);
  /// Returns the ports of the switch that lead to the host, in ascending order; none if there is no
  /// path.
  std::span<const PortId> ports_to(SwitchId from, HostId host) const {
    const Attachment& at = attachments_[host];
    if (at.switch_id == from) return {&at.port, at.is_up ? 1u : 0u};
    if (at.destination == kNone) return {};
    const Choice& choice = choices_[from * destinations_.size() + at.destination];
    return {ports_.data() + choice.first, choice.count};
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The switch and port at which a host is connected.
  struct Attachment {
    SwitchId switch_id = kNone;
    uint32_t destination = kNone;  // the index of its switch in destinations_
    PortId port = 0;               // the port of that switch
    bool is_up = true;
  };
  struct Choice {
    uint32_t first = 0;  // index into ports_
    uint32_t count = 0;
  };
  /// A link from a switch to a neighbor.
  struct Edge {
    PortId port = 0;
    SwitchId to = 0;
    LinkId link = 0;
  };

  void attach_hosts();
  void add_choices(uint32_t destination, const std::vector<uint32_t>& distance,
                   const std::vector<bool>& is_up, const std::vector<uint32_t>& down);
  std::vector<uint32_t> distances_to(SwitchId target, const std::vector<bool>& is_up) const;
  void order_switches(const std::vector<bool>& is_up);
  std::vector<uint32_t> down_distances_to(SwitchId target, const std::vector<bool>& is_up) const;

  const Topology& topology_;
  const std::vector<PortInfo>& port_infos_;
  std::vector<std::vector<Edge>> edges_;  // by switch
  std::vector<Attachment> attachments_;   // by host
  std::vector<SwitchId> destinations_;    // switches that have hosts
  std::vector<Choice> choices_;           // by switch and destination
  std::vector<PortId> ports_;
  std::vector<uint32_t> rank_;  // by switch, for up-down: a smaller rank is higher up
};

}  // namespace rocemu::network
