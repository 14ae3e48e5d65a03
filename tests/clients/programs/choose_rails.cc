// Prints the location of each NIC, determined as in NCCL's net_ib.cc and Mooncake's topology.cpp,
// and for each NUMA node the NICs that these libraries would choose there.
#include <infiniband/verbs.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string resolved(const std::string& path) {
  char out[PATH_MAX];
  return realpath(path.c_str(), out) != nullptr ? out : "";
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream stream(path);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  return parts;
}

int fail(const std::string& what) {
  std::cerr << what << "\n";
  return 1;
}

}  // namespace

int main() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr) return fail("no list of devices");
  std::map<std::string, std::vector<std::string>> by_node;
  for (int i = 0; i < count; ++i) {
    const std::string name = ibv_get_device_name(devices[i]);
    const std::string place = "/sys/class/infiniband/" + name;
    // NCCL, net_ib.cc: ncclIbGetPciPath().
    const std::string pci = resolved(place + "/device");
    // Mooncake, topology.cpp: listInfiniBandDevices().
    if (resolved(place + "/../..") != pci) return fail(name + " is at two places");
    // libibverbs reports the device's directory by another path, which must resolve to the same
    // directory.
    if (resolved(std::string(devices[i]->ibdev_path)) != resolved(place)) {
      return fail(name + " is elsewhere for libibverbs");
    }
    ibv_context* const context = ibv_open_device(devices[i]);
    if (context == nullptr) return fail(name + " does not open");
    ibv_port_attr port{};
    ibv_gid gid{};
    if (ibv_query_port(context, 1, &port) != 0 || port.link_layer != IBV_LINK_LAYER_ETHERNET ||
        ibv_query_gid(context, 1, 0, &gid) != 0) {
      return fail(name + " has no port of Ethernet with a GID");
    }
    ibv_close_device(context);
    // NCCL, topo.cc: the class of a NIC begins with 0x02, and the last component of the path is its
    // PCI address.
    if (line_of(pci + "/class").substr(0, 4) != "0x02") return fail(name + " is no NIC");
    const std::vector<std::string> parts = parts_of(pci);
    const std::string address = parts.back();
    if (resolved("/sys/bus/pci/devices/" + address) != pci) {
      return fail(name + " is not among the PCI devices");
    }
    // NCCL, topo.cc: getPciPath().
    const std::string bus = address.substr(0, 7);
    if (resolved("/sys/class/pci_bus/" + bus + "/../../" + address) != pci) {
      return fail(name + " is not on its bus");
    }
    const std::string node = line_of(pci + "/numa_node");
    const std::string above = parts.size() > 6 ? parts[parts.size() - 3] : "none";
    std::cout << name << " node " << node << " switch " << above << " cpus "
              << line_of(pci + "/local_cpulist") << "\n";
    by_node[node].push_back(name);
  }
  ibv_free_device_list(devices);
  for (const auto& [node, names] : by_node) {
    std::cout << "node " << node << ":";
    for (const std::string& name : names) std::cout << " " << name;
    std::cout << "\n";
  }
}
