// The files in sysfs for the devices: those that libibverbs, librdmacm, libibumad and tools read,
// at the same paths as in the kernel. The entries of a class are links to /sys/devices.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/kernel/pci_layout.h"
#include "emulator/daemon/kernel/real_devices.h"
#include "emulator/daemon/kernel/sysfs_files.h"
#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/simulated_network.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

struct SysfsDevice {
  std::string name;
  std::vector<wire::IpAddress> addresses;
  abi::DeviceAttr attr;  // as returned by ibv_query_device(3)
  abi::PortAttr port;
  size_t index = 0;
  std::vector<std::string> netdevs = {};  // of each address
  std::shared_ptr<const engine::DeviceProfile> profile = engine::generic_profile();
  bool has_pauses = false;  // its port counts PFC frames, in a simulated network

  /// Returns the network interface of the port: that of the device's first address that is not a
  /// loopback address.
  std::string netdev() const;
};

class SysfsTree {
 public:
  /// Derives the PCI functions from the topology. Throws StartError if it is too large for PCI.
  SysfsTree(const options::Topology& topology, size_t device_count,
            std::vector<NetworkInterface> interfaces, RealDevices real = {});

  /// Returns the network interface of each address.
  std::vector<std::string> netdevs_of(const std::vector<wire::IpAddress>& addresses) const;

  /// Returns the files of all devices, in no particular order. The caller must create the
  /// directories of their paths.
  std::vector<SysfsFile> files(const std::vector<SysfsDevice>& devices) const;
  /// Returns the files of one device with their current contents.
  std::vector<SysfsFile> files_of(const SysfsDevice& device) const;
  /// Returns the files that change when the port goes down or up.
  std::vector<SysfsFile> port_state_files(const std::string& device, size_t index,
                                          const abi::PortAttr& port) const;
  /// Returns the files of the port's counters, under the names of mlx5 and rxe.
  std::vector<SysfsFile> counter_files(const std::string& device, size_t index,
                                       const engine::Counters& counters,
                                       const std::optional<engine::PauseCounters>& pauses) const;

  /// Returns the links and directories that must be removed with the device. Its PCI function
  /// stays.
  std::vector<std::string> entry_paths(const std::string& device, size_t index) const;

 private:
  std::string verbs_name(size_t index) const;
  std::string mad_name(size_t index) const;
  /// Returns the path of the device's entry `name` in a class.
  std::string entry_path(size_t index, const char* class_name, const std::string& name) const;
  std::string port_directory(const std::string& device, size_t index) const;
  void add_links(SysfsFiles& files, const SysfsDevice& device) const;
  void add_device(SysfsFiles& files, const SysfsDevice& device) const;
  void add_port(SysfsFiles& files, const SysfsDevice& device) const;
  /// Adds another port of the device, which is down and has no address.
  void add_further_port(SysfsFiles& files, const SysfsDevice& device, unsigned number) const;
  void add_port_attributes(SysfsFiles& files, const SysfsDevice& device,
                           const std::string& directory, const abi::PortAttr& port,
                           const std::vector<wire::IpAddress>& gids) const;
  void add_netdev(SysfsFiles& files, const std::string& name, size_t index) const;

  bool is_flat_;
  PciLayout pci_;
  std::vector<NetworkInterface> interfaces_;
  RealDevices real_;  // that programs see, too
  /// A file of this machine whose reading fails with EINVAL; empty if there is none.
  std::string unreadable_;
};

}  // namespace rocemu::daemon
