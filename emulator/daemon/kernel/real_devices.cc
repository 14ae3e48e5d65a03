#include "emulator/daemon/kernel/real_devices.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "emulator/abi/runtime_dir.h"

namespace rocemu::daemon {
namespace {
namespace fs = std::filesystem;

/// Returns the number at the end of a name such as "uverbs3", plus 1; 0 if the name has none.
size_t number_after(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  size_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return error == std::errc() ? number + 1 : 0;
}

std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
    entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

RealDevices find_real_devices(const std::string& root) {
  RealDevices found;
  SysfsFiles links;
  for (const fs::path& one_class : sorted_entries(root + "/sys/class")) {
    const std::string class_name = one_class.filename();
    if (!class_name.starts_with("infiniband")) continue;
    for (const fs::path& entry : sorted_entries(one_class)) {
      std::error_code error;
      if (!fs::is_symlink(entry, error)) continue;  // abi_version
      const std::string name = entry.filename();
      links.link_outside("class/" + class_name + "/" + name, fs::canonical(entry, error));
      if (class_name == "infiniband") {
        found.names.push_back(name);
      } else {
        found.first_free_number = std::max(found.first_free_number, number_after(name));
      }
    }
  }
  found.links = links.take();
  for (const fs::path& node : sorted_entries(root + "/" + abi::kDeviceDir))
    if (node.filename() != abi::kCmDevice) found.nodes.push_back(node.filename());
  return found;
}

}  // namespace rocemu::daemon
