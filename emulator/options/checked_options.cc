#include "emulator/options/checked_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/options/unusable_address.h"
#include "emulator/profile/profile_library.h"
#include "emulator/profile/profile_reader.h"

namespace rocemu::options {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMaxDevices = 250;
constexpr uint32_t kDefaultDevices = 2;
constexpr uint64_t kLeastSnapLength = 54;       // Ethernet, IPv4, UDP and BTH
constexpr uint64_t kMaxLastFrames = 1'000'000;  // they are kept in memory
constexpr size_t kMaxNameLength = 63;           // IBV_SYSFS_NAME_MAX with its NUL is 64
constexpr size_t kMaxInterfaceLength = 15;      // IFNAMSIZ with its NUL is 16

constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warn", "error", "off"};

/// The options that the command line has, before they are checked.
class Given {
 public:
  explicit Given(const po::variables_map& values) : values_(values) {}

  bool has(const char* option) const { return values_.count(option) != 0; }
  bool is_set(const char* option) const { return has(option) && values_[option].as<bool>(); }
  /// Returns whether the options are those of `rocemu explore`, which alone has --real-clock.
  bool is_explore() const { return has("real-clock"); }
  /// Returns the option's text; empty if the option was not given.
  std::string text(const char* option) const {
    return has(option) ? values_[option].as<std::string>() : "";
  }
  std::vector<std::string> texts(const char* option) const {
    return has(option) ? values_[option].as<std::vector<std::string>>()
                       : std::vector<std::string>();
  }

 private:
  const po::variables_map& values_;
};

bool is_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameLength && name[0] != '.' &&
         std::ranges::all_of(name, allowed);
}

/// Returns whether the text may be the name of a network interface: it is one word, is not too
/// long, and has a letter that cannot be part of an address. Only the daemon checks whether the
/// interface exists.
bool may_be_interface(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return std::ranges::any_of(text, is_letter) && text.size() <= kMaxInterfaceLength &&
         text.find_first_of(",:/ ") == std::string_view::npos && !wire::parse_ip_address(text);
}

/// Reads a list of addresses. Throws OptionError, whose message begins with `quoted`.
std::vector<wire::IpAddress> read_addresses(std::string_view list, const std::string& quoted) {
  std::vector<wire::IpAddress> addresses;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    const std::optional<wire::IpAddress> address = wire::parse_ip_address(one);
    if (!address) {
      throw OptionError(fmt::format(
          "{}'{}' is not an IPv4 or IPv6 address; for example --device mlx5_0=10.0.0.1, "
          "or --device mlx5_0=eth0 for the addresses of a network interface",
          quoted, one));
    }
    if (const std::string why = why_unusable(*address); !why.empty())
      throw OptionError(quoted + why);
    addresses.push_back(*address);
    if (addresses.size() > engine::kGidTableLength) {
      throw OptionError(
          fmt::format("{}a device has at most {} addresses", quoted, engine::kGidTableLength));
    }
    if (comma == std::string_view::npos) return addresses;
    list.remove_prefix(comma + 1);
  }
}

/// Reads a profile. Throws OptionError, whose message begins with `option`.
std::shared_ptr<const engine::DeviceProfile> read_profile(const std::string& name,
                                                          const std::string& option) {
  try {
    return profile::load_profile(name);
  } catch (const profile::ProfileError& error) {
    throw OptionError(option + error.what());
  }
}

/// Reads NAME[=ADDRESS[,ADDRESS]...|=INTERFACE][,profile=PROFILE].
void read_device(const std::string& given, FabricOptions& options, engine::DeviceConfig& device) {
  const std::string quoted = "--device '" + given + "': ";
  constexpr std::string_view kProfileKey = ",profile=";
  const size_t key = given.find(kProfileKey);
  const std::string text = given.substr(0, key);
  device.profile = nullptr;  // that of --profile
  if (key != std::string::npos)
    device.profile = read_profile(given.substr(key + kProfileKey.size()), quoted);
  const size_t equals = text.find('=');
  device.name = text.substr(0, equals);
  if (!is_name(device.name)) {
    throw OptionError(quoted +
                      "a device's name must have 1 to 63 letters, digits, '_', '-' or '.', and "
                      "must not begin with '.'; for example --device mlx5_0=10.0.0.1");
  }
  options.interfaces.emplace_back();
  if (equals == std::string::npos) {
    if (!options.udp) {
      if (options.interfaces.size() == 1) options.first_has_machines_addresses = true;
      return;
    }
    throw OptionError(quoted +
                      "with --udp, each device needs an address or interface, for example "
                      "--device " +
                      device.name + "=eth0");
  }
  const std::string place = text.substr(equals + 1);
  if (may_be_interface(place)) {
    device.addresses.clear();
    options.interfaces.back() = place;
  } else {
    device.addresses = read_addresses(place, quoted);
  }
}

