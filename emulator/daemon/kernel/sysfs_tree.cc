#include "emulator/daemon/kernel/sysfs_tree.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <string_view>

#include "emulator/abi/runtime_dir.h"

namespace rocemu::daemon {
namespace {

// "0200:00ff:fe00:0001"
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

// As the kernel words it: "100 Gb/sec (4X EDR)".
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

// All processors, in the kernel's form: "ff", "3,ffffffff".
std::string cpu_mask_text() {
  const int cpus = std::max(get_nprocs_conf(), 1);
  const int last_word_bits = cpus % 32 == 0 ? 32 : cpus % 32;
  std::string text = fmt::format("{:x}", ~uint32_t{0} >> (32 - last_word_bits));
  for (int word = 1; word < (cpus + 31) / 32; ++word) text += ",ffffffff";
  return text;
}

constexpr char kPort[] = "/ports/1";

std::string directory_of(const std::string& device) {
  return "class/infiniband/" + device;
}

std::string verbs_directory_of(size_t index) {
  return fmt::format("class/infiniband_verbs/{}{}", abi::kDevicePrefix, index);
}

std::string mad_directory_of(size_t index) {
  return fmt::format("class/infiniband_mad/umad{}", index);
}

class Tree {
 public:
  void add(std::string path, std::string_view content) {
    files_.push_back({std::move(path), fmt::format("{}\n", content)});
  }
  std::vector<SysfsFile> take() { return std::move(files_); }

 private:
  std::vector<SysfsFile> files_;
};

void add_port_state(Tree& tree, const std::string& directory, const abi::PortAttr& port) {
  tree.add(directory + "/state", state_text(port.state));
  tree.add(directory + "/phys_state", physical_state_text(port.phys_state));
}

void add_port(Tree& tree, const std::string& directory, const SysfsDevice& device) {
  const abi::PortAttr& port = device.port;
  add_port_state(tree, directory, port);
  tree.add(directory + "/rate", rate_text(port.active_width, port.active_speed));
  tree.add(directory + "/link_layer", "Ethernet");
  tree.add(directory + "/cap_mask", fmt::format("0x{:08x}", port.port_cap_flags));
  tree.add(directory + "/lid", "0x0");
  tree.add(directory + "/lid_mask_count", "0");
  tree.add(directory + "/sm_lid", "0x0");
  tree.add(directory + "/sm_sl", "0");
  for (unsigned i = 0; i < port.pkey_tbl_len; ++i) {
    tree.add(fmt::format("{}/pkeys/{}", directory, i), i == 0 ? "0xffff" : "0x0000");
  }
  // One missing type makes ibv_query_gid_table fail altogether, so empty entries have one as well.
  for (size_t i = 0; i < engine::kGidTableLength; ++i) {
    const bool used = i < device.addresses.size();
    tree.add(fmt::format("{}/gids/{}", directory, i),
             gid_text(used ? device.addresses[i] : wire::IpAddress{}));
    tree.add(fmt::format("{}/gid_attrs/types/{}", directory, i), "RoCE v2");
    tree.add(fmt::format("{}/gid_attrs/ndevs/{}", directory, i), used ? kNetdev : "");
  }
}

void add_device(Tree& tree, const SysfsDevice& device, size_t index) {
  const std::string directory = directory_of(device.name);
  const abi::DeviceAttr& attr = device.attr;
  tree.add(directory + "/node_type", "1: CA");
  tree.add(directory + "/node_guid", guid_text(attr.node_guid));
  tree.add(directory + "/sys_image_guid", guid_text(attr.sys_image_guid));
  tree.add(directory + "/node_desc", device.name);
  tree.add(directory + "/fw_ver",
           std::string_view(attr.fw_ver, strnlen(attr.fw_ver, sizeof attr.fw_ver)));
  tree.add(directory + "/hw_rev", fmt::format("0x{:x}", attr.hw_ver));
  tree.add(directory + "/hca_type", "rocemu");  // by which the provider knows its own
  tree.add(directory + "/board_id", "rocemu");
  tree.add(directory + "/device/numa_node", "-1");
  tree.add(directory + "/device/local_cpus", cpu_mask_text());
  tree.add(directory + "/device/local_cpulist",
           fmt::format("0-{}", std::max(get_nprocs_conf(), 1) - 1));
  tree.add(fmt::format("{}/device/net/{}/dev_port", directory, kNetdev), "0");
  add_port(tree, directory + kPort, device);

  const std::string verbs = verbs_directory_of(index);
  tree.add(verbs + "/ibdev", device.name);
  tree.add(verbs + "/dev", fmt::format("{}:{}", abi::kDeviceMajor, abi::kDeviceMinorBase + index));
  tree.add(verbs + "/abi_version", "1");

  const std::string mad = mad_directory_of(index);
  tree.add(mad + "/ibdev", device.name);
  tree.add(mad + "/port", "1");
  tree.add(mad + "/dev", fmt::format("{}:{}", abi::kDeviceMajor, index));
}

}  // namespace

std::vector<std::string> sysfs_directories(const std::string& device, size_t index) {
  return {directory_of(device), verbs_directory_of(index), mad_directory_of(index)};
}

std::vector<SysfsFile> port_state_files(const std::string& device, const abi::PortAttr& port) {
  Tree tree;
  add_port_state(tree, directory_of(device) + kPort, port);
  return tree.take();
}

std::vector<SysfsFile> sysfs_files(const std::vector<SysfsDevice>& devices) {
  Tree tree;
  tree.add("class/infiniband_verbs/abi_version", "6");
  tree.add("class/infiniband_mad/abi_version", "5");
  tree.add("class/misc/rdma_cm/abi_version", "4");
  tree.add("class/misc/rdma_cm/dev", fmt::format("{}:{}", abi::kCmMajor, abi::kCmMinor));
  for (size_t i = 0; i < devices.size(); ++i) add_device(tree, devices[i], i);
  return tree.take();
}

}  // namespace rocemu::daemon
