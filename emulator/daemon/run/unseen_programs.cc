#include "emulator/daemon/run/unseen_programs.h"

#include <spdlog/spdlog.h>

#include <string_view>

#include "emulator/os/proc.h"
#include "emulator/os/programs/elf_file.h"

namespace rocemu::daemon {

void UnseenPrograms::look_at(pid_t process) {
  const std::string link = proc::directory_of(process) + "/exe";
  const std::string path = proc::link_at(link);
  std::string& known = programs_[process];
  if (path.empty() || path == known) return;
  known = path;
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const std::string why = why_out_of_reach(link, name);
  if (why.empty() || proc::parent_of(process) == ancestor_ || !told_.insert(path).second) return;
  spdlog::warn(
      "{} (pid {}) {}: rocemu cannot schedule this program, which sees real time, so "
      "its behavior is not deterministic",
      name, process, why);
}

}  // namespace rocemu::daemon
