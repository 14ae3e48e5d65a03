// `rocemu fabric`: simulates a network with synthetic traffic, without programs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/base/text_table.h"
#include "emulator/network/file/network_file.h"
#include "emulator/network/traffic/flow_summary.h"
#include "emulator/network/traffic/traffic_patterns.h"
#include "emulator/scenario/document.h"
#include "emulator/scenario/node_reader.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr uint64_t kMostFlows = 10'000'000;

po::options_description options_of_fabric() {
  po::options_description options("Options");
  auto add = options.add_options();
  add("fabric", po::value<std::string>()->value_name("FILE"),
      "simulate the network of this file, or the installed one of this name, "
      "such as star-16");
  add("traffic", po::value<std::string>()->value_name("PATTERN"),
      "choose the traffic: websearch, incast or permutation");
  add("load", po::value<std::string>()->value_name("PART")->default_value("0.5"),
      "websearch: set the mean load of the hosts' links, 0.01 to 1");
  add("duration", po::value<std::string>()->value_name("TIME")->default_value("10ms"),
      "websearch: start flows for this virtual time");
  add("senders", po::value<std::string>()->value_name("N")->default_value("15"),
      "incast: let N hosts send to one host at the same time");
  add("rounds", po::value<std::string>()->value_name("N")->default_value("1"),
      "incast: run N rounds, each with another receiver");
  add("interval", po::value<std::string>()->value_name("TIME")->default_value("1ms"),
      "incast: start the next round after each TIME of virtual time");
  add("size", po::value<std::string>()->value_name("BYTES")->default_value("1000000"),
      "incast, permutation: send BYTES in each flow");
  add("mtu", po::value<std::string>()->value_name("BYTES")->default_value("4096"),
      "send at most BYTES of payload in a frame: 256, 512, 1024, 2048 or 4096");
  add("control", po::value<std::string>()->value_name("SCHEME"),
      "control congestion by SCHEME: dcqcn, timely or none (default: dcqcn if "
      "the network's file configures it, else none)");
  add("limit", po::value<std::string>()->value_name("TIME")->default_value("10s"),
      "stop after this virtual time, even if flows have not completed");
  add("seed", po::value<std::string>()->value_name("N")->default_value("1"),
      "seed the random choice of hosts, sizes and times with N; the same N gives the "
      "same result");
  add("json", po::bool_switch(), "print JSON");
  return options;
}

/// Parses a time in the notation of scenarios.
engine::Duration time_option(const po::variables_map& values, const char* name) {
  const std::string& text = values[name].as<std::string>();
  std::vector<scenario::Problem> problems;
  const scenario::NodeReader reader(problems);
  engine::Duration time{};
  const bool is_right = reader.attempt(
      [&] { time = reader.duration(scenario::Node::of(scenario::Node::Kind::kScalar, {}, text)); });
  if (!is_right || time.count() == 0)
    throw UsageError(
        fmt::format("fabric: --{} '{}' is not a time such as 250us or 10ms", name, text));
  return time;
}

uint64_t number_of(const po::variables_map& values, const char* name, uint64_t least,
                   uint64_t most) {
  return number_option("fabric", values, name, {least, most}).value();
}

uint64_t seed_of(const po::variables_map& values) {
  return number_of(values, "seed", 0, UINT64_MAX);
}

uint32_t mtu_of(const po::variables_map& values) {
  const std::string& text = values["mtu"].as<std::string>();
  const std::optional<uint64_t> mtu = options::read_number(text);
  if (!mtu || *mtu < 256 || *mtu > 4096 || !std::has_single_bit(*mtu))
    throw UsageError("fabric: --mtu '" + text + "' is not one of 256, 512, 1024, 2048 and 4096");
  return static_cast<uint32_t>(*mtu);
}

