#include "emulator/network/network_topology.h"

#include <algorithm>
#include <charconv>

namespace rocemu::network {
namespace {

const std::string& node_name(const Topology& topology, NodeRef node) {
  return node.is_switch ? topology.switches[node.index].name : topology.hosts[node.index].name;
}

std::optional<NodeRef> find_node(const Topology& topology, std::string_view name) {
  if (const auto host = find_host(topology, name)) return NodeRef{false, *host};
  if (const auto found = find_switch(topology, name)) return NodeRef{true, *found};
  return std::nullopt;
}

template <class Nodes>
std::optional<uint32_t> find_named(const Nodes& nodes, std::string_view name) {
  for (uint32_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].name == name) return i;
  return std::nullopt;
}

}  // namespace

uint64_t needed_headroom(const Link& link, uint32_t largest_frame_bytes) {
  // The number of bits is rounded up to whole bytes, because a byte that is only partly on the link
  // when the link becomes quiet also arrives.
  const auto delay_ns = static_cast<uint64_t>(link.delay.count());
  const uint64_t bits_in_flight = static_cast<uint64_t>(static_cast<double>(link.rate_bps) * 1e-9 *
                                                        static_cast<double>(2 * delay_ns)) +
                                  8;
  return 3 * uint64_t{largest_frame_bytes} + kPfcFrameBytes + bits_in_flight / 8;
}

std::vector<PortInfo> ports_of(const Topology& topology) {
  std::vector<PortInfo> ports(topology.hosts.size());
  for (HostId host = 0; host < topology.hosts.size(); ++host) {
    ports[host].node = {false, host};
    ports[host].peer = host;
  }
  std::vector<uint32_t> degree(topology.switches.size(), 0);
  for (const Link& link : topology.links) {
    for (const NodeRef& end : {link.a, link.b})
      if (end.is_switch) ++degree[end.index];
  }
  std::vector<PortId> first(topology.switches.size());
  auto next = static_cast<PortId>(topology.hosts.size());
  for (SwitchId i = 0; i < topology.switches.size(); ++i) {
    first[i] = next;
    next += degree[i];
    degree[i] = 0;
  }
  ports.resize(next);
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    const auto port_at = [&](NodeRef end) {
      if (!end.is_switch) {
        ports[end.index].link = link;
        return end.index;
      }
      const uint32_t number = degree[end.index]++;
      const PortId port = first[end.index] + number;
      ports[port] = {.node = end, .number = number, .link = link, .peer = 0};
      return port;
    };
    const PortId a = port_at(topology.links[link].a);
    const PortId b = port_at(topology.links[link].b);
    ports[a].peer = b;
    ports[b].peer = a;
  }
  return ports;
}

std::string port_name(const Topology& topology, const PortInfo& port) {
  const std::string& name = node_name(topology, port.node);
  return port.node.is_switch ? name + ":" + std::to_string(port.number) : name;
}

std::optional<PortId> find_port(const Topology& topology, std::string_view name) {
  if (const auto host = find_host(topology, name)) return *host;
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto node = find_switch(topology, name.substr(0, colon));
  const std::string_view digits = name.substr(colon + 1);
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!node || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const std::vector<PortInfo> ports = ports_of(topology);
  for (PortId i = 0; i < ports.size(); ++i)
    if (ports[i].node == NodeRef{true, *node} && ports[i].number == number) return i;
  return std::nullopt;
}

std::optional<LinkId> find_link(const Topology& topology, std::string_view name) {
  if (const auto port = find_port(topology, name)) return ports_of(topology)[*port].link;
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto a = find_node(topology, name.substr(0, dash));
  const auto b = find_node(topology, name.substr(dash + 1));
  if (!a || !b) return std::nullopt;
  for (LinkId i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    if ((link.a == *a && link.b == *b) || (link.a == *b && link.b == *a)) return i;
  }
  return std::nullopt;
}

std::optional<SwitchId> find_switch(const Topology& topology, std::string_view name) {
  return find_named(topology.switches, name);
}

std::optional<HostId> find_host(const Topology& topology, std::string_view name) {
  return find_named(topology.hosts, name);
}

}  // namespace rocemu::network
