#include "emulator/daemon/kernel/sysfs_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/kernel/port_counters.h"
#include "emulator/daemon/kernel/sysfs_pci.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

// Returns the text of a GUID, such as "0200:00ff:fe00:0001".
std::string guid_text(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48 & 0xffff, guid >> 32 & 0xffff,
                     guid >> 16 & 0xffff, guid & 0xffff);
}

std::string gid_text(const wire::IpAddress& gid) {
  std::string text;
  for (size_t i = 0; i < gid.bytes.size(); i += 2) {
    fmt::format_to(std::back_inserter(text), "{}{:02x}{:02x}", i == 0 ? "" : ":", gid.bytes[i],
                   gid.bytes[i + 1]);
  }
  return text;
}

// Returns the data rate in the words of the kernel, such as "100 Gb/sec (4X EDR)".
std::string rate_text(uint8_t width_code, uint8_t speed_code) {
  struct Speed {
    uint8_t code;
    unsigned tenths_of_gigabit;
    std::string_view name;
  };
  constexpr Speed kSpeeds[] = {{1, 25, ""},        {2, 50, " DDR"},    {4, 100, " QDR"},
                               {8, 100, " FDR10"}, {16, 140, " FDR"},  {32, 250, " EDR"},
                               {64, 500, " HDR"},  {128, 1000, " NDR"}};
  const unsigned width = width_code == 16  ? 2
                         : width_code == 8 ? 12
                         : width_code == 4 ? 8
                         : width_code == 2 ? 4
                                           : 1;
  const auto* speed = std::find_if(std::begin(kSpeeds), std::end(kSpeeds),
                                   [&](const Speed& entry) { return entry.code == speed_code; });
  if (speed == std::end(kSpeeds)) speed = kSpeeds;
  const unsigned tenths = speed->tenths_of_gigabit * width;
  return fmt::format("{}{} Gb/sec ({}X{})", tenths / 10, tenths % 10 == 0 ? "" : ".5", width,
                     speed->name);
}

std::string state_text(uint32_t state) {
  constexpr std::string_view kNames[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
  return state < std::size(kNames) ? fmt::format("{}: {}", state, kNames[state])
                                   : fmt::format("{}: UNKNOWN", state);
}

std::string physical_state_text(uint8_t state) {
  constexpr std::string_view kNames[] = {
      "<unknown>",         "Sleep",   "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
      "LinkErrorRecovery", "Phy Test"};
  return fmt::format("{}: {}", state, state < std::size(kNames) ? kNames[state] : "<unknown>");
}

// Returns a file of the machine whose reading fails with EINVAL; empty if there is none. On Linux,
// reading the attributes of an empty GID table entry fails with EINVAL, and programs recognize
// empty entries by this. A regular file cannot do this, so these attributes are links to an
// attribute of the loopback interface, which has neither speed nor duplex.
std::string find_unreadable() {
  for (const char* path : {"/sys/class/net/lo/speed", "/sys/class/net/lo/duplex"}) {
    const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
    char byte;
    if (fd && read(fd.get(), &byte, 1) < 0 && errno == EINVAL) return path;
  }
  return "";
}

constexpr char kVerbs[] = "infiniband_verbs", kMad[] = "infiniband_mad", kRdma[] = "infiniband";

std::string in_class(const char* class_name, const std::string& name) {
  return fmt::format("class/{}/{}", class_name, name);
}

std::string node_type_text(engine::NodeType type) {
  switch (type) {
    case engine::NodeType::kCa:
      return "1: CA";
    case engine::NodeType::kRnic:
      return "4: RNIC";
    case engine::NodeType::kUsnic:
      return "5: usNIC";
    case engine::NodeType::kUsnicUdp:
      return "6: usNIC UDP";
    case engine::NodeType::kUnspecified:
      return "7: unspecified";
  }
  return "1: CA";
}

std::string link_layer_text(uint8_t layer) {
  constexpr std::string_view kNames[] = {"Unspecified", "InfiniBand", "Ethernet"};
  return std::string(layer < std::size(kNames) ? kNames[layer] : "Unknown");
}

std::string gid_type_text(const engine::DeviceProfile& profile, size_t index) {
  const engine::GidType type = profile.gid_types[index % profile.gid_types.size()];
  return type == engine::GidType::kRoceV1 ? "IB/RoCE v1" : "RoCE v2";
}

void add_port_state(SysfsFiles& files, const std::string& directory, const abi::PortAttr& port) {
  files.add(directory + "/state", state_text(port.state));
  files.add(directory + "/phys_state", physical_state_text(port.phys_state));
}

/// Returns the layout with the PCI identities and drivers from the devices' profiles.
PciLayout with_identities(PciLayout layout, const std::vector<SysfsDevice>& devices) {
  for (const SysfsDevice& device : devices) {
    if (device.index >= layout.devices.size()) continue;
    PciFunction& function = layout.devices[device.index];
    function.identity = device.profile->pci;
    function.driver = device.profile->identity.driver;
    function.module = device.profile->identity.module;
  }
  return layout;
}

}  // namespace

