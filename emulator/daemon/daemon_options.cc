#include "emulator/daemon/daemon_options.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <string_view>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMaxDevices = 250;
constexpr uint32_t kDefaultDevices = 2;
constexpr size_t kMaxNameLength = 63;  // IBV_SYSFS_NAME_MAX with its NUL is 64

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
      "device", po::value<std::vector<std::string>>()->value_name("NAME[=ADDR[,ADDR...]]"),
      "emulate a device of this name and, in this order in its GID table, these IP addresses "
      "(default: those of the default device in its place); repeat it for more devices");
  options.add_options()("udp", po::bool_switch(),
                        "attach the devices to UDP port 4791 of their addresses, for daemons, "
                        "containers and hosts beyond this one; ADDR is then one of this machine, "
                        "or the name of a network interface for all of its addresses");
  options.add_options()("strict-icrc", po::bool_switch(),
                        "with --udp, check ICRCs over IPv4 with the IP header that came: its "
                        "identification, which a UDP socket does not tell, is else computed from "
                        "the ICRC, so that one damaged frame in 65,536 passes. Needs CAP_NET_RAW");
  options.add_options()("capture", text("FILE"), "write every frame to this pcap file");
  options.add_options()("capture-fd", text("N"),
                        "the capture is open already, as descriptor N; FILE is its name");
  options.add_options()("clock", text("CLOCK"),
                        "real (the default), or virtual: begins at 0, and jumps to the next "
                        "deadline when nothing else is to be done");
  options.add_options()("lockstep", po::bool_switch(),
                        "on a virtual clock, do something only while every client waits");
  options.add_options()("record", text("DIR"),
                        "write all that happens to DIR: journal, events.jsonl");
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
  options.add_options()("require-grh", po::bool_switch(),
                        "refuse address vectors without GRH, as RoCE NICs do");
  options.add_options()("ready-fd", text("FD"),
                        "write \"ready\\n\" there when programs may come, or \"error: ...\\n\"");
  options.add_options()("lifetime-fd", text("FD"),
                        "end when reading it gives end of file; SIGINT is ignored then");
  options.add_options()("log-level", text("LEVEL"),
                        "trace, debug, info, warn (the default), error or off; to standard error");
  options.add_options()("version", "print the version");
  options.add_options()("help", "print this help");
  return options;
}

template <class Number>
Number parse_number(const std::string& option, const std::string& text, Number least, Number most) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw UsageError(
        fmt::format("{}: '{}' is not a number from {} to {}", option, text, least, most));
  }
  return number;
}

int parse_fd(const std::string& option, const std::string& text) {
  const int fd = parse_number<int>(option, text, 0, std::numeric_limits<int>::max());
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    throw UsageError(fmt::format("{}: file descriptor {} is not open", option, fd));
  }
  return fd;
}

void check_name(const std::string& name, const std::string& text) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
  };
  if (name.empty() || name.size() > kMaxNameLength || name[0] == '.' ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    throw UsageError(fmt::format(
        "--device {}: a name has 1 to {} letters, digits, '_', '-' and '.', and does not start "
        "with '.'",
        text, kMaxNameLength));
  }
}

/// One word that is no address, as long as an interface's name may be.
bool may_be_interface(std::string_view text) {
  constexpr size_t kLongest = 15;  // IFNAMSIZ with its NUL is 16
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_of(",:/ ") == std::string_view::npos && !wire::parse_ip_address(text);
}

std::vector<wire::IpAddress> parse_addresses(std::string_view list, const std::string& text) {
  std::vector<wire::IpAddress> addresses;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    const std::optional<wire::IpAddress> address = wire::parse_ip_address(one);
    if (!address) {
      throw UsageError(fmt::format("--device {}: '{}' is not an IPv4 or IPv6 address", text, one));
    }
    addresses.push_back(*address);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  if (addresses.size() > engine::kGidTableLength) {
    throw UsageError(fmt::format("--device {}: a device has at most {} addresses", text,
                                 engine::kGidTableLength));
  }
  return addresses;
}

engine::FabricConfig parse_fabric(const po::variables_map& given, std::vector<UdpPlace>& udp) {
  engine::FabricConfig fabric;
  const bool on_udp = given["udp"].as<bool>();
  if (on_udp && given.count("device") == 0) {
    throw UsageError(
        "--udp: say by --device which interface or address each device has, for example "
        "--device rocemu0=eth0");
  }
  if (given.count("device") != 0) {
    if (given.count("devices") != 0) throw UsageError("give --devices or --device, not both");
    fabric.devices =
        parse_devices(given["device"].as<std::vector<std::string>>(), on_udp ? &udp : nullptr);
  } else {
    const uint32_t count = given.count("devices") == 0
                               ? kDefaultDevices
                               : parse_number("--devices", given["devices"].as<std::string>(),
                                              uint32_t{1}, kMaxDevices);
    fabric = engine::default_fabric(count);
  }
  for (engine::DeviceConfig& device : fabric.devices) {
    device.policy.require_grh = given["require-grh"].as<bool>();
  }
  // Peers remember connections by numbers that come from the seed, longer than a daemon may live.
  if (on_udp) fabric.seed = std::random_device()();
  if (given.count("seed") != 0) {
    fabric.seed = parse_number<uint64_t>("--seed", given["seed"].as<std::string>(), 0,
                                         std::numeric_limits<uint64_t>::max());
  }
  fabric.trace_frames = given.count("capture") != 0 || given.count("record") != 0;
  return fabric;
}