/// Checks that the devices' names and addresses differ. Throws OptionError, whose message begins
/// with `option`.
void check_distinct(const std::vector<engine::DeviceConfig>& devices, const std::string& option) {
  std::set<std::string> names;
  std::set<wire::IpAddress> taken;
  for (const engine::DeviceConfig& device : devices) {
    if (!names.insert(device.name).second) {
      throw OptionError("two devices are named '" + device.name + "'; names must differ");
    }
    for (const wire::IpAddress& address : device.addresses) {
      if (taken.insert(address).second) continue;
      throw OptionError(fmt::format("{} {}: the address {} is given twice", option, device.name,
                                    wire::to_string(address)));
    }
  }
}

void read_devices(const std::vector<std::string>& texts, FabricOptions& options) {
  const auto count = static_cast<uint32_t>(std::min<size_t>(texts.size(), kMaxDevices));
  options.devices = engine::default_fabric(count).devices;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i == kMaxDevices) {
      throw OptionError(fmt::format("at most {} devices are possible", kMaxDevices));
    }
    read_device(texts[i], options, options.devices[i]);
  }
  check_distinct(options.devices, "--device");
}

/// Returns the file or name of the profile that a topology names. If the profile is a file with a
/// relative path, the path is relative to the topology's directory.
std::string beside(const std::string& topology, const std::string& profile) {
  if (!profile::is_profile_file(profile)) return profile;
  return (std::filesystem::path(topology).parent_path() / profile).string();
}

void take_rails(const std::string& file, FabricOptions& options) {
  const std::vector<Rail> rails = options.topology.rails();
  options.devices = engine::default_fabric(static_cast<uint32_t>(rails.size())).devices;
  for (size_t i = 0; i < rails.size(); ++i) {
    const Rail& rail = rails[i];
    engine::DeviceConfig& device = options.devices[i];
    device.name = rail.device;
    if (!is_name(rail.device)) {
      throw OptionError(
          fmt::format("--topology {}: '{}' is not a valid name of a device", file, rail.device));
    }
    device.profile = rail.profile.empty()
                         ? nullptr
                         : read_profile(beside(file, rail.profile), "--topology " + file + ": ");
    options.interfaces.push_back(rail.interface);
    const bool is_default = rail.interface.empty() && rail.addresses.empty();
    if (options.udp && is_default) {
      throw OptionError(fmt::format(
          "--topology {}: with --udp, {} needs 'interface' or 'addresses'", file, rail.device));
    }
    if (i == 0) options.first_has_machines_addresses = is_default;
    if (!is_default) device.addresses = rail.addresses;
  }
  check_distinct(options.devices, "--topology " + file);
}

/// Reads the topology. Returns whether it names the devices.
bool take_topology(const Given& given, FabricOptions& options) {
  if (!given.has("topology")) return false;
  try {
    options.topology = read_topology(given.text("topology"));
  } catch (const TopologyError& error) {
    throw OptionError(error.what());
  }
  const bool has_rails = !options.topology.nodes.empty();
  if (has_rails && (given.has("devices") || given.has("device"))) {
    throw OptionError("--topology names the devices; leave out --devices and --device");
  }
  return has_rails;
}

/// Gives the devices the names that the profile's driver would give them: mlx5_0, mlx5_1.
void name_devices(const engine::DeviceProfile& profile,
                  std::vector<engine::DeviceConfig>& devices) {
  const std::string& pattern = profile.identity.name;
  const size_t at = pattern.find("%d");
  for (size_t i = 0; i < devices.size(); ++i)
    devices[i].name = pattern.substr(0, at) + std::to_string(i) + pattern.substr(at + 2);
}

