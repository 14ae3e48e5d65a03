#include "emulator/options/removed_options.h"

#include <algorithm>
#include <array>

namespace rocemu::options {
namespace {

struct RemovedOption {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array kRemoved = {
    RemovedOption{"--threads", "leave it out: one thread of the daemon serves all devices"},
    RemovedOption{"--clock", "use --lockstep for virtual time; without it the clock is real"},
    RemovedOption{"--real-time-programs",
                  "in lockstep programs have virtual time; for real time leave out --lockstep"},
    RemovedOption{"--tell-exits", "use --report-failures instead"},
    RemovedOption{"--without-trace", "use --no-trace instead"},
    RemovedOption{"--sleep-between-turns", "use --no-spin instead"},
};

}  // namespace

std::optional<std::string> error_of_removed(std::string_view option) {
  const auto* const found = std::ranges::find(kRemoved, option, &RemovedOption::name);
  if (found == kRemoved.end()) return std::nullopt;
  return "option '" + std::string(option) + "' no longer exists; " + std::string(found->advice);
}

}  // namespace rocemu::options
