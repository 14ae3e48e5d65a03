#include "emulator/daemon/base/profile_messages.h"

#include <spdlog/spdlog.h>

#include <cctype>

#include "emulator/engine/verbs/profile_limits.h"
#include "emulator/os/proc.h"

namespace rocemu::daemon {

void ProfileMessages::explain(const engine::DeviceProfile& profile, const abi::Request& request,
                              int error, pid_t program) {
  if (profile.is_generic() || error == 0) return;
  auto refusal = engine::refusal_of(profile, request, 0);
  if (!refusal) refusal = engine::refusal_of(profile, request, UINT64_MAX);  // all are in use
  if (!refusal || refusal->error != error) return;  // a rule or the engine refused the request
  const std::string verb(abi::name_of(request.op));
  std::string kind = verb + refusal->what;
  std::erase_if(kind, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!logged_.insert(std::move(kind)).second) return;
  spdlog::warn("profile {}: {}: ibv_{}: {}", profile.name, proc::name_of(program), verb,
               refusal->what);
}

}  // namespace rocemu::daemon