/// Returns whether the NIC's clock is virtual. `rocemu explore` runs in lockstep without
/// --real-clock.
bool has_virtual_clock(const Given& given) {
  return given.is_set("lockstep") || (given.is_explore() && !given.is_set("real-clock"));
}

/// Reads the simulated network of --fabric.
void check_network(const Given& given, FabricOptions& options) {
  if (!given.has("fabric")) return;
  const std::string name = given.text("fabric");
  if (!has_virtual_clock(given)) {
    throw OptionError(
        "--fabric needs the virtual clock of --lockstep, on which the network's times are exact");
  }
  if (name.empty()) throw OptionError("--fabric needs the name of a file or of a network");
  try {
    options.network = network::load_plan(name, options.network_warnings);
  } catch (const std::exception& error) {
    throw OptionError(fmt::format("--fabric: {}", error.what()));
  }
}

void check_captured_ports(const Given& given, FabricOptions& options) {
  for (const std::string& one : given.texts("capture-port")) {
    const size_t at = one.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == one.size()) {
      throw OptionError(fmt::format(
          "--capture-port '{}' is not PORT=FILE, such as s1:3=port3.pcap or h0=h0.pcap", one));
    }
    if (options.network == nullptr) throw OptionError("--capture-port needs --fabric");
    const std::string name = one.substr(0, at);
    const auto port = network::find_port(options.network->topology(), name);
    if (!port) {
      throw OptionError(
          fmt::format("--capture-port: the network has no port '{}'; a host's port has the host's "
                      "name (h0), and a switch's port has the switch's name and a number from 0 "
                      "(s1:3)",
                      name));
    }
    if (std::ranges::find(options.captured_ports, *port, &CapturedPort::port) !=
        options.captured_ports.end()) {
      throw OptionError(fmt::format("--capture-port names the port {} twice", name));
    }
    options.captured_ports.push_back({*port, one.substr(at + 1)});
  }
}

void check_devices(const Given& given, FabricOptions& options) {
  if (given.has("devices") && given.has("device")) {
    throw OptionError("give either --devices or --device, not both");
  }
  uint64_t count = kDefaultDevices;
  if (given.has("devices")) {
    count = read_number_in("--devices", given.text("devices"), {1, kMaxDevices});
  } else if (options.network != nullptr) {
    count = options.network->host_count();
    if (count > kMaxDevices && !given.has("device") && !given.has("topology")) {
      throw OptionError(
          fmt::format("--fabric {}: the network has {} hosts, and there are at most {} "
                      "devices; --devices N gives a device to only the first N hosts",
                      given.text("fabric"), count, kMaxDevices));
    }
  }
  options.udp = given.is_set("udp");
  const std::shared_ptr<const engine::DeviceProfile> profile =
      given.has("profile") ? read_profile(given.text("profile"), "--profile: ")
                           : engine::generic_profile();
  const bool has_rails = take_topology(given, options);
  if (options.udp && !given.has("device") && !has_rails) {
    throw OptionError(
        "--udp: each device needs an interface or address, for example --device "
        "rocemu0=eth0");
  }
  if (has_rails) {
    take_rails(given.text("topology"), options);
  } else if (given.has("device")) {
    read_devices(given.texts("device"), options);
  } else {
    options.devices = engine::default_fabric(static_cast<uint32_t>(count)).devices;
    options.interfaces.resize(options.devices.size());
    options.first_has_machines_addresses = true;
    for (engine::DeviceConfig& device : options.devices) device.profile = profile;
    if (!profile->is_generic()) name_devices(*profile, options.devices);
  }
  for (engine::DeviceConfig& device : options.devices) {
    if (device.profile == nullptr) device.profile = profile;
    device.active_mtu = device.profile->active_mtu;
    device.policy.require_grh = given.is_set("require-grh");
  }
  if (options.network != nullptr && options.devices.size() > options.network->host_count()) {
    throw OptionError(
        fmt::format("--fabric {}: the network has {} hosts for {} devices; give fewer devices, or "
                    "a network with "
                    "more hosts",
                    given.text("fabric"), options.network->host_count(), options.devices.size()));
  }
  options.strict_icrc = given.is_set("strict-icrc");
  if (options.strict_icrc && !options.udp) {
    throw OptionError("--strict-icrc needs --udp");
  }
}

