#include "emulator/options/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>

#include "emulator/engine/config.h"
#include "emulator/options/unusable_address.h"
#include "emulator/os/text_file.h"

namespace rocemu::options {
namespace {

constexpr size_t kMaxTopologyDevices = 250;
constexpr unsigned kMaxCpus = 8192;  // the most that Linux on x86-64 supports
constexpr int kMaxNode = 1023;
constexpr size_t kMaxSlots = 32;  // of a PCI bus
constexpr char kSuffix[] = ".yaml";

/// Reads the file of a topology, and reports each problem with its line.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void fail(const YAML::Node& at, const std::string& what) const {
    throw TopologyError(fmt::format("{}:{}: {}", name_, at.Mark().line + 1, what));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw TopologyError(fmt::format("{}: {}", name_, what));
  }

  /// Checks that a mapping has no keys except these.
  void check_keys(const YAML::Node& node, std::string_view what,
                  std::initializer_list<std::string_view> keys) const {
    if (!node.IsMap()) fail(node, fmt::format("{} must be a mapping", what));
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (std::ranges::find(keys, key) == keys.end()) {
        fail(entry.first,
             fmt::format("{} has no key '{}'; its keys are {}", what, key, list(keys)));
      }
    }
  }

  /// Returns the list that a mapping has for the key. The list must have at least one element.
  YAML::Node list_of(const YAML::Node& node, const char* key) const {
    const YAML::Node value = node[key];
    if (!value) fail(node, fmt::format("'{}' is missing here", key));
    if (!value.IsSequence() || value.size() == 0) {
      fail(value, fmt::format("'{}' must be a non-empty list", key));
    }
    return value;
  }

  std::string text_of(const YAML::Node& node, const char* key) const {
    const YAML::Node value = node[key];
    if (!value) return "";
    if (!value.IsScalar()) fail(value, fmt::format("'{}' must be one word", key));
    return value.Scalar();
  }

 private:
  static std::string list(std::initializer_list<std::string_view> keys) {
    std::string text;
    for (const std::string_view key : keys)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", key);
    return text;
  }

  std::string name_;
};

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

Rail read_rail(const Reader& reader, const YAML::Node& node) {
  reader.check_keys(node, "a rail", {"device", "addresses", "interface", "profile"});
  Rail rail;
  rail.device = reader.text_of(node, "device");
  if (rail.device.empty()) reader.fail(node, "a rail needs a 'device', the name of its device");
  rail.interface = reader.text_of(node, "interface");
  rail.profile = reader.text_of(node, "profile");
  if (const YAML::Node addresses = node["addresses"]) {
    if (!rail.interface.empty()) reader.fail(node, "give 'addresses' or 'interface', not both");
    for (const auto& address : reader.list_of(node, "addresses")) {
      const auto parsed = address.IsScalar() ? wire::parse_ip_address(address.Scalar())
                                             : std::optional<wire::IpAddress>();
      if (!parsed) reader.fail(address, "this is not an IPv4 or IPv6 address");
      if (const std::string why = why_unusable(*parsed); !why.empty()) reader.fail(address, why);
      rail.addresses.push_back(*parsed);
    }
    if (rail.addresses.size() > engine::kGidTableLength) {
      reader.fail(addresses,
                  fmt::format("a device has at most {} addresses", engine::kGidTableLength));
    }
  }
  return rail;
}

NumaNode read_node(const Reader& reader, const YAML::Node& node) {
  reader.check_keys(node, "a node", {"node", "cpus", "switches"});
  NumaNode read;
  const std::string number = reader.text_of(node, "node");
  const auto parsed = number_of(number);
  if (!parsed || *parsed > kMaxNode) {
    reader.fail(node,
                fmt::format("a node needs the key 'node', its number from 0 to {}", kMaxNode));
  }
  read.number = static_cast<int>(*parsed);
  read.cpus = reader.text_of(node, "cpus");
  if (!read.cpus.empty() && !parse_cpu_list(read.cpus)) {
    reader.fail(node["cpus"],
                fmt::format("'{}' is not a list of processors such as 0-7,16", read.cpus));
  }
  for (const auto& one : reader.list_of(node, "switches")) {
    reader.check_keys(one, "a switch", {"rails"});
    PciSwitch& pci_switch = read.switches.emplace_back();
    for (const auto& rail : reader.list_of(one, "rails")) {
      pci_switch.rails.push_back(read_rail(reader, rail));
    }
    if (pci_switch.rails.size() > kMaxSlots) {
      reader.fail(one, fmt::format("a switch has room for {} rails", kMaxSlots));
    }
  }
  if (read.switches.size() > kMaxSlots) {
    reader.fail(node, fmt::format("a node has room for {} switches", kMaxSlots));
  }
  return read;
}

Topology read_document(const Reader& reader, const YAML::Node& document) {
  if (!document.IsMap()) reader.fail("a topology must be a mapping with the key 'nodes'");
  reader.check_keys(document, "a topology", {"nodes"});
  Topology topology;
  std::set<int> numbers;
  for (const auto& node : reader.list_of(document, "nodes")) {
    topology.nodes.push_back(read_node(reader, node));
    if (!numbers.insert(topology.nodes.back().number).second) {
      reader.fail(node, fmt::format("two nodes have the number {}", topology.nodes.back().number));
    }
  }
  if (topology.rails().size() > kMaxTopologyDevices) {
    reader.fail(fmt::format("at most {} devices are possible", kMaxTopologyDevices));
  }
  return topology;
}

/// Returns the directory of the topologies that come with rocemu.
std::filesystem::path library() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return self.parent_path() / ".." / ROCEMU_TOPOLOGY_DIR;
}

std::string names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == kSuffix) names.insert(entry.path().stem());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<Rail> Topology::rails() const {
  std::vector<Rail> rails;
  for (const NumaNode& node : nodes) {
    for (const PciSwitch& one : node.switches) {
      rails.insert(rails.end(), one.rails.begin(), one.rails.end());
    }
  }
  return rails;
}

Topology read_topology(const std::string& text) {
  if (text == "pci") return {};
  if (text == "flat") return {.is_flat = true, .nodes = {}};
  std::error_code ignored;
  std::string path = text;
  if (text.find('/') == std::string::npos && !std::filesystem::exists(path, ignored))
    path = library() / (text + kSuffix);
  if (!std::filesystem::exists(path, ignored)) {
    throw TopologyError(fmt::format(
        "--topology '{}' is not pci, flat, a readable file or an installed topology: {}", text,
        names_in(library())));
  }
  try {
    return parse_topology(read_text_file(path, {.noun = "topology", .is_read_again = true}), text);
  } catch (const TextFileError& error) {
    throw TopologyError(error.what());
  }
}

Topology parse_topology(const std::string& yaml, const std::string& name) {
  const Reader reader(name);
  try {
    return read_document(reader, YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    throw TopologyError(fmt::format("{}:{}: {}", name, error.mark.line + 1, error.msg));
  }
}

std::optional<std::vector<unsigned>> parse_cpu_list(const std::string& text) {
  std::vector<unsigned> cpus;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view range = rest.substr(0, comma);
    const size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMaxCpus) return std::nullopt;
    for (unsigned cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (comma == std::string_view::npos) return cpus;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace rocemu::options
