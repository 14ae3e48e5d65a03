// Derives the positions of the devices' PCI functions from a topology: buses, bridges and
// addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/device_profile.h"
#include "emulator/options/topology.h"

namespace rocemu::daemon {

/// The kinds of ports in the PCI Express capability, with their values in its register
enum class PciPort : uint8_t { kEndpoint = 0, kRoot = 4, kUpstream = 5, kDownstream = 6 };

struct PciFunction {
  std::string address;  // "ace0:01:00.0"
  std::string path;     // "devices/pciace0:00/ace0:00:00.0/ace0:01:00.0"
  uint8_t bus = 0;
  PciPort port = PciPort::kEndpoint;       // all others are bridges
  uint8_t secondary = 0, subordinate = 0;  // of a bridge: the buses behind it
  int numa_node = -1;                      // -1: unknown
  std::vector<unsigned> cpus;
  engine::PciIdentity identity;  // of an endpoint
  std::string driver, module;    // of an endpoint; empty for none
};

struct PciBus {
  std::string name;  // "ace0:00"
  std::string path;  // of its directory, "devices/pciace0:00/pci_bus/ace0:00"
  std::vector<unsigned> cpus;
};

struct PciLayout {
  std::vector<PciFunction> bridges;
  std::vector<PciFunction> devices;  // one for each device of the fabric, in order
  std::vector<PciBus> buses;
};

/// The machine's processors, by NUMA node
struct MachineCpus {
  std::vector<unsigned> all;
  /// Returns the processors of a node; empty if the machine has no such node.
  std::vector<unsigned> (*of_node)(int number) = nullptr;
};

/// Returns how many processors this machine can have, including those that are offline.
size_t machine_cpu_count();
/// Returns the processors of this machine.
MachineCpus machine_cpus();

/// Returns the layout, which has no functions if the topology is flat. Throws StartError if it
/// needs more buses than PCI has.
PciLayout make_pci_layout(const options::Topology& topology, size_t device_count,
                          const MachineCpus& cpus);

}  // namespace rocemu::daemon
