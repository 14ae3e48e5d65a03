#include "emulator/network/buffer_cycles.h"

#include <algorithm>

#include "emulator/network/network_routes.h"

namespace rocemu::network {
namespace {

/// Returns the dependencies of each port, by PortId: the ports in whose queue a frame may have to
/// wait after it has left the port.
std::vector<std::vector<PortId>> dependencies_of(const Topology& topology,
                                                 const std::vector<PortInfo>& ports) {
  Routes routes(topology, ports);
  routes.compute(std::vector<bool>(topology.links.size(), true));
  std::vector<std::vector<PortId>> next(ports.size());
  std::vector<bool> is_done(topology.switches.size(), false);
  for (HostId host = 0; host < topology.hosts.size(); ++host) {
    // Frames to all hosts of one switch take the same paths to that switch, so one of these hosts
    // is enough.
    const NodeRef at = ports[ports[host].peer].node;
    if (!at.is_switch || is_done[at.index]) continue;
    is_done[at.index] = true;
    for (SwitchId from = 0; from < topology.switches.size(); ++from) {
      for (const PortId port : routes.ports_to(from, host)) {
        const NodeRef through = ports[ports[port].peer].node;
        if (!through.is_switch || through == at) continue;
        for (const PortId after : routes.ports_to(through.index, host)) {
          std::vector<PortId>& known = next[port];
          if (std::ranges::find(known, after) == known.end()) known.push_back(after);
        }
      }
    }
  }
  return next;
}

}  // namespace

std::vector<PortId> find_buffer_cycle(const Topology& topology) {
  const std::vector<PortInfo> ports = ports_of(topology);
  const std::vector<std::vector<PortId>> next = dependencies_of(topology, ports);
  enum class State : uint8_t { kNew, kOnPath, kDone };
  std::vector<State> states(ports.size(), State::kNew);
  struct Step {
    PortId port;
    size_t tried;
  };
  std::vector<Step> path;
  for (PortId start = 0; start < ports.size(); ++start) {
    if (states[start] != State::kNew) continue;
    path.push_back({start, 0});
    states[start] = State::kOnPath;
    while (!path.empty()) {
      Step& step = path.back();
      if (step.tried == next[step.port].size()) {
        states[step.port] = State::kDone;
        path.pop_back();
        continue;
      }
      const PortId port = next[step.port][step.tried++];
      if (states[port] == State::kOnPath) {
        std::vector<PortId> cycle;
        for (const Step& one : path)
          if (one.port == port || !cycle.empty()) cycle.push_back(one.port);
        return cycle;
      }
      if (states[port] == State::kDone) continue;
      states[port] = State::kOnPath;
      path.push_back({port, 0});
    }
  }
  return {};
}

}  // namespace rocemu::network
