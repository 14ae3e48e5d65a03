#include "emulator/network/network_routes.h"

#include <algorithm>

namespace rocemu::network {

Routes::Routes(const Topology& topology, const std::vector<PortInfo>& ports)
    : topology_(topology), port_infos_(ports), edges_(topology.switches.size()) {
  for (PortId port = 0; port < ports.size(); ++port) {
    const PortInfo& info = ports[port];
    const PortInfo& peer = ports[info.peer];
    if (info.node.is_switch && peer.node.is_switch)
      edges_[info.node.index].push_back({port, peer.node.index, info.link});
  }
  attach_hosts();
}

void Routes::attach_hosts() {
  std::vector<uint32_t> place(topology_.switches.size(), kNone);
  attachments_.resize(topology_.hosts.size());
  for (HostId host = 0; host < topology_.hosts.size(); ++host) {
    const PortId port = port_infos_[host].peer;
    const NodeRef node = port_infos_[port].node;
    if (!node.is_switch) continue;
    if (place[node.index] == kNone) {
      place[node.index] = static_cast<uint32_t>(destinations_.size());
      destinations_.push_back(node.index);
    }
    attachments_[host] = {
        .switch_id = node.index, .destination = place[node.index], .port = port, .is_up = true};
  }
}

void Routes::compute(const std::vector<bool>& is_up) {
  for (HostId host = 0; host < attachments_.size(); ++host)
    attachments_[host].is_up = topology_.links.empty() || is_up[port_infos_[host].link];
  ports_.clear();
  choices_.assign(topology_.switches.size() * destinations_.size(), {});
  const bool is_up_down = topology_.routing == Routing::kUpDown;
  if (is_up_down) order_switches(is_up);
  for (uint32_t i = 0; i < destinations_.size(); ++i) {
    const std::vector<uint32_t> distance = distances_to(destinations_[i], is_up);
    const std::vector<uint32_t> down =
        is_up_down ? down_distances_to(destinations_[i], is_up) : std::vector<uint32_t>();
    add_choices(i, distance, is_up, down);
  }
}

std::vector<uint32_t> Routes::distances_to(SwitchId target, const std::vector<bool>& is_up) const {
  std::vector<uint32_t> distance(edges_.size(), kNone);
  std::vector<SwitchId> reached = {target};
  distance[target] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& edge : edges_[reached[i]]) {
      if (!is_up[edge.link] || distance[edge.to] != kNone) continue;
      distance[edge.to] = distance[reached[i]] + 1;
      reached.push_back(edge.to);
    }
  }
  return distance;
}

/// Ranks the switches by their distance from a root, which is the switch with the most links to
/// other switches. A part of the network that is not connected to the root has a separate root.
void Routes::order_switches(const std::vector<bool>& is_up) {
  rank_.assign(edges_.size(), kNone);
  std::vector<SwitchId> roots(edges_.size());
  for (SwitchId i = 0; i < roots.size(); ++i) roots[i] = i;
  std::stable_sort(roots.begin(), roots.end(),
                   [&](SwitchId a, SwitchId b) { return edges_[a].size() > edges_[b].size(); });
  std::vector<SwitchId> reached;
  for (const SwitchId root : roots) {
    if (rank_[root] != kNone) continue;
    rank_[root] = static_cast<uint32_t>(reached.size());
    reached.push_back(root);
    for (size_t i = rank_[root]; i < reached.size(); ++i) {
      for (const Edge& edge : edges_[reached[i]]) {
        if (!is_up[edge.link] || rank_[edge.to] != kNone) continue;
        rank_[edge.to] = static_cast<uint32_t>(reached.size());
        reached.push_back(edge.to);
      }
    }
  }
}

/// Returns, for each switch, the length of the shortest path to `target` that only goes down.
std::vector<uint32_t> Routes::down_distances_to(SwitchId target,
                                                const std::vector<bool>& is_up) const {
  std::vector<uint32_t> distance(edges_.size(), kNone);
  std::vector<SwitchId> reached = {target};
  distance[target] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& edge : edges_[reached[i]]) {
      const bool leads_down_from_there = rank_[edge.to] < rank_[reached[i]];
      if (!is_up[edge.link] || !leads_down_from_there || distance[edge.to] != kNone) continue;
      distance[edge.to] = distance[reached[i]] + 1;
      reached.push_back(edge.to);
    }
  }
  return distance;
}

void Routes::add_choices(uint32_t destination, const std::vector<uint32_t>& distance,
                         const std::vector<bool>& is_up, const std::vector<uint32_t>& down) {
  std::vector<SwitchId> order(edges_.size());
  for (SwitchId i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<uint32_t> total = distance;
  if (!down.empty()) {  // lengths of up-down paths, from the top down
    std::sort(order.begin(), order.end(),
              [&](SwitchId a, SwitchId b) { return rank_[a] < rank_[b]; });
    total = down;
  }
  for (const SwitchId from : order) {
    if (from == destinations_[destination]) continue;
    const bool must_go_up = !down.empty() && down[from] == kNone;
    const auto length_by = [&](const Edge& edge) {
      if (!is_up[edge.link]) return kNone;
      if (must_go_up) return rank_[edge.to] < rank_[from] ? total[edge.to] : kNone;
      // The path can only go down from this switch, so an edge that goes up is not used.
      if (!down.empty() && rank_[edge.to] < rank_[from]) return kNone;
      return down.empty() ? distance[edge.to] : down[edge.to];
    };
    uint32_t shortest = kNone;
    for (const Edge& edge : edges_[from]) shortest = std::min(shortest, length_by(edge));
    if (shortest == kNone) continue;
    total[from] = shortest + 1;
    Choice& choice = choices_[from * destinations_.size() + destination];
    choice.first = static_cast<uint32_t>(ports_.size());
    for (const Edge& edge : edges_[from])
      if (length_by(edge) == shortest) ports_.push_back(edge.port);
    choice.count = static_cast<uint32_t>(ports_.size()) - choice.first;
  }
}

}  // namespace rocemu::network
