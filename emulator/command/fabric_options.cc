#include "emulator/command/fabric_options.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "emulator/command/error.h"
#include "emulator/command/scenario_library.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr uint64_t kMaxDevices = 250;
constexpr size_t kMaxNameLength = 63;  // IBV_SYSFS_NAME_MAX with its terminator
constexpr size_t kMaxAddresses = 16;   // a port's GID table

constexpr std::array<std::string_view, 6> kLogLevels = {"trace", "debug", "info",
                                                        "warn",  "error", "off"};

/// Reads a whole decimal number; false if `text` is anything else.
bool read_number(const std::string& text, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty();
}

bool is_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameLength && name[0] != '.' &&
         std::ranges::all_of(name, allowed);
}

bool is_address(const std::string& text) {
  in6_addr address;  // large enough for both
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

/// One word that is no address, as long as an interface's name may be; the daemon knows which there
/// are.
bool may_be_interface(const std::string& text) {
  return !text.empty() && text.size() < IFNAMSIZ &&
         text.find_first_of(",:/ ") == std::string::npos && !is_address(text);
}

/// Checks NAME[=ADDRESS[,ADDRESS]...] and returns NAME. On UDP, NAME=INTERFACE will do too.
std::string check_device(const std::string& where, const std::string& device, bool on_udp) {
  const std::string quoted = where + "--device '" + device + "': ";
  const size_t equals = device.find('=');
  const std::string name = device.substr(0, equals);
  if (!is_name(name))
    throw UsageError(
        quoted +
        "a device's name is 1 to 63 letters, digits, '_', '-' or '.', not '.' first; for "
        "example --device mlx5_0=10.0.0.1");
  if (on_udp && equals == std::string::npos)
    throw UsageError(quoted + "with --udp, say where it is, for example --device " + name +
                     "=eth0");
  if (equals == std::string::npos) return name;
  if (on_udp && may_be_interface(device.substr(equals + 1))) return name;
  size_t count = 0;
  for (size_t begin = equals + 1; begin <= device.size();) {
    const size_t end = std::min(device.find(',', begin), device.size());
    const std::string address = device.substr(begin, end - begin);
    if (!is_address(address))
      throw UsageError(quoted + "'" + address +
                       "' is not an IPv4 or IPv6 address; for example --device mlx5_0=10.0.0.1");
    if (++count > kMaxAddresses) throw UsageError(quoted + "a device has at most 16 addresses");
    begin = end + 1;
  }
  return name;
}

}  // namespace

po::options_description fabric_options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options of the fabric");
  po::options_description_easy_init add = options.add_options();
  add("devices", text("N"), "rocemu0 to rocemu(N-1), 1 to 250 of them (default 2)");
  add("device", po::value<std::vector<std::string>>()->value_name("NAME[=ADDR,...]"),
      "a device of this name and these IP addresses, instead of the default ones; may be repeated");
  add("udp", po::bool_switch(),
      "attach the devices to UDP port 4791 of their addresses, which must be this machine's, to "
      "reach other daemons, containers and hosts; --device NAME=eth0 takes all of an interface's");
  add("strict-icrc", po::bool_switch(),
      "with --udp, check ICRCs over IPv4 with the IP header that came, for which CAP_NET_RAW is "
      "needed; else 16 of their 32 bits tell damage");
  add("capture", text("FILE"),
      "write every frame to FILE (pcap; Wireshark and tshark read it). FILE may be a FIFO that has "
      "a reader, or - for standard output, to be piped into tshark -r -; a reader that falls "
      "behind "
      "misses frames, and the end of the run tells how many");
  add("clock", text("CLOCK"),
      "real (default), or virtual: time stands still while anybody has something to do and then "
      "jumps, so that a retry limit of minutes is reached at once");
  add("lockstep", po::bool_switch(),
      "a virtual clock on which a deterministic program has the same run, to the byte, however "
      "busy the machine is");
  add("record", text("DIR"),
      "write all that happens to the directory DIR: `rocemu replay DIR` does it again without the "
      "program, events.jsonl tells it line by line, and when it is over trace.pcap has the frames");
  add("record-policy", text("POLICY"),
      "when the disk is full: continue without recording (default), or stop the run");
  add("scenario", po::value<std::vector<std::string>>()->value_name("FILE|NAME"),
      "have the faults that FILE describes (see docs/scenarios.md), or the scenario of that name "
      "which comes with rocemu (rocemu scenarios); may be repeated");
  add("seed", text("N"),
      "the seed of everything random (default 0; with --udp another at each start)");
  add("threads", po::bool_switch(),
      "each device in a thread of its own, for machines with processors to spare; without faults, "
      "recording, virtual time and --udp, which need one thread");
  add("require-grh", po::bool_switch(),
      "refuse address vectors without a GRH, as RoCE hardware does");
  add("log-level", text("LEVEL"),
      "what the daemon says: trace, debug, info, warn (default), error or off");
  return options;
}

