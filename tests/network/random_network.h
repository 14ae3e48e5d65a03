// Random networks, frames and faults, which a seed determines.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/engine/base/random.h"
#include "emulator/network/network.h"

namespace rocemu::network::testing {

class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t limit) { return random_.next() % limit; }
  bool coin() { return below(2) == 0; }

  /// Returns a connected network: a tree of switches with additional links.
  Topology topology() {
    Topology result;
    const uint64_t switches = 1 + below(8);
    for (uint64_t i = 0; i < switches; ++i) {
      result.switches.push_back({"s" + std::to_string(i), {}});
      SwitchParameters& at = result.switches.back().parameters;
      at.buffer_bytes = 4'000'000 + below(4'000'000);
      if (coin()) at.pfc = {.xoff_bytes = 20'000 + below(80'000), .xon_bytes = below(20'000)};
      if (coin())
        at.ecn = {.kmin_bytes = below(10'000), .kmax_bytes = 10'000 + below(90'000), .pmax = 0.5};
      if (i > 0)
        add_link(result, {true, static_cast<uint32_t>(below(i))}, static_cast<uint32_t>(i));
    }
    for (uint64_t i = below(2 * switches); i > 0 && switches > 1; --i) {
      const auto a = static_cast<uint32_t>(below(switches));
      const auto b = static_cast<uint32_t>(below(switches));
      if (a != b) add_link(result, {true, a}, b);
    }
    const uint64_t hosts = 2 + below(12);
    for (uint32_t i = 0; i < hosts; ++i) {
      result.hosts.push_back({"h" + std::to_string(i)});
      add_link(result, {false, i}, static_cast<uint32_t>(below(switches)));
    }
    result.routing = coin() ? Routing::kShortest : Routing::kUpDown;
    return result;
  }

  Packet packet(const Topology& topology, uint64_t token) {
    const auto hosts = topology.hosts.size();
    const auto from = static_cast<HostId>(below(hosts));
    return {.token = token,
            .from = from,
            .to = static_cast<HostId>((from + 1 + below(hosts - 1)) % hosts),
            .bytes_on_wire = 84 + static_cast<uint32_t>(below(4117)),
            .flow_hash = static_cast<uint32_t>(random_.next()),
            .dscp = static_cast<uint8_t>(coin() ? 0 : 48),
            .ecn = static_cast<uint8_t>(below(4)),
            .ttl = 64};
  }

  void fault(Network& network, Instant now) {
    const auto link = static_cast<LinkId>(below(network.topology().links.size()));
    const auto at = static_cast<SwitchId>(below(network.topology().switches.size()));
    switch (below(5)) {
      case 0:
        return network.set_link_state(link, coin(), now);
      case 1:
        return network.set_link_rate(link, 1 + below(100'000'000'000), now);
      case 2:
        return network.set_corruption(link, 0.1);
      case 3:
        return network.reboot_switch(at, Duration(static_cast<int64_t>(below(50'000))), now);
      case 4:
        return network.set_pause_storm(static_cast<HostId>(below(network.topology().hosts.size())),
                                       3, coin(), now);
    }
  }

 private:
  void add_link(Topology& topology, NodeRef a, uint32_t b) {
    topology.links.push_back({.a = a,
                              .b = {true, b},
                              .rate_bps = 1'000'000'000 + below(400'000'000'000),
                              .delay = Duration(static_cast<int64_t>(below(3000)))});
  }

  engine::Random random_;
};

}  // namespace rocemu::network::testing
