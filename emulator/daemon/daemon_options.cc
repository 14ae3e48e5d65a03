#include "emulator/daemon/daemon_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <boost/program_options.hpp>
#include <cerrno>
#include <charconv>
#include <iostream>
#include <limits>
#include <string_view>

#include "emulator/daemon/base/start_error.h"
#include "emulator/options/checked_options.h"

namespace rocemu::daemon {
namespace {

namespace po = boost::program_options;

/// Of a frame on a virtual clock: about that of a link of 100 Gbit/s with a switch in it.
constexpr engine::Duration kVirtualLinkLatency = std::chrono::microseconds(1);

constexpr char kUsage[] =
    R"(Usage: rocemud --dir DIR [OPTION...]

The NIC of rocemu: a daemon that emulates RoCEv2 devices for the RDMA programs of its user.
`rocemu run` and `rocemu up` start it; by itself it is of use in scripts and debuggers.
)";

constexpr char kExamples[] =
    R"(
It makes DIR, serves there until SIGTERM or SIGINT, and removes DIR when it ends.

Examples:
  rocemud --dir /tmp/nic --capture /tmp/nic.pcap
  rocemud --dir /tmp/nic --device mlx5_0 --device mlx5_1=10.0.0.1,fd00::1
  rocemud --dir /tmp/nic --device rocemu0=eth0 --udp

Exit status: 0 after an orderly end, 1 for a failure, 2 for a wrong command line.
)";

po::options_description describe() {
  po::options_description options("Options");
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()("dir", text("DIR"), "the runtime directory to make (mode 0700); required");
  options.add_options()("devices", text("N"),
                        "emulate rocemu0 to rocemu(N-1), 1 to 250 of them; default 2");
  options.add_options()(
      "device", po::value<std::vector<std::string>>()->value_name("NAME[=ADDR[,ADDR...]|=IF]"),
      "emulate a device of this name and, in this order in its GID table, these IP addresses, or "
      "those of the network interface IF (default: those of the default device in its place); "
      "repeat it for more devices");
  options.add_options()("udp", po::bool_switch(),
                        "attach the devices to UDP port 4791 of their addresses, for daemons, "
                        "containers and hosts beyond this one; ADDR is then one of this machine");
  options.add_options()("strict-icrc", po::bool_switch(),
                        "with --udp, check ICRCs over IPv4 with the IP header that came: its "
                        "identification, which a UDP socket does not tell, is else computed from "
                        "the ICRC, so that one damaged frame in 65,536 passes. Needs CAP_NET_RAW");
  options.add_options()("capture", text("FILE"), "write every frame to this pcap file");
  options.add_options()("snap-length", text("BYTES"), "of each frame so many bytes only");
  options.add_options()("capture-last", text("N"), "only the last N frames, written at the end");
  options.add_options()("capture-fd", text("N"),
                        "the capture is open already, as descriptor N; FILE is its name");
  options.add_options()("clock", text("CLOCK"),
                        "real (the default), or virtual: begins at 0, and jumps to the next "
                        "deadline when nothing else is to be done");
  options.add_options()("lockstep", po::bool_switch(),
                        "on a virtual clock, do something only while every client waits");
  options.add_options()("schedule", text("N"),
                        "on a virtual clock, another order of the programs' turns for each N; "
                        "default 0, the order in which threads were started");
  options.add_options()("ack-coalescing", text("N"),
                        "messages of a burst that one acknowledgement may be for, 1 to 16; default "
                        "16, and 1 on a virtual clock");
  options.add_options()("record", text("DIR"),
                        "write all that happens to DIR: journal, events.jsonl");
  options.add_options()("record-limit", text("SIZE"),
                        "end the recording as --record-policy says when its journal has this size "
                        "(500k, 100M, 2G)");
  options.add_options()("record-policy", text("POLICY"),
                        "when that cannot go on, as on a full disk: continue (the default) without "
                        "it, or stop");
  options.add_options()("scenario", po::value<std::vector<std::string>>()->value_name("FILE"),
                        "the faults to have, as YAML; may be repeated");
  options.add_options()("scenario-fd", text("N"),
                        "the scenarios were read already: their text comes from descriptor N; each "
                        "FILE is the name of one");
  options.add_options()("seed", text("N"),
                        "of all that is random, such as MR keys; default 0, with --udp another at "
                        "each start");
  options.add_options()("threads", po::bool_switch(),
                        "each device in a thread of its own, for machines with cores to spare: "
                        "faster, but without faults, recording, virtual time and --udp, which need "
                        "one thread");
  options.add_options()("busy-poll", po::bool_switch(),
                        "never sleep nor yield; for machines with a processor to spare for each "
                        "thread of the daemon");
  options.add_options()("sleep-between-turns", po::bool_switch(),
                        "on a virtual clock, never wait awake, for 50 us at most, until a program "
                        "gives its turn back");
  options.add_options()("topology", text("TOPOLOGY"),
                        "pci (the default): each device is a PCI function in sysfs; flat: all are "
                        "virtual; else a file with NUMA nodes, PCI switches and devices");
  options.add_options()("same-keys", po::bool_switch(), "L_Key and R_Key of a region are equal");
  options.add_options()("require-grh", po::bool_switch(),
                        "refuse address vectors without GRH, as RoCE NICs do");
  options.add_options()("ready-fd", text("FD"),
                        "write \"ready\\n\" there when programs may come, or \"error: ...\\n\"");
  options.add_options()("lifetime-fd", text("FD"),
                        "end when reading it gives end of file; SIGINT is ignored then");
  options.add_options()("run-pid", text("PID"),
                        "the process whose descendants are the programs of the run");
  options.add_options()("tell-stuck", po::bool_switch(),
                        "keep the latest frames and completions, and on a virtual clock send the "
                        "process of --run-pid SIGURG when nothing can happen any more");
  options.add_options()("tell-exits", po::bool_switch(),
                        "on a virtual clock, report each program that ends with a status other "
                        "than 0 or by a signal, on standard error");
  options.add_options()("log-level", text("LEVEL"),
                        "trace, debug, info, warn (the default), error or off; to standard error");
  options.add_options()("version", "print the version");
  options.add_options()("help", "print this help");
  return options;
}

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
  uint32_t seed = 0;  // of a size that people can type
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) fail_start("getrandom", errno);
  return seed;
}