std::string SysfsDevice::netdev() const {
  const auto found =
      std::ranges::find_if(netdevs, [](const std::string& one) { return one != kLoopback; });
  return found != netdevs.end() ? *found : kLoopback;
}

SysfsTree::SysfsTree(const options::Topology& topology, size_t device_count,
                     std::vector<NetworkInterface> interfaces, RealDevices real)
    : is_flat_(topology.is_flat),
      pci_(make_pci_layout(topology, device_count, machine_cpus())),
      interfaces_(std::move(interfaces)),
      real_(std::move(real)),
      unreadable_(find_unreadable()) {}

std::vector<std::string> SysfsTree::netdevs_of(
    const std::vector<wire::IpAddress>& addresses) const {
  std::vector<std::string> names;
  for (const wire::IpAddress& address : addresses) {
    const NetworkInterface* const owner = find_owner(interfaces_, address);
    names.push_back(owner != nullptr ? owner->name : kLoopback);
  }
  return names;
}

std::string SysfsTree::verbs_name(size_t index) const {
  return fmt::format("{}{}", abi::kDevicePrefix, real_.first_free_number + index);
}

std::string SysfsTree::mad_name(size_t index) const {
  return fmt::format("umad{}", real_.first_free_number + index);
}

std::string SysfsTree::entry_path(size_t index, const char* class_name,
                                  const std::string& name) const {
  const std::string parent = is_flat_ ? "devices/virtual" : pci_.devices[index].path;
  return fmt::format("{}/{}/{}", parent, class_name, name);
}

std::string SysfsTree::port_directory(const std::string& device, size_t index) const {
  return entry_path(index, kRdma, device) + "/ports/1";
}

void SysfsTree::add_links(SysfsFiles& files, const SysfsDevice& device) const {
  for (const auto& [class_name, name] : {std::pair(kRdma, device.name),
                                         {kVerbs, verbs_name(device.index)},
                                         {kMad, mad_name(device.index)}}) {
    const std::string path = entry_path(device.index, class_name, name);
    files.link(in_class(class_name, name), path);
    files.link(path + "/subsystem", fmt::format("class/{}", class_name));
    if (!is_flat_) files.link(path + "/device", pci_.devices[device.index].path);
  }
}

void SysfsTree::add_port(SysfsFiles& files, const SysfsDevice& device) const {
  add_port_attributes(files, device, port_directory(device.name, device.index), device.port,
                      device.addresses);
}

void SysfsTree::add_further_port(SysfsFiles& files, const SysfsDevice& device,
                                 unsigned number) const {
  constexpr uint8_t kDisabled = 3;
  abi::PortAttr port = device.port;
  port.state = static_cast<uint32_t>(abi::PortState::kDown);
  port.phys_state = kDisabled;
  const std::string directory =
      fmt::format("{}/ports/{}", entry_path(device.index, kRdma, device.name), number);
  add_port_attributes(files, device, directory, port, {});
}

