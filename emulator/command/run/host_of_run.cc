#include "emulator/command/run/host_of_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/options/read_number.h"

namespace rocemu::command {

uint32_t parse_host(const std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with('h')) digits.remove_prefix(1);
  const std::optional<uint64_t> host = options::read_number(digits);
  if (!host || *host > UINT32_MAX)
    throw UsageError(fmt::format(
        "run: --host '{}' is not the number of a host of the network, such as 3 or h3", text));
  return static_cast<uint32_t>(*host);
}

void choose_host(const std::string& dir, uint32_t host) {
  std::optional<ControlClient> client = ControlClient::connect(dir);
  if (!client) throw Failure("run: --host: the NIC does not answer");
  const Json devices = client->request("show").at("fabric").at("devices");
  if (host >= devices.size())
    throw Failure(fmt::format("run: --host {}: the NIC has {} devices, for hosts 0 to {}", host,
                              devices.size(), devices.size() - 1));
  const Json& device = devices[host];
  setenv(abi::kHostDeviceVariable, device.at("name").get<std::string>().c_str(), 1);
  for (const Json& gid : device.at("gids")) {
    const std::string address = gid.get<std::string>();
    if (address.find('.') == std::string::npos || address.find(':') != std::string::npos) continue;
    setenv(abi::kHostAddressVariable, address.c_str(), 1);
    return;
  }
  unsetenv(abi::kHostAddressVariable);
}

std::string outer_nic() {
  const char* const dir = std::getenv(abi::kDirVariable);
  return dir != nullptr ? dir : "";
}

}  // namespace rocemu::command
