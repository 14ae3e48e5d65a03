#include "emulator/daemon/kernel/sysfs_pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "emulator/abi/runtime_dir.h"

namespace rocemu::daemon {
namespace {

/// The vendor ID of QEMU's devices, and a device ID that QEMU does not use.
constexpr uint16_t kVendor = 0x1b36, kBridge = 0xace1;
constexpr uint32_t kPciBridge = 0x060400;
/// The PCI Express link speed that, with 16 lanes, suffices for a port of 100 Gbit/s.
constexpr char kLinkSpeed[] = "8.0 GT/s PCIe";
constexpr uint16_t kLinkSpeedCode = 3, kLinkWidth = 16;
constexpr char kDevices[] = "bus/pci/devices";
const std::string kDrivers = "bus/pci/drivers/";

bool is_bridge(const PciFunction& function) {
  return function.port != PciPort::kEndpoint;
}

engine::PciIdentity identity_of(const PciFunction& function) {
  if (!is_bridge(function)) return function.identity;
  return {.vendor = kVendor,
          .device = kBridge,
          .subsystem_vendor = 0,
          .subsystem_device = 0,
          .class_code = kPciBridge};
}

/// The configuration space of a function, with a PCI Express capability and without BARs
class ConfigSpace {
 public:
  explicit ConfigSpace(const PciFunction& function) : bytes_(256, '\0') {
    constexpr uint16_t kMemoryAndMaster = 6, kHasCapabilities = 0x10;
    const engine::PciIdentity identity = identity_of(function);
    put(0x00, identity.vendor, 2);
    put(0x02, identity.device, 2);
    put(0x04, kMemoryAndMaster, 2);
    put(0x06, kHasCapabilities, 2);
    put(0x08, identity.revision, 1);
    put(0x09, identity.class_code, 3);
    put(0x0e, is_bridge(function) ? 1 : 0, 1);  // the header's type
    if (is_bridge(function)) {
      put(0x18, function.bus, 1);
      put(0x19, function.secondary, 1);
      put(0x1a, function.subordinate, 1);
    } else {
      put(0x2c, identity.subsystem_vendor, 2);
      put(0x2e, identity.subsystem_device, 2);
    }
    put(0x34, kExpress, 1);
    constexpr uint16_t kExpressId = 0x10, kVersion = 2;
    put(kExpress, kExpressId, 1);
    put(kExpress + 0x02, kVersion | static_cast<uint32_t>(function.port) << 4, 2);
    constexpr uint32_t kLink = kLinkSpeedCode | kLinkWidth << 4;
    put(kExpress + 0x0c, kLink, 4);
    put(kExpress + 0x12, kLink, 2);
  }
  std::string take() { return std::move(bytes_); }

 private:
  static constexpr size_t kExpress = 0x40;

