#include <cstdlib>
#include <optional>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {
namespace {

/// Returns a description of the devices, such as "mlx5_0 and mlx5_1 of profile mlx5-cx6dx".
std::string devices_text(const Json& devices) {
  std::string text, group, profile;
  const auto close_group = [&] {
    if (!group.empty()) text += (text.empty() ? "" : "; ") + group + " of profile " + profile;
    group.clear();
  };
  for (const Json& device : devices) {
    const auto its = device.at("profile").get<std::string>();
    if (its != profile) close_group();
    profile = its;
    group += (group.empty() ? "" : ", ") + device.at("name").get<std::string>();
  }
  close_group();
  return text;
}

}  // namespace

Findings check_nic() {
  const char* const dir = std::getenv(abi::kDirVariable);
  const bool is_in_run = dir != nullptr && dir[0] != '\0';
  if (!is_in_run && !distrust_of_base(base_dir()).empty()) return {};
  std::optional<ControlClient> client = ControlClient::connect(is_in_run ? dir : shared_dir());
  if (!client) return {};
  const std::string which = is_in_run ? "this run has " : "programs use the shared NIC, which has ";
  try {
    const Json state = client->request("show");
    return {{Level::kOk, "NIC", which + devices_text(state.at("fabric").at("devices")), ""}};
  } catch (const Failure& failure) {
    return {{Level::kProblem, "NIC", failure.what(), "end it: rocemu down"}};
  }
}

}  // namespace rocemu::command
