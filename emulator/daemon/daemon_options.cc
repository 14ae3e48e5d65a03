#include "emulator/daemon/daemon_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <charconv>
#include <iostream>
#include <limits>
#include <string_view>

#include "emulator/daemon/base/start_error.h"
#include "emulator/network/file/file_plan.h"
#include "emulator/options/checked_options.h"
#include "emulator/options/describe.h"

namespace rocemu::daemon {
namespace {

namespace po = boost::program_options;

/// The latency of each frame on a virtual clock. It is about that of a 100 Gbit/s link with a
/// switch.
constexpr engine::Duration kVirtualLinkLatency = std::chrono::microseconds(1);

constexpr char kUsage[] =
    R"(Usage: rocemud --dir DIR [OPTION...]

Emulates RoCEv2 devices for the RDMA programs of one user. `rocemu run` and `rocemu up` start
this daemon; start it yourself in scripts and debuggers.
)";

constexpr char kExamples[] =
    R"(
Creates DIR, serves programs there until SIGTERM or SIGINT, and removes DIR when it ends.

Examples:
  rocemud --dir /tmp/nic --capture /tmp/nic.pcap
  rocemud --dir /tmp/nic --device mlx5_0 --device mlx5_1=10.0.0.1,fd00::1
  rocemud --dir /tmp/nic --device rocemu0=eth0 --udp

Exit status: 0 after an orderly end, 1 on failure, 2 for wrong usage.
)";

int parse_number(const std::string& option, const std::string& text, int least) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    throw UsageError(fmt::format("{}: '{}' is not a number from {} to {}", option, text, least,
                                 std::numeric_limits<int>::max()));
  }
  return number;
}

int parse_fd(const std::string& option, const std::string& text) {
  const int fd = parse_number(option, text, 0);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    throw UsageError(fmt::format("{}: file descriptor {} is not open", option, fd));
  }
  return fd;
}

uint64_t random_seed() {
  uint32_t seed = 0;  // short enough to type
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) fail_start("getrandom", errno);
  return seed;
}