network::Topology read_fabric(const po::variables_map& values) {
  if (values.count("fabric") == 0)
    throw UsageError("fabric: no network given; for example: --fabric star-16");
  const std::string& name = values["fabric"].as<std::string>();
  try {
    network::NetworkFile read =
        network::parse_network_file(network::read_network(name, /*is_read_again=*/false), name);
    for (const std::string& warning : read.warnings)
      std::cerr << "rocemu: warning: " << warning << "\n";
    return std::move(read.topology);
  } catch (const std::runtime_error& error) {
    throw Failure(error.what());
  }
}

network::RateScheme scheme_of(const po::variables_map& values, const network::Topology& topology) {
  if (values.count("control") == 0)
    return topology.nic.dcqcn ? network::RateScheme::kDcqcn : network::RateScheme::kNone;
  const std::string& text = values["control"].as<std::string>();
  if (text == "dcqcn") return network::RateScheme::kDcqcn;
  if (text == "timely") return network::RateScheme::kTimely;
  if (text == "none") return network::RateScheme::kNone;
  throw UsageError("fabric: there is no congestion control '" + text +
                   "'; use dcqcn, timely or none");
}

std::vector<network::FlowSpec> flows_of(const po::variables_map& values,
                                        const network::Topology& topology) {
  if (values.count("traffic") == 0)
    throw UsageError(
        "fabric: no traffic given; use --traffic websearch, "
        "incast or permutation");
  const std::string& pattern = values["traffic"].as<std::string>();
  const uint64_t seed = seed_of(values);
  const uint64_t size = number_of(values, "size", 1, uint64_t{1} << 40);
  if (pattern == "websearch") {
    const double load = read_decimal("fabric", "--load", values["load"].as<std::string>(), 0.01, 1);
    return network::web_search(topology, seed, load, time_option(values, "duration"));
  }
  if (pattern == "incast") {
    const auto senders =
        static_cast<uint32_t>(number_of(values, "senders", 1, topology.hosts.size() - 1));
    const auto rounds = static_cast<uint32_t>(number_of(values, "rounds", 1, kMostFlows / senders));
    return network::incast(topology, seed, senders, size, rounds, time_option(values, "interval"));
  }
  if (pattern == "permutation") return network::permutation(topology, seed, size);
  throw UsageError("fabric: there is no traffic '" + pattern +
                   "'; use websearch, incast or permutation");
}

Json json_of(const network::FlowSummary& summary, double hops_per_second) {
  Json json{{"flows", summary.flows},
            {"completed", summary.completed},
            {"duration_ns", summary.duration.count()},
            {"payload_bytes", summary.payload_bytes},
            {"packet_hops", summary.packet_hops},
            {"ecn_marks", summary.ecn_marks},
            {"cnps", summary.cnps},
            {"pauses", summary.pauses},
            {"drops", summary.drops},
            {"longest_queue_bytes", summary.high_water_bytes},
            {"host_link_utilization", summary.mean_host_utilization},
            {"trunk_utilization", summary.mean_trunk_utilization}};
  Json& rows = json["slowdown"] = Json::array();
  for (const network::SlowdownRow& row : summary.slowdowns) {
    rows.push_back({{"sizes", row.sizes},
                    {"flows", row.flows},
                    {"mean", row.mean},
                    {"p50", row.median},
                    {"p95", row.p95},
                    {"p99", row.p99},
                    {"mean_completion_us", row.mean_completion_us}});
  }
  Json& links = json["busiest_ports"] = Json::array();
  for (const network::LinkUse& use : summary.busiest) {
    links.push_back({{"port", use.port},
                     {"utilization", use.utilization},
                     {"longest_queue_bytes", use.high_water_bytes},
                     {"ecn_marks", use.ecn_marks}});
  }
  json["packet_hops_per_second"] = hops_per_second;  // of CPU time; differs from run to run
  return json;
}