  void put(size_t offset, uint32_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes_[offset + i] = static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

void add_function(SysfsFiles& files, const PciFunction& function) {
  const auto add = [&](const char* name, std::string_view content) {
    files.add(fmt::format("{}/{}", function.path, name), content);
  };
  const auto [vendor, device, subsystem_vendor, subsystem_device, class_code, revision] =
      identity_of(function);
  const std::string alias = fmt::format(
      "pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{:02X}sc{:02X}i{:02X}", vendor, device, subsystem_vendor,
      subsystem_device, class_code >> 16, class_code >> 8 & 0xff, class_code & 0xff);
  add("vendor", fmt::format("0x{:04x}", vendor));
  add("device", fmt::format("0x{:04x}", device));
  add("subsystem_vendor", fmt::format("0x{:04x}", subsystem_vendor));
  add("subsystem_device", fmt::format("0x{:04x}", subsystem_device));
  add("class", fmt::format("0x{:06x}", class_code));
  add("revision", fmt::format("0x{:02x}", revision));
  add("irq", "0");
  add("enable", "1");
  add("numa_node", std::to_string(function.numa_node));
  const size_t machine = machine_cpu_count();
  add("local_cpus", cpu_mask_text(function.cpus, machine));
  add("local_cpulist", cpu_list_text(function.cpus));
  for (const char* which : {"current", "max"}) {
    files.add(fmt::format("{}/{}_link_speed", function.path, which), kLinkSpeed);
    files.add(fmt::format("{}/{}_link_width", function.path, which), std::to_string(kLinkWidth));
  }
  // A function with a driver has no `modalias`, because libibverbs uses it to find the provider of
  // a real NIC. Such a provider can be linked into a program (libmlx5 into perftest), and would
  // take the device before libibverbs asks rocemu's provider. `uevent` still has the alias.
  if (function.driver.empty()) add("modalias", alias);
  add("uevent",
      fmt::format("{}PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\n"
                  "PCI_SLOT_NAME={}\nMODALIAS={}",
                  function.driver.empty() ? "" : "DRIVER=" + function.driver + "\n", class_code,
                  vendor, device, subsystem_vendor, subsystem_device, function.address, alias));
  std::string resources;
  constexpr int kResources = 13;  // six BARs, the ROM, six of a virtual function
  for (int i = 0; i < kResources; ++i)
    resources += fmt::format("{0:#018x} {0:#018x} {0:#018x}\n", 0);
  files.add_binary(function.path + "/resource", resources);
  files.add_binary(function.path + "/config", ConfigSpace(function).take());
  files.link(function.path + "/subsystem", "bus/pci");
  if (!function.driver.empty()) files.link(function.path + "/driver", kDrivers + function.driver);
  files.link(fmt::format("{}/{}", kDevices, function.address), function.path);
}

/// Adds a link from each driver to its module.
void add_modules(SysfsFiles& files, const PciLayout& layout) {
  std::map<std::string, std::string> modules;  // by the names of their drivers
  for (const PciFunction& device : layout.devices)
    if (!device.driver.empty() && !device.module.empty())
      modules.emplace(device.driver, device.module);
  for (const auto& [driver, module] : modules)
    files.link(kDrivers + driver + "/module", "module/" + module);
}

/// Adds links to the machine's own functions, with their absolute paths.
void add_machines_functions(SysfsFiles& files) {
  const std::string directory = fmt::format("/sys/{}", kDevices);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    // This function belongs to another emulated NIC, inside whose --mount-sysfs this NIC runs.
    if (entry.path().filename().string().starts_with(abi::kPciDomain)) continue;
    // The link names the canonical directory, because --mount-sysfs may replace
    // /sys/bus/pci/devices with the list that is being written here.
    const auto place = std::filesystem::canonical(entry.path(), ignored);
    files.link_outside(fmt::format("{}/{}", kDevices, entry.path().filename().string()), place);
  }
}

}  // namespace

void add_pci(SysfsFiles& files, const PciLayout& layout) {
  if (layout.devices.empty()) return;
  const size_t machine = machine_cpu_count();
  for (const PciFunction& bridge : layout.bridges) add_function(files, bridge);
  for (const PciFunction& device : layout.devices) add_function(files, device);
  add_modules(files, layout);
  for (const PciBus& bus : layout.buses) {
    files.add(bus.path + "/cpuaffinity", cpu_mask_text(bus.cpus, machine));
    files.add(bus.path + "/cpulistaffinity", cpu_list_text(bus.cpus));
    files.link("class/pci_bus/" + bus.name, bus.path);
  }
  add_machines_functions(files);
}

std::string cpu_mask_text(const std::vector<unsigned>& cpus, size_t machine_cpus) {
  const size_t bits = std::max(machine_cpus, cpus.empty() ? 0 : size_t{std::ranges::max(cpus)} + 1);
  std::vector<uint32_t> words((bits + 31) / 32);
  for (const unsigned cpu : cpus) words[cpu / 32] |= uint32_t{1} << cpu % 32;
  // The first word of the mask has only as many digits as are needed for the machine's processors.
  const size_t digits = ((bits - 1) % 32 + 4) / 4;
  std::string text = fmt::format("{:0{}x}", words.back(), digits);
  for (size_t i = words.size() - 1; i-- > 0;) text += fmt::format(",{:08x}", words[i]);
  return text;
}

std::string cpu_list_text(const std::vector<unsigned>& cpus) {
  std::vector<unsigned> sorted = cpus;
  std::ranges::sort(sorted);
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(sorted[i]);
    if (end - i > 1) text += fmt::format("-{}", sorted[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace rocemu::daemon
