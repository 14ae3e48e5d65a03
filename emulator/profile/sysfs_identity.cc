#include "emulator/profile/sysfs_identity.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "emulator/profile/yaml_text.h"

namespace rocemu::profile {
namespace fs = std::filesystem;
namespace {

/// Returns the first line of the file, without trailing spaces.
std::optional<std::string> line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  return line;
}

std::optional<std::string> name_of_link(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  if (error || target.filename().empty()) return std::nullopt;
  return target.filename().string();
}

bool is_hexadecimal_number(std::string_view text) {
  if (!text.starts_with("0x")) return false;
  text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

class SysfsReader {
 public:
  explicit SysfsReader(fs::path device) : device_(std::move(device)) {}

  std::vector<FoundValue> read() {
    take_text("node_desc", "node_desc", false);
    take_text("hca_type", "hca_type", true);
    take_text("board_id", "board_id", true);
    take_text("hw_rev", "hw_rev", false);
    take_link("driver", "device/driver");
    take_link("module", "device/driver/module");
    take_number("vendor", "device/vendor");
    take_number("device", "device/device");
    take_number("subsystem_vendor", "device/subsystem_vendor");
    take_number("subsystem_device", "device/subsystem_device");
    take_number("class", "device/class");
    take_number("revision", "device/revision");
    take_gid_types();
    return std::move(found_);
  }

 private:
  void take_text(const char* key, const char* file, bool is_null_without) {
    if (const auto line = line_of(device_ / file)) {
      found_.push_back({"identity", key, yaml_text(*line), file});
    } else if (is_null_without && fs::exists(device_)) {
      found_.push_back({"identity", key, "null", std::string("no ") + file});
    }
  }

  void take_link(const char* key, const char* link) {
    if (const auto name = name_of_link(device_ / link))
      found_.push_back({"identity", key, yaml_text(*name), link});
  }

  void take_number(const char* key, const char* file) {
    const auto line = line_of(device_ / file);
    if (line && is_hexadecimal_number(*line)) found_.push_back({"pci", key, *line, file});
  }

  /// Reads the order of the GID types. Each address has one entry for each type, so the order in
  /// which the types first occur in the table is sufficient.
  void take_gid_types() {
    const fs::path types = device_ / "ports" / "1" / "gid_attrs" / "types";
    std::vector<std::string> names;
    std::error_code error;
    size_t count = 0;
    for (fs::directory_iterator at(types, error), end; !error && at != end; at.increment(error))
      ++count;
    for (size_t index = 0; index < count; ++index) {
      const auto line = line_of(types / std::to_string(index));  // empty entries cannot be read
      if (!line) continue;
      const std::string name = *line == "RoCE v2" ? "RoCE v2" : "RoCE v1";  // "IB/RoCE v1"
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (names.empty()) return;
    const std::string list = names[0] + (names.size() > 1 ? ", " + names[1] : "");
    found_.push_back({"gids", "types", "[" + list + "]", "ports/1/gid_attrs/types"});
  }

  const fs::path device_;
  std::vector<FoundValue> found_;
};

}  // namespace

std::vector<FoundValue> read_sysfs(const fs::path& device) {
  return SysfsReader(device).read();
}

}  // namespace rocemu::profile