/// Reads the value of --schedule, "N" or "N:THREAD/CALL,...".
GivenSchedule schedule_of(const std::string& text) {
  const auto fail = [&]() -> uint64_t {
    throw OptionError("--schedule '" + text +
                      "' is neither a number from 0 to 2^64-1 nor N:THREAD/CALL,..., a number "
                      "with the calls at which threads are preempted");
  };
  const auto number_in = [&](const std::string& part) {
    const auto number = read_number(part);
    return number ? *number : fail();
  };
  GivenSchedule schedule;
  const size_t colon = text.find(':');
  schedule.number = number_in(text.substr(0, colon));
  schedule.has_stops = colon != std::string::npos;
  if (!schedule.has_stops) return schedule;
  for (size_t at = colon + 1; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string stop = text.substr(at, end - at);
    const size_t slash = stop.find('/');
    if (slash == std::string::npos) fail();
    schedule.stops.emplace_back(number_in(stop.substr(0, slash)),
                                number_in(stop.substr(slash + 1)));
    at = end + 1;
  }
  return schedule;
}

void check_clock(const Given& given, FabricOptions& options) {
  options.lockstep = given.is_set("lockstep");
  if (given.has("schedule")) {
    options.schedule = schedule_of(given.text("schedule"));
    if (!options.lockstep) {
      throw OptionError("--schedule needs --lockstep");
    }
  }
  if (options.udp && options.lockstep) {
    throw OptionError(
        "--udp needs the real clock, since other hosts have no virtual one; leave out --lockstep");
  }
}

/// Sets the coalescing of ACKs. By default there is none in lockstep: runs in lockstep are
/// compared, so their frames must not depend on relative speed.
void check_ack_coalescing(const Given& given, FabricOptions& options) {
  options.ack_coalescing = options.lockstep ? 1 : engine::kMaxAckCoalescing;
  if (!given.has("ack-coalescing")) return;
  options.ack_coalescing = static_cast<uint32_t>(read_number_in(
      "--ack-coalescing", given.text("ack-coalescing"), {1, engine::kMaxAckCoalescing}));
}

/// Reads a size such as "500k", "100M", "2G" or a number of bytes. Returns the number of bytes;
/// nothing for any other text.
std::optional<uint64_t> read_size(std::string_view text) {
  uint64_t unit = 1;
  constexpr std::string_view kUnits = "kMG";
  if (const size_t at = text.empty() ? std::string_view::npos : kUnits.find(text.back());
      at != std::string_view::npos) {
    for (size_t i = 0; i <= at; ++i) unit *= 1024;
    text.remove_suffix(1);
  }
  const auto number = read_number(text);
  if (!number || *number == 0 || *number > (uint64_t{1} << 60) / unit) return std::nullopt;
  return *number * unit;
}

void check_capture(const Given& given, FabricOptions& options) {
  options.capture = given.text("capture");
  if (given.has("capture") && options.capture.empty()) {
    throw OptionError("--capture needs the name of a file");
  }
  if (given.has("snap-length")) {
    options.snap_length = read_number_in("--snap-length", given.text("snap-length"),
                                         {kLeastSnapLength, options.snap_length});
  }
  if (given.has("capture-last")) {
    options.capture_last = read_number_in("--capture-last", given.text("capture-last"),
                                          {1, kMaxLastFrames, "number of frames"});
    if (!given.has("capture")) throw OptionError("--capture-last needs --capture FILE");
  }
}

void check_record(const Given& given, FabricOptions& options) {
  if (given.has("record-limit")) {
    const auto size = read_size(given.text("record-limit"));
    if (!size) {
      throw OptionError("--record-limit '" + given.text("record-limit") +
                        "' is not a size such as 500k, 100M or 2G");
    }
    options.record_limit = *size;
  }

  options.record = given.text("record");
  if (given.has("record") && options.record.empty()) {
    throw OptionError("--record needs the name of a directory");
  }
  if (!given.has("record-policy")) return;
  const std::string policy = given.text("record-policy");
  if (policy != "continue" && policy != "stop") {
    throw OptionError("--record-policy '" + policy + "' is neither continue nor stop");
  }
  if (!given.has("record")) throw OptionError("--record-policy needs --record DIR");
  options.stop_without_record = policy == "stop";
}

}  // namespace