void SysfsTree::add_port_attributes(SysfsFiles& files, const SysfsDevice& device,
                                    const std::string& directory, const abi::PortAttr& port,
                                    const std::vector<wire::IpAddress>& gids) const {
  add_port_state(files, directory, port);
  files.add(directory + "/rate", rate_text(port.active_width, port.active_speed));
  files.add(directory + "/link_layer", link_layer_text(port.link_layer));
  files.add(directory + "/cap_mask", fmt::format("0x{:08x}", port.port_cap_flags));
  files.add(directory + "/lid", fmt::format("0x{:x}", port.lid));
  files.add(directory + "/lid_mask_count", std::to_string(port.lmc));
  files.add(directory + "/sm_lid", fmt::format("0x{:x}", port.sm_lid));
  files.add(directory + "/sm_sl", "0");
  for (unsigned i = 0; i < port.pkey_tbl_len; ++i) {
    files.add(fmt::format("{}/pkeys/{}", directory, i), i == 0 ? "0xffff" : "0x0000");
  }
  for (size_t i = 0; i < port.gid_tbl_len; ++i) {
    const bool used = i < gids.size();
    const std::string type = fmt::format("{}/gid_attrs/types/{}", directory, i);
    const std::string netdev = fmt::format("{}/gid_attrs/ndevs/{}", directory, i);
    files.add(fmt::format("{}/gids/{}", directory, i),
              gid_text(used ? gids[i] : wire::IpAddress{}));
    if (used) {
      files.add(type, gid_type_text(*device.profile, i));
      files.add(netdev, i < device.netdevs.size() ? device.netdevs[i] : kLoopback);
    } else if (!unreadable_.empty()) {
      files.link_outside(type, unreadable_);
      files.link_outside(netdev, unreadable_);
    } else {
      // The entry needs some type, because ibv_query_gid_table() fails completely if one type is
      // missing.
      files.add(type, "RoCE v2");
      files.add(netdev, "");
    }
  }
}

void SysfsTree::add_device(SysfsFiles& files, const SysfsDevice& device) const {
  const std::string directory = entry_path(device.index, kRdma, device.name);
  const abi::DeviceAttr& attr = device.attr;
  const engine::DeviceProfile& profile = *device.profile;
  const engine::DeviceIdentity& identity = profile.identity;
  files.add(directory + "/node_type", node_type_text(identity.node_type));
  files.add(directory + "/node_guid", guid_text(attr.node_guid));
  files.add(directory + "/sys_image_guid", guid_text(attr.sys_image_guid));
  files.add(directory + "/node_desc",
            identity.node_desc.empty() ? device.name : identity.node_desc);
  files.add(directory + "/fw_ver",
            std::string_view(attr.fw_ver, strnlen(attr.fw_ver, sizeof attr.fw_ver)));
  files.add(directory + "/hw_rev",
            identity.hw_rev.empty() ? fmt::format("0x{:x}", attr.hw_ver) : identity.hw_rev);
  // rocemu's provider recognizes rocemu's devices by these two files.
  if (!identity.hca_type.empty()) files.add(directory + "/hca_type", identity.hca_type);
  if (!profile.is_generic()) files.add(directory + "/" + abi::kProfileFile, profile.name);
  if (!identity.board_id.empty()) files.add(directory + "/board_id", identity.board_id);
  files.add(directory + "/uevent", fmt::format("NAME={}", device.name));
  if (is_flat_) files.add(directory + "/parent", device.netdev());  // as rxe
  add_port(files, device);
  for (unsigned number = 2; number <= attr.phys_port_cnt; ++number)
    add_further_port(files, device, number);

  const std::string verbs = entry_path(device.index, kVerbs, verbs_name(device.index));
  const auto minor = abi::kDeviceMinorBase + real_.first_free_number + device.index;
  files.add(verbs + "/ibdev", device.name);
  files.add(verbs + "/dev", fmt::format("{}:{}", abi::kDeviceMajor, minor));
  files.add(verbs + "/abi_version", "1");
  files.add(verbs + "/uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}",
                                           abi::kDeviceMajor, minor, verbs_name(device.index)));

  const std::string mad = entry_path(device.index, kMad, mad_name(device.index));
  files.add(mad + "/ibdev", device.name);
  files.add(mad + "/port", "1");
  files.add(mad + "/dev",
            fmt::format("{}:{}", abi::kDeviceMajor, real_.first_free_number + device.index));
}