std::vector<std::string> daemon_arguments(std::string_view subcommand,
                                          const po::variables_map& values) {
  const std::string where = std::string(subcommand) + ": ";
  std::vector<std::string> arguments;
  const auto given = [&](const char* option) { return values.count(option) != 0; };
  const auto string_of = [&](const char* option) { return values[option].as<std::string>(); };

  if (given("devices") && given("device"))
    throw UsageError(where + "give either --devices or --device, not both");
  if (given("devices")) {
    const std::string text = string_of("devices");
    uint64_t count = 0;
    if (!read_number(text, count) || count < 1 || count > kMaxDevices)
      throw UsageError(where + "--devices '" + text + "' is not a number from 1 to 250");
    arguments.insert(arguments.end(), {"--devices", text});
  }
  const bool on_udp = values["udp"].as<bool>();
  if (on_udp && !given("device"))
    throw UsageError(where +
                     "--udp: say which interface or address each device has, for example --device "
                     "rocemu0=eth0");
  if (given("device")) {
    std::vector<std::string> names;
    for (const std::string& device : values["device"].as<std::vector<std::string>>()) {
      const std::string name = check_device(where, device, on_udp);
      if (std::ranges::find(names, name) != names.end())
        throw UsageError(where + "two devices are named '" + name + "'; names must differ");
      names.push_back(name);
      arguments.insert(arguments.end(), {"--device", device});
    }
    if (names.size() > kMaxDevices) throw UsageError(where + "at most 250 devices are possible");
  }
  if (on_udp) arguments.emplace_back("--udp");
  if (values["strict-icrc"].as<bool>()) {
    if (!on_udp)
      throw UsageError(where + "--strict-icrc is for frames that come by --udp; give both");
    arguments.emplace_back("--strict-icrc");
  }
  if (given("capture")) {
    const std::string file = string_of("capture");
    if (file.empty()) throw UsageError(where + "--capture needs the name of a file");
    arguments.insert(arguments.end(), {"--capture", file});
  }
  const bool lockstep = values["lockstep"].as<bool>();
  if (given("clock")) {
    const std::string clock = string_of("clock");
    if (clock != "real" && clock != "virtual")
      throw UsageError(where + "--clock '" + clock + "' is neither real nor virtual");
    if (clock == "real" && lockstep)
      throw UsageError(where + "--lockstep has a virtual clock; leave out --clock real");
    arguments.insert(arguments.end(), {"--clock", clock});
  }
  if (lockstep) arguments.emplace_back("--lockstep");
  if (on_udp && (lockstep || (given("clock") && string_of("clock") == "virtual")))
    throw UsageError(where + "--udp needs the real clock: who is on the network has that one");
  if (given("record")) {
    const std::string dir = string_of("record");
    if (dir.empty()) throw UsageError(where + "--record needs the name of a directory");
    if (given("capture"))
      throw UsageError(where + "give --capture or --record, not both: a recording has a capture, " +
                       "DIR/trace.pcap");
    arguments.insert(arguments.end(), {"--record", std::filesystem::absolute(dir)});
  }
  if (given("record-policy")) {
    const std::string policy = string_of("record-policy");
    if (policy != "continue" && policy != "stop")
      throw UsageError(where + "--record-policy '" + policy + "' is neither continue nor stop");
    if (!given("record")) throw UsageError(where + "--record-policy says nothing without --record");
    arguments.insert(arguments.end(), {"--record-policy", policy});
  }
  if (given("scenario")) {
    for (const std::string& one : values["scenario"].as<std::vector<std::string>>()) {
      if (one.empty())
        throw UsageError(where + "--scenario needs a file, or a name: rocemu scenarios lists them");
      arguments.insert(arguments.end(), {"--scenario", one});
    }
  }
  if (given("seed")) {
    const std::string text = string_of("seed");
    uint64_t seed = 0;
    if (!read_number(text, seed))
      throw UsageError(where + "--seed '" + text + "' is not a number from 0 to 2^64-1");
    arguments.insert(arguments.end(), {"--seed", text});
  }
  if (values["threads"].as<bool>()) {
    const auto refuse = [&](bool is_given, const char* option) {
      if (is_given) throw UsageError(where + option + " needs one thread; leave out --threads");
    };
    refuse(lockstep, "--lockstep");
    refuse(given("clock") && string_of("clock") == "virtual", "--clock virtual");
    refuse(given("record"), "--record");
    refuse(given("scenario"), "--scenario");
    refuse(on_udp, "--udp");
    arguments.emplace_back("--threads");
  }
  if (values["require-grh"].as<bool>()) arguments.emplace_back("--require-grh");
  if (given("log-level")) {
    const std::string level = string_of("log-level");
    if (std::ranges::find(kLogLevels, level) == kLogLevels.end())
      throw UsageError(where + "--log-level '" + level +
                       "' is none of trace, debug, info, warn, error and off");
    arguments.insert(arguments.end(), {"--log-level", level});
  }
  return arguments;
}

std::optional<capture::CaptureFile> open_capture(const po::variables_map& values) {
  if (values.count("capture") == 0) return std::nullopt;
  capture::CaptureFile file = capture::open_capture_file(values["capture"].as<std::string>());
  if (!file.error.empty()) throw Failure(file.error);
  return file;
}

std::string read_scenarios(const po::variables_map& values) {
  if (values.count("scenario") == 0) return "";
  std::vector<std::string> files;
  for (const std::string& one : values["scenario"].as<std::vector<std::string>>())
    files.push_back(find_scenario(one));
  try {
    const scenario::Scenario scenario = scenario::load_scenarios(files);
    print_warnings(scenario.warnings);
    return scenario.rules->text;
  } catch (const scenario::ScenarioError& error) {
    throw Failure(error.what());
  }
}

}  // namespace rocemu::command