void print_summary(const network::FlowSummary& summary) {
  std::cout << fmt::format(
      "{} of {} flows completed in {:.3f} ms of virtual time\n{} packet-hops, {} ECN "
      "marks, {} CNPs, {} pauses, {} drops, longest queue {} bytes\nmean link "
      "utilization: host links {:.1f} %, trunks {:.1f} %\n\n",
      summary.completed, summary.flows, static_cast<double>(summary.duration.count()) / 1e6,
      summary.packet_hops, summary.ecn_marks, summary.cnps, summary.pauses, summary.drops,
      summary.high_water_bytes, summary.mean_host_utilization * 100,
      summary.mean_trunk_utilization * 100);
  Table slowdowns({"slowdown of flows", "flows", "mean", "p50", "p95", "p99", "mean us"});
  for (const network::SlowdownRow& row : summary.slowdowns) {
    slowdowns.add({row.sizes, std::to_string(row.flows), fmt::format("{:.2f}", row.mean),
                   fmt::format("{:.2f}", row.median), fmt::format("{:.2f}", row.p95),
                   fmt::format("{:.2f}", row.p99), fmt::format("{:.1f}", row.mean_completion_us)});
  }
  std::cout << slowdowns.text("") << "\n";
  Table links({"busiest port", "used", "longest queue", "ECN marks"});
  for (const network::LinkUse& use : summary.busiest) {
    links.add({use.port, fmt::format("{:.1f} %", use.utilization * 100),
               std::to_string(use.high_water_bytes), std::to_string(use.ecn_marks)});
  }
  std::cout << links.text("");
}

}  // namespace

std::string fabric_help() {
  return "usage: rocemu fabric --traffic PATTERN --fabric FILE [options]\n"
         "\n"
         "Runs synthetic traffic on a simulated network, without programs, and prints how long "
         "flows take, compared to an idle network, and what links and switches do. The network is "
         "that of `rocemu run --lockstep --fabric`; docs/fabric.md describes it and its files. "
         "Times are virtual, so the output is the same each time, except for the speed of the "
         "simulation "
         "itself on standard error.\n"
         "\n" +
         to_text(options_of_fabric()) +
         "\n"
         "Exit status: 0 if all flows completed, 1 if some did not within --limit or if the file "
         "is "
         "wrong, 2 for wrong usage.\n"
         "\n"
         "Examples:\n"
         "  rocemu fabric --traffic incast --senders 15 --fabric star-16\n"
         "  rocemu fabric --traffic websearch --load 0.6 --duration 2ms \\\n"
         "      --fabric fat-tree-1024 --json\n";
}

int fabric(const Arguments& arguments) {
  const po::variables_map values = parse_options("fabric", arguments, options_of_fabric());
  const network::Topology topology = read_fabric(values);
  const std::vector<network::FlowSpec> flows = flows_of(values, topology);
  network::FlowRunOptions options;
  options.scheme = scheme_of(values, topology);
  options.payload_bytes = mtu_of(values);
  network::FlowRun run(topology, seed_of(values), options);
  for (const network::FlowSpec& flow : flows) run.add(flow);
  const engine::Duration limit = time_option(values, "limit");
  const std::clock_t begin = std::clock();
  run.run_until(engine::Instant(limit));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const network::FlowSummary summary = network::summarize(run, topology);
  const double speed = static_cast<double>(summary.packet_hops) / std::max(seconds, 1e-9);
  if (values["json"].as<bool>()) {
    print_json(json_of(summary, speed));
  } else {
    print_summary(summary);
    std::cerr << fmt::format("rocemu: {:.2f} million packet-hops per second of CPU time\n",
                             speed / 1e6);
  }
  if (summary.completed == summary.flows) return 0;
  std::cerr << fmt::format(
      "rocemu: {} flows did not complete within {:.3f} ms of virtual time; they may wait for each "
      "other forever (PFC), or --limit is too short\n",
      summary.flows - summary.completed, static_cast<double>(limit.count()) / 1e6);
  return kExitFailure;
}

}  // namespace rocemu::command