std::vector<std::string> adversarial_class_names() {
  std::vector<std::string> names;
  for (const engine::adversarial::ClassRow& row : engine::adversarial::classes())
    names.emplace_back(row.name);
  return names;
}

namespace {

/// Adds the adversarial class that `word` selects. `word` is "CLASS", or "CLASS:N:N" with the
/// numbers of the only choices that the adversary makes.
void add_adversarial(const std::string& word, engine::adversarial::Classes& chosen,
                     FabricOptions& options) {
  const size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  engine::adversarial::Classes one;
  if (!engine::adversarial::add_class(name, one))
    throw OptionError(
        fmt::format("--adversarial has no class '{}'; use {}, or all", name,
                    engine::adversarial::names_of(engine::adversarial::Classes::all())));
  chosen = engine::adversarial::Classes(chosen.bits() | one.bits());
  if (colon == std::string::npos) return;
  const auto row =
      std::ranges::find(engine::adversarial::classes(), name, &engine::adversarial::ClassRow::name);
  for (size_t begin = colon + 1, end = 0; end != std::string::npos; begin = end + 1) {
    end = word.find(':', begin);
    const std::optional<uint64_t> number = read_number(word.substr(begin, end - begin));
    if (!number || *number == 0)
      throw OptionError(
          fmt::format("--adversarial: '{}' is not a class with the numbers of its choices, "
                      "such as placement:1:7",
                      word));
    options.adversarial_choices.emplace_back(static_cast<uint8_t>(row->value), *number);
  }
}

/// Sets the adversarial classes of --adversarial. Without a value, or with "all", every class is
/// enabled.
void check_adversarial(const Given& given, FabricOptions& options) {
  using engine::adversarial::Classes;
  // In `rocemu explore`, the value is a number of seeds.
  if (!given.has("adversarial") || given.is_explore()) return;
  const std::string list = given.text("adversarial");
  const bool is_all = list.empty() || list == "all";
  Classes chosen = is_all ? Classes::all() : Classes();
  for (size_t begin = 0, end = 0; !is_all && end != std::string::npos; begin = end + 1) {
    end = list.find(',', begin);
    add_adversarial(list.substr(begin, end - begin), chosen, options);
  }
  options.adversarial = chosen.bits();
}

/// Sets how the daemon waits, and whether it accesses memory at the exact times. It must do so in
/// lockstep, where it waits for the programs, and with an adversary, which decides when memory is
/// read and written.
void check_waiting(const Given& given, FabricOptions& options) {
  options.exact_memory =
      given.is_set("exact-memory") || options.lockstep || options.adversarial != 0;
  options.busy_poll = given.is_set("busy-poll");
  if (options.busy_poll && options.lockstep) {
    throw OptionError(
        "--busy-poll works only on the real clock; leave out --busy-poll or --lockstep");
  }
  options.sleep_between_turns = given.is_set("no-spin");
  if (options.sleep_between_turns && !options.lockstep) {
    throw OptionError("--no-spin needs --lockstep");
  }
}

}  // namespace

FabricOptions check_options(const po::variables_map& values) {
  const Given given(values);
  FabricOptions options;
  check_network(given, options);
  check_devices(given, options);
  check_captured_ports(given, options);
  options.keep_real_devices = given.is_set("keep-real-devices");
  check_capture(given, options);
  check_clock(given, options);
  check_ack_coalescing(given, options);
  check_record(given, options);
  options.scenarios = given.texts("scenario");
  if (std::ranges::find(options.scenarios, "") != options.scenarios.end()) {
    throw OptionError("--scenario needs a file, or a name: rocemu scenarios lists them");
  }
  if (given.has("seed")) {
    options.seed = read_number_in("--seed", given.text("seed"), {0, UINT64_MAX});
  }
  options.same_keys = given.is_set("same-keys");
  check_adversarial(given, options);
  check_waiting(given, options);
  if (given.has("log-level")) {
    options.log_level = given.text("log-level");
    if (std::ranges::find(kLogLevels, options.log_level) == std::end(kLogLevels)) {
      throw OptionError("--log-level '" + options.log_level +
                        "' is not one of trace, debug, info, warn, error and off");
    }
  }
  return options;
}

}  // namespace rocemu::options
