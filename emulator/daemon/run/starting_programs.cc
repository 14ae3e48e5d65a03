#include "emulator/daemon/run/starting_programs.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "emulator/os/proc.h"
#include "emulator/os/programs/elf_file.h"

namespace rocemu::daemon {
namespace {

/// Returns whether LD_PRELOAD (ld.so(8)) in the program's initial environment contains
/// librocemu-turns.so.
bool preloads_turns(const std::string& environment) {
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view variable = std::string_view(environment).substr(at, end - at);
    if (variable.starts_with(kVariable))
      return variable.find("/librocemu-turns.so") != std::string_view::npos;
    at = end + 1;
  }
  return false;
}

/// Returns whether the real and the effective user or group differ, so that the dynamic linker may
/// ignore LD_PRELOAD.
bool has_other_rights(const std::string& status) {
  for (const char* name : {"Uid", "Gid"}) {
    const std::string ids = proc::field_of(status, name);
    const size_t first = ids.find('\t');
    const size_t second = ids.find('\t', first + 1);
    if (first == std::string::npos || second == std::string::npos) return true;
    if (ids.substr(0, first) != ids.substr(first + 1, second - first - 1)) return true;
  }
  return false;
}

bool is_loaded_like_us(const std::string& program) {
  static const auto own = read_elf("/proc/self/exe");
  const auto elf = read_elf(program);
  return own && elf && elf->architecture == own->architecture && !elf->is_go &&
         elf->interpreter == own->interpreter;
}

}  // namespace

bool is_about_to_join(pid_t process) {
  const std::string directory = proc::directory_of(process);
  const std::string status = proc::contents_of(directory + "/status");
  if (proc::field_of(status, "TracerPid") != "0" || has_other_rights(status)) return false;
  return preloads_turns(proc::contents_of(directory + "/environ")) &&
         proc::contents_of(directory + "/maps").find("/memfd:rocemu-turns") == std::string::npos &&
         is_loaded_like_us(directory + "/exe");
}

}  // namespace rocemu::daemon