/// Converts the checked options of the command line to those of the daemon.
Options options_of(options::FabricOptions checked) {
  Options options;
  engine::FabricConfig& fabric = options.fabric;
  fabric.devices = std::move(checked.devices);
  // With UDP the seed is random, since connection numbers are derived from it: peers may remember
  // connections for longer than a daemon lives.
  fabric.seed = checked.seed.value_or(checked.udp ? random_seed() : 0);
  fabric.trace_frames = !checked.capture.empty() || !checked.record.empty();
  fabric.ack_coalescing = checked.ack_coalescing;
  fabric.adversarial = checked.adversarial;
  fabric.adversarial_choices = checked.adversarial_choices;
  fabric.reports_adversarial_choices = !checked.record.empty();
  fabric.same_keys = checked.same_keys;
  if (checked.udp) {
    for (std::string& interface : checked.interfaces) options.udp.push_back({std::move(interface)});
  } else {
    options.addresses = {.interfaces = std::move(checked.interfaces),
                         .first_has_machines = checked.first_has_machines_addresses};
  }
  options.strict_icrc = checked.strict_icrc;
  options.topology = std::move(checked.topology);
  options.capture = std::move(checked.capture);
  options.capture_limits = {.snap_length = checked.snap_length,
                            .last_frames = checked.capture_last};
  options.record = std::move(checked.record);
  options.record_limit = checked.record_limit;
  options.stop_without_record = checked.stop_without_record;
  options.scenarios = std::move(checked.scenarios);
  if (checked.lockstep) {
    options.clock = Clock::Kind::kVirtual;
    fabric.link_latency = kVirtualLinkLatency;
  }
  if (checked.network != nullptr) {
    std::vector<network::PortId> ports;
    for (options::CapturedPort& one : checked.captured_ports) {
      ports.push_back(one.port);
      options.port_captures.push_back(std::move(one.file));
    }
    fabric.network = std::make_shared<network::FilePlan>(
        checked.network->text(), checked.network->topology(), std::move(ports));
  }
  options.schedule.number = checked.schedule.number;
  options.schedule.has_stops = checked.schedule.has_stops;
  for (const auto& [thread, call] : checked.schedule.stops)
    options.schedule.stops.push_back({.thread = thread, .call = call});
  options.busy_poll = checked.busy_poll;
  options.exact_memory = checked.exact_memory;
  options.keep_real_devices = checked.keep_real_devices;
  options.sleep_between_turns = checked.sleep_between_turns;
  options.log_level = spdlog::level::from_str(checked.log_level);
  return options;
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const po::options_description description =
      options::options_in({argv + std::min(argc, 1), argv + argc}, options::Command::kDaemon);
  po::variables_map given;
  try {
    // Abbreviated options are not accepted, because a script with an abbreviation would fail once a
    // similar option is added.
    const auto style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    const po::positional_options_description no_positionals;
    po::store(po::command_line_parser(argc, argv)
                  .options(description)
                  .positional(no_positionals)
                  .style(style)
                  .run(),
              given);
  } catch (const po::too_many_positional_options_error&) {
    throw UsageError("rocemud accepts only options; see rocemud --help");
  } catch (const po::unknown_option& error) {
    throw UsageError(options::why_unknown(error.get_option_name()).value_or(error.what()));
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  options::add_defaults(options::Command::kDaemon, given);
  if (given["help"].as<bool>()) {
    std::cout << kUsage << "\n"
              << options::help_of(options::Command::kDaemon, /*all=*/true) << kExamples;
    return std::nullopt;
  }
  if (given["version"].as<bool>()) {
    std::cout << "rocemud " ROCEMU_VERSION "\n";
    return std::nullopt;
  }
  const auto text = [&](const char* option) {
    return given.count(option) == 0 ? std::string() : given[option].as<std::string>();
  };
  if (text("dir").empty()) throw UsageError("--dir is required: the runtime directory to create");
  Options options;
  try {
    options = options_of(options::check_options(given));
  } catch (const options::OptionError& error) {
    throw UsageError(error.what());
  }
  options.dir = text("dir");
  options.tell_stuck = given["report-stuck"].as<bool>();
  options.tell_exits = given["report-failures"].as<bool>();
  options.sanitizer = text("sanitizer");
  if (given.count("capture-fd") != 0) {
    if (options.capture.empty())
      throw UsageError("--capture-fd needs the file's name in --capture");
    options.capture_fd = parse_fd("--capture-fd", text("capture-fd"));
  }
  if (given.count("scenario-fd") != 0) {
    if (options.scenarios.empty()) {
      throw UsageError("--scenario-fd needs the scenario's name in --scenario");
    }
    options.scenario_fd = parse_fd("--scenario-fd", text("scenario-fd"));
  }
  if (given.count("ready-fd") != 0) options.ready_fd = parse_fd("--ready-fd", text("ready-fd"));
  if (given.count("lifetime-fd") != 0) {
    options.lifetime_fd = parse_fd("--lifetime-fd", text("lifetime-fd"));
  }
  if (given.count("run-pid") != 0) options.run_pid = parse_number("--run-pid", text("run-pid"), 1);
  return options;
}

int find_ready_fd(int argc, const char* const* argv) {
  constexpr std::string_view kOption = "--ready-fd";
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (!argument.starts_with(kOption)) continue;
    argument.remove_prefix(kOption.size());
    if (argument.empty() && i + 1 < argc) {
      argument = argv[i + 1];
    } else if (argument.starts_with('=')) {
      argument.remove_prefix(1);
    }
    int fd = -1;
    const auto [end, error] =
        std::from_chars(argument.data(), argument.data() + argument.size(), fd);
    if (error == std::errc() && end == argument.data() + argument.size()) return fd;
  }
  return -1;
}

}  // namespace rocemu::daemon
