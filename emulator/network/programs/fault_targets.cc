#include "emulator/network/programs/fault_targets.h"

#include <fmt/format.h>

namespace rocemu::network {
namespace {

using Kind = engine::NetworkElement::Kind;

const std::string& name_of(const Topology& topology, NodeRef node) {
  return node.is_switch ? topology.switches[node.index].name : topology.hosts[node.index].name;
}

/// Returns the names of the nodes as a range, such as "h0 to h15", or "h0" if there is only one
/// node.
template <class Node>
std::string range_of(const std::vector<Node>& nodes) {
  if (nodes.empty()) return "none";
  return nodes.size() == 1 ? nodes.front().name : nodes.front().name + " to " + nodes.back().name;
}

std::string no_such_element(const Topology& topology, const engine::NetworkElement& element) {
  // There is at least one link, since each host is connected to a switch or to another host.
  const Link& link = topology.links.front();
  const PortInfo last = ports_of(topology).back();
  switch (element.kind) {
    case Kind::kLink:
      return fmt::format("the network has no link '{}'; a link is named by its ends ({}-{})",
                         element.name, name_of(topology, link.a), name_of(topology, link.b));
    case Kind::kPort:
      return fmt::format(
          "the network has no port '{}'; a host's port has the host's name ({}), and a "
          "switch's port has the switch's name and a number from 0 ({})",
          element.name, topology.hosts.front().name, port_name(topology, last));
    case Kind::kSwitch:
      return fmt::format("the network has no switch '{}'; its switches are {}", element.name,
                         range_of(topology.switches));
    case Kind::kHost:
      return fmt::format("the network has no host '{}'; its hosts are {}", element.name,
                         range_of(topology.hosts));
  }
  return "";
}

}  // namespace

FaultTarget find_target(const Topology& topology, const engine::NetworkElement& element) {
  FaultTarget found;
  switch (element.kind) {
    case Kind::kLink:
      found.link = find_link(topology, element.name);
      break;
    case Kind::kPort:
      if (const auto port = find_port(topology, element.name))
        found.link = ports_of(topology)[*port].link;
      break;
    case Kind::kSwitch:
      found.switch_id = find_switch(topology, element.name);
      break;
    case Kind::kHost:
      found.host = find_host(topology, element.name);
      break;
  }
  return found;
}

std::string problem_of(const Topology& topology, const engine::NetworkElement& element,
                       const engine::NetworkChange& change) {
  const FaultTarget at = find_target(topology, element);
  if (!at.link && !at.switch_id && !at.host) return no_such_element(topology, element);
  const bool needs_lossless = change.pause_storm && !change.pause_storm->priority;
  if (needs_lossless && topology.priorities.lossless == 0)
    return "the network has no lossless priority that pause_storm could pause; name a "
           "priority: pause_storm: 3";
  return "";
}

}  // namespace rocemu::network