/// What the options of the fabric mean for the daemon.
Options options_of(options::FabricOptions checked) {
  Options options;
  engine::FabricConfig& fabric = options.fabric;
  fabric.devices = std::move(checked.devices);
  // Peers remember connections by numbers that come from the seed, longer than a daemon may live.
  fabric.seed = checked.seed.value_or(checked.udp ? random_seed() : 0);
  fabric.trace_frames = !checked.capture.empty() || !checked.record.empty();
  fabric.ack_coalescing = checked.ack_coalescing;
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
  if (checked.is_virtual) {
    options.clock = Clock::Kind::kVirtual;
    fabric.link_latency = kVirtualLinkLatency;
  }
  options.lockstep = checked.lockstep;
  options.schedule = checked.schedule;
  options.threads = checked.threads;
  options.busy_poll = checked.busy_poll;
  options.sleep_between_turns = checked.sleep_between_turns;
  options.log_level = spdlog::level::from_str(checked.log_level);
  return options;
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const po::options_description description = describe();
  po::variables_map given;
  try {
    // No guessing: an abbreviation in a script breaks when an option is added.
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
    throw UsageError("only options are taken; see rocemud --help");
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  if (given.count("help") != 0) {
    std::cout << kUsage << "\n" << description << kExamples;
    return std::nullopt;
  }
  if (given.count("version") != 0) {
    std::cout << "rocemud " ROCEMU_VERSION "\n";
    return std::nullopt;
  }
  const auto text = [&](const char* option) {
    return given.count(option) == 0 ? std::string() : given[option].as<std::string>();
  };
  if (text("dir").empty()) throw UsageError("--dir is required: the runtime directory to make");
  Options options;
  try {
    options = options_of(options::check_options(given));
  } catch (const options::OptionError& error) {
    throw UsageError(error.what());
  }
  options.dir = text("dir");
  options.tell_stuck = given["tell-stuck"].as<bool>();
  options.tell_exits = given["tell-exits"].as<bool>();
  if (given.count("capture-fd") != 0) {
    if (options.capture.empty()) throw UsageError("--capture-fd: say its name by --capture");
    options.capture_fd = parse_fd("--capture-fd", text("capture-fd"));
  }
  if (given.count("scenario-fd") != 0) {
    if (options.scenarios.empty()) {
      throw UsageError("--scenario-fd: say the scenario's name by --scenario");
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