// Adds the directory of the network interface below the PCI function, with links to the attributes
// of the machine's interface.
void SysfsTree::add_netdev(SysfsFiles& files, const std::string& name, size_t index) const {
  const std::string directory = entry_path(index, "net", name);
  std::error_code ignored;
  // The links use the canonical directory of the interface, because /sys/class/net may later lead
  // to the directory that is being written here.
  const auto machines = std::filesystem::canonical("/sys/class/net/" + name, ignored);
  for (const auto& entry : std::filesystem::directory_iterator(machines, ignored)) {
    const std::string attribute = entry.path().filename();
    if (attribute == "device" || attribute == "subsystem" || attribute == "dev_port") continue;
    files.link_outside(directory + "/" + attribute, entry.path());
  }
  files.add(directory + "/dev_port", "0");
  files.link(directory + "/device", pci_.devices[index].path);
  files.link(directory + "/subsystem", "class/net");
}

std::vector<SysfsFile> SysfsTree::files_of(const SysfsDevice& device) const {
  SysfsFiles files;
  add_device(files, device);
  return files.take();
}

std::vector<SysfsFile> SysfsTree::files(const std::vector<SysfsDevice>& devices) const {
  SysfsFiles files;
  files.add("class/infiniband_verbs/abi_version", "6");
  files.add("class/infiniband_mad/abi_version", "5");
  files.add("class/misc/rdma_cm/abi_version", "4");
  files.add("class/misc/rdma_cm/dev", fmt::format("{}:{}", abi::kCmMajor, abi::kCmMinor));
  files.append(real_.links);
  add_pci(files, with_identities(pci_, devices));
  std::set<std::string> netdevs{kLoopback};  // of a device or, as this one, of none
  for (const SysfsDevice& device : devices) {
    add_device(files, device);
    add_links(files, device);
    const auto pauses =
        device.has_pauses ? std::optional<engine::PauseCounters>(std::in_place) : std::nullopt;
    files.append(counter_files(device.name, device.index, {}, pauses));
    if (is_flat_) continue;
    const std::string netdev = device.netdev();
    add_netdev(files, netdev, device.index);
    if (netdevs.insert(netdev).second) {
      files.link(in_class("net", netdev), entry_path(device.index, "net", netdev));
    }
  }
  return files.take();
}

std::vector<SysfsFile> SysfsTree::port_state_files(const std::string& device, size_t index,
                                                   const abi::PortAttr& port) const {
  SysfsFiles files;
  add_port_state(files, port_directory(device, index), port);
  return files.take();
}

std::vector<SysfsFile> SysfsTree::counter_files(
    const std::string& device, size_t index, const engine::Counters& counters,
    const std::optional<engine::PauseCounters>& pauses) const {
  SysfsFiles files;
  const std::string directory = port_directory(device, index);
  for (const NamedCounter& counter : port_counters(counters)) {
    files.add(fmt::format("{}/counters/{}", directory, counter.name),
              std::to_string(counter.value));
  }
  for (const NamedCounter& counter : hardware_counters(counters, pauses)) {
    files.add(fmt::format("{}/hw_counters/{}", directory, counter.name),
              std::to_string(counter.value));
  }
  files.add(directory + "/hw_counters/lifespan", "0");  // each reader gets the present value
  return files.take();
}

std::vector<std::string> SysfsTree::entry_paths(const std::string& device, size_t index) const {
  std::vector<std::string> paths;
  for (const auto& [class_name, name] :
       {std::pair(kRdma, device), {kVerbs, verbs_name(index)}, {kMad, mad_name(index)}}) {
    paths.push_back(in_class(class_name, name));
    paths.push_back(entry_path(index, class_name, name));
  }
  return paths;
}

}  // namespace rocemu::daemon
