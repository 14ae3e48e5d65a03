#include "emulator/command/nic/show_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/command/base/text_table.h"

namespace rocemu::command {
namespace {

uint64_t sum_of(const Json& port, const char* counter) {
  uint64_t sum = 0;
  for (const Json& priority : port.at("priorities")) sum += priority.at(counter).get<uint64_t>();
  return sum;
}

/// Returns the port's state, such as "up", "down" or "paused 3".
std::string state_of(const Json& port) {
  if (!port.at("is_up").get<bool>()) return "down";
  std::string paused;
  for (const Json& priority : port.at("priorities")) {
    if (priority.at("is_paused").get<bool>())
      paused += fmt::format(" {}", priority.at("priority").get<int>());
  }
  return paused.empty() ? "up" : "paused" + paused;
}

std::string used_text(const Json& port, double time_ns) {
  const auto bits = 8 * static_cast<double>(sum_of(port, "tx_bytes"));
  const double capacity = port.at("rate_bps").get<double>() * time_ns / 1e9;
  return capacity > 0 ? fmt::format("{:.1f} %", 100 * bits / capacity) : "-";
}

}  // namespace

std::string network_text(const Json& state) {
  const auto time_ns = state.at("time_ns").get<double>();
  std::string text = fmt::format("at {:.3f} us: {} frames under way, {} packet-hops so far\n",
                                 time_ns / 1000, state.at("packets_in_flight").get<uint64_t>(),
                                 state.at("packet_hops").get<uint64_t>());
  Table table({"port", "to", "state", "used", "queue", "longest", "marks", "drops", "pauses"});
  size_t quiet = 0;
  for (const Json& port : state.at("ports")) {
    if (port.at("priorities").empty() && state_of(port) == "up") {
      ++quiet;
      continue;
    }
    table.add({port.at("port").get<std::string>(), port.at("peer").get<std::string>(),
               state_of(port), used_text(port, time_ns),
               std::to_string(sum_of(port, "queue_bytes")),
               std::to_string(sum_of(port, "longest_queue_bytes")),
               std::to_string(sum_of(port, "ecn_marks")), std::to_string(sum_of(port, "drops")),
               std::to_string(sum_of(port, "rx_pauses"))});
  }
  const size_t count = state.at("ports").size();
  if (quiet < count) text += table.text("");
  if (quiet > 0) text += fmt::format("{} of {} ports had no traffic\n", quiet, count);
  return text;
}

}  // namespace rocemu::command