spdlog::level::level_enum parse_level(const std::string& text) {
  using Level = std::pair<std::string_view, spdlog::level::level_enum>;
  constexpr Level kLevels[] = {{"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
                               {"info", spdlog::level::info},   {"warn", spdlog::level::warn},
                               {"error", spdlog::level::err},   {"off", spdlog::level::off}};
  const auto* found = std::find_if(std::begin(kLevels), std::end(kLevels),
                                   [&](const Level& level) { return level.first == text; });
  if (found == std::end(kLevels)) {
    throw UsageError("--log-level: '" + text + "' is not trace, debug, info, warn, error or off");
  }
  return found->second;
}

/// What happens in several threads happens in an order that nobody chose.
void refuse_with_threads(const po::variables_map& given) {
  const bool is_virtual =
      given.count("clock") != 0 && given["clock"].as<std::string>() == "virtual";
  const char* option = nullptr;
  if (given["lockstep"].as<bool>()) option = "--lockstep";
  if (is_virtual) option = "--clock virtual";
  if (given.count("record") != 0) option = "--record";
  if (given.count("scenario") != 0) option = "--scenario";
  if (given["udp"].as<bool>()) option = "--udp";
  if (option == nullptr) return;
  throw UsageError(fmt::format("{} needs one thread; leave out --threads", option));
}

}  // namespace

std::vector<engine::DeviceConfig> parse_devices(const std::vector<std::string>& texts,
                                                std::vector<UdpPlace>* udp) {
  if (texts.size() > kMaxDevices) {
    throw UsageError(fmt::format("at most {} devices are possible", kMaxDevices));
  }
  std::vector<engine::DeviceConfig> devices =
      engine::default_fabric(static_cast<uint32_t>(texts.size())).devices;
  std::set<std::string> names;
  std::set<wire::IpAddress> taken;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    const size_t equals = text.find('=');
    devices[i].name = text.substr(0, equals);
    check_name(devices[i].name, text);
    if (!names.insert(devices[i].name).second) {
      throw UsageError("--device " + text + ": there are two devices of this name");
    }
    if (udp != nullptr && equals == std::string::npos) {
      throw UsageError("--device " + text + ": with --udp, say where it is: " + text +
                       "=ADDR or =INTERFACE");
    }
    if (udp != nullptr) udp->emplace_back();
    if (udp != nullptr && may_be_interface(std::string_view(text).substr(equals + 1))) {
      devices[i].addresses.clear();
      udp->back().interface = text.substr(equals + 1);
    } else if (equals != std::string::npos) {
      devices[i].addresses = parse_addresses(std::string_view(text).substr(equals + 1), text);
    }
    for (const wire::IpAddress& address : devices[i].addresses) {
      if (!taken.insert(address).second) {
        throw UsageError(fmt::format("--device {}: the address {} is given twice", text,
                                     wire::to_string(address)));
      }
    }
  }
  return devices;
}

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
  Options options;
  options.dir = text("dir");
  if (options.dir.empty()) throw UsageError("--dir is required: the runtime directory to make");
  options.fabric = parse_fabric(given, options.udp);
  options.strict_icrc = given["strict-icrc"].as<bool>();
  if (options.strict_icrc && options.udp.empty()) {
    throw UsageError("--strict-icrc is for frames that come by --udp; give both");
  }
  options.capture = text("capture");
  if (given.count("capture") != 0 && options.capture.empty()) {
    throw UsageError("--capture: the file's name is empty");
  }
  if (given.count("capture-fd") != 0) {
    if (options.capture.empty()) throw UsageError("--capture-fd: say its name by --capture");
    options.capture_fd = parse_fd("--capture-fd", text("capture-fd"));
  }
  options.lockstep = given["lockstep"].as<bool>();
  if (const std::string clock = text("clock"); clock == "virtual" || options.lockstep) {
    if (clock == "real") throw UsageError("--lockstep has a virtual clock, not --clock real");
    if (!options.udp.empty()) {
      throw UsageError("--udp needs the real clock: who is on the network has that one");
    }
    options.clock = Clock::Kind::kVirtual;
    options.fabric.link_latency = kVirtualLinkLatency;
  } else if (!clock.empty() && clock != "real") {
    throw UsageError("--clock: '" + clock + "' is neither real nor virtual");
  }
  options.record = text("record");
  if (given.count("record") != 0 && options.record.empty()) {
    throw UsageError("--record: the directory's name is empty");
  }
  if (!options.record.empty() && !options.capture.empty()) {
    throw UsageError("give --capture or --record, not both: a recording has a capture in it");
  }
  if (const std::string policy = text("record-policy"); policy == "stop") {
    options.stop_without_record = true;
  } else if (!policy.empty() && policy != "continue") {
    throw UsageError("--record-policy: '" + policy + "' is neither continue nor stop");
  }
  if (given.count("scenario") != 0) {
    options.scenarios = given["scenario"].as<std::vector<std::string>>();
  }
  if (std::ranges::find(options.scenarios, "") != options.scenarios.end()) {
    throw UsageError("--scenario: the file's name is empty");
  }
  if (given.count("scenario-fd") != 0) {
    if (options.scenarios.empty()) {
      throw UsageError("--scenario-fd: say the scenario's name by --scenario");
    }
    options.scenario_fd = parse_fd("--scenario-fd", text("scenario-fd"));
  }
  options.threads = given["threads"].as<bool>();
  if (options.threads) refuse_with_threads(given);
  if (given.count("ready-fd") != 0) options.ready_fd = parse_fd("--ready-fd", text("ready-fd"));
  if (given.count("lifetime-fd") != 0) {
    options.lifetime_fd = parse_fd("--lifetime-fd", text("lifetime-fd"));
  }
  if (given.count("log-level") != 0) options.log_level = parse_level(text("log-level"));
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
