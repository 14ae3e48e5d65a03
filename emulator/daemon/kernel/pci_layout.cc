#include "emulator/daemon/kernel/pci_layout.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

constexpr unsigned kMaxBuses = 256;
constexpr unsigned kFunctions = 8, kSlots = 32;  // of a bus

std::vector<unsigned> cpus_of_node(int number) {
  std::ifstream file(fmt::format("/sys/devices/system/node/node{}/cpulist", number));
  std::string text;
  std::getline(file, text);
  return options::parse_cpu_list(text).value_or(std::vector<unsigned>());
}

/// Assigns bus numbers and puts functions on buses.
class Builder {
 public:
  /// Sets the NUMA node and the processors of all functions that are added from now on.
  void set_place(int numa_node, std::vector<unsigned> cpus) {
    numa_node_ = numa_node;
    cpus_ = std::move(cpus);
  }

  /// Adds a root bus, in the directory of its host bridge.
  PciBus add_root() {
    const uint8_t number = next_bus();
    return add_bus(number, fmt::format("devices/pci{}", name_of(number)));
  }

  /// Adds a bridge at `place` on the bus `on`, sets `index` to its number, and returns the bus
  /// behind it. close_bridge() must be called after everything behind the bridge has been added.
  PciBus open_bridge(const PciBus& on, unsigned place, PciPort port, size_t& index) {
    PciFunction bridge = function(on, place);
    bridge.port = port;
    bridge.secondary = bridge.subordinate = next_bus();
    index = layout_.bridges.size();
    layout_.bridges.push_back(bridge);
    return add_bus(bridge.secondary, bridge.path);
  }
  void close_bridge(size_t index) {
    layout_.bridges[index].subordinate = static_cast<uint8_t>(buses_ - 1);
  }

  void add_device(const PciBus& on) { layout_.devices.push_back(function(on, 0)); }

  /// Adds a port with a device behind it.
  void add_port_with_device(const PciBus& on, unsigned place, PciPort port) {
    size_t index = 0;
    add_device(open_bridge(on, place, port, index));
    close_bridge(index);
  }

  PciLayout take() { return std::move(layout_); }

 private:
  static std::string name_of(uint8_t bus) { return fmt::format("{}:{:02x}", abi::kPciDomain, bus); }

  uint8_t next_bus() {
    if (buses_ == kMaxBuses) {
      throw StartError("--topology: PCI has 256 buses, and these devices and switches need more");
    }
    return static_cast<uint8_t>(buses_++);
  }

  PciBus add_bus(uint8_t number, const std::string& parent) {
    const std::string name = name_of(number);
    layout_.buses.push_back({name, parent + "/pci_bus/" + name, cpus_});
    return layout_.buses.back();
  }

  PciFunction function(const PciBus& on, unsigned place) const {
    PciFunction function;
    function.address =
        fmt::format("{}:{:02x}.{:x}", on.name, place / kFunctions % kSlots, place % kFunctions);
    function.path = on.path.substr(0, on.path.find("/pci_bus/")) + "/" + function.address;
    function.numa_node = numa_node_;
    function.cpus = cpus_;
    return function;
  }

  PciLayout layout_;
  unsigned buses_ = 0;
  int numa_node_ = -1;
  std::vector<unsigned> cpus_;
};

/// Returns one of `count` equal shares of the processors in `all`.
std::vector<unsigned> share_of(const std::vector<unsigned>& all, size_t index, size_t count) {
  if (all.size() < count) return all;
  const auto at = [&](size_t i) {
    return all.begin() + static_cast<ptrdiff_t>(all.size() * i / count);
  };
  return {at(index), at(index + 1)};
}

std::vector<unsigned> cpus_for(const options::Topology& topology, size_t index,
                               const MachineCpus& cpus) {
  const options::NumaNode& node = topology.nodes[index];
  if (!node.cpus.empty()) return *options::parse_cpu_list(node.cpus);
  // If the machine lacks any of the nodes, all its processors are divided equally among the nodes
  // of the topology.
  const bool has_all = std::ranges::all_of(topology.nodes, [&](const options::NumaNode& one) {
    return cpus.of_node != nullptr && !cpus.of_node(one.number).empty();
  });
  return has_all ? cpus.of_node(node.number) : share_of(cpus.all, index, topology.nodes.size());
}

/// Adds a root port, behind it the upstream port of the switch, and behind that a downstream port
/// for each rail.
void add_switch(Builder& builder, const PciBus& root, unsigned place,
                const options::PciSwitch& pci_switch) {
  size_t root_port = 0, upstream = 0;
  const PciBus above = builder.open_bridge(root, place, PciPort::kRoot, root_port);
  const PciBus inside = builder.open_bridge(above, 0, PciPort::kUpstream, upstream);
  for (unsigned i = 0; i < pci_switch.rails.size(); ++i) {
    builder.add_port_with_device(inside, i * kFunctions, PciPort::kDownstream);
  }
  builder.close_bridge(upstream);
  builder.close_bridge(root_port);
}

}  // namespace

size_t machine_cpu_count() {
  static const int count = get_nprocs_conf();  // reads a file
  return static_cast<size_t>(std::max(count, 1));
}

MachineCpus machine_cpus() {
  MachineCpus cpus;
  cpus.all.resize(machine_cpu_count());
  std::iota(cpus.all.begin(), cpus.all.end(), 0u);
  cpus.of_node = cpus_of_node;
  return cpus;
}

PciLayout make_pci_layout(const options::Topology& topology, size_t device_count,
                          const MachineCpus& cpus) {
  if (topology.is_flat) return {};
  Builder builder;
  if (topology.nodes.empty()) {
    builder.set_place(-1, cpus.all);
    const PciBus root = builder.add_root();
    for (unsigned i = 0; i < device_count; ++i)
      builder.add_port_with_device(root, i, PciPort::kRoot);
  }
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    builder.set_place(topology.nodes[i].number, cpus_for(topology, i, cpus));
    const PciBus root = builder.add_root();
    unsigned place = 0;
    for (const options::PciSwitch& pci_switch : topology.nodes[i].switches) {
      add_switch(builder, root, place, pci_switch);
      place += kFunctions;
    }
  }
  return builder.take();
}

}  // namespace rocemu::daemon
