#include "emulator/daemon/control/network_json.h"

#include <nlohmann/json.hpp>

#include "emulator/daemon/control/control_server.h"
#include "emulator/network/programs/program_network.h"

namespace rocemu::daemon {
namespace {

Json port_json(const network::Network& network, network::PortId id) {
  const network::PortInfo& port = network.port(id);
  Json json;
  json["port"] = network::port_name(network.topology(), port);
  json["peer"] = network::port_name(network.topology(), network.port(port.peer));
  json["is_up"] = network.is_link_up(port.link);
  json["rate_bps"] = network.rate_bps(port.link);
  Json& priorities = json["priorities"] = Json::array();
  for (uint8_t i = 0; i < network::kPriorities; ++i) {
    const network::PriorityCounters& counters = network.counters(id, i);
    if (counters == network::PriorityCounters{}) continue;
    priorities.push_back({{"priority", i},
                          {"is_paused", network.is_paused(id, i)},
                          {"queue_bytes", counters.queue_bytes},
                          {"longest_queue_bytes", counters.queue_high_water_bytes},
                          {"tx_packets", counters.tx_packets},
                          {"tx_bytes", counters.tx_bytes},
                          {"rx_packets", counters.rx_packets},
                          {"rx_bytes", counters.rx_bytes},
                          {"ecn_marks", counters.ecn_marks},
                          {"drops", counters.drops},
                          {"tx_pauses", counters.tx_pauses},
                          {"rx_pauses", counters.rx_pauses},
                          {"paused_ns", counters.paused.count()}});
  }
  return json;
}

}  // namespace

Json network_json(const engine::Engine& engine, engine::Instant now) {
  const auto* const programs =
      dynamic_cast<const network::ProgramNetwork*>(engine.simulated_network());
  if (programs == nullptr) {
    throw ControlServer::Refusal(
        "this NIC has no simulated network; start it with --lockstep --fabric FILE");
  }
  const network::Network& network = programs->network();
  Json json{{"time_ns", now.time_since_epoch().count()},
            {"packets_in_flight", network.packets_in_flight()},
            {"packet_hops", network.packet_hops()}};
  Json& ports = json["ports"] = Json::array();
  for (network::PortId id = 0; id < network.port_count(); ++id)
    ports.push_back(port_json(network, id));
  return json;
}

}  // namespace rocemu::daemon
