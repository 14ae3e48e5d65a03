#include "emulator/daemon/control/control_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace rocemu::daemon {

ControlServer::Command taking(std::vector<std::string> keys, ControlServer::Command command) {
  return [keys = std::move(keys), command = std::move(command)](const Json& request) {
    for (const auto& [key, value] : request.items()) {
      if (key == "command" || std::ranges::find(keys, key) != keys.end()) continue;
      throw ControlServer::Refusal(fmt::format(
          "the command \"{}\" has no argument \"{}\"{}{}", request["command"].get<std::string>(),
          key, keys.empty() ? "" : "; its arguments are ", fmt::join(keys, ", ")));
    }
    return command(request);
  };
}

std::optional<std::string> text_of(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end()) return std::nullopt;
  if (!found->is_string()) {
    throw ControlServer::Refusal(fmt::format("\"{}\" must be a string", key));
  }
  return found->get<std::string>();
}

std::optional<bool> flag_of(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end()) return std::nullopt;
  if (!found->is_boolean()) {
    throw ControlServer::Refusal(fmt::format("\"{}\" must be true or false", key));
  }
  return found->get<bool>();
}

std::optional<uint64_t> number_of(const Json& request, const char* key, uint64_t least,
                                  uint64_t most) {
  const auto found = request.find(key);
  if (found == request.end()) return std::nullopt;
  if (!found->is_number_unsigned() || found->get<uint64_t>() < least ||
      found->get<uint64_t>() > most) {
    throw ControlServer::Refusal(
        fmt::format("\"{}\" must be a number from {} to {}", key, least, most));
  }
  return found->get<uint64_t>();
}

}  // namespace rocemu::daemon
