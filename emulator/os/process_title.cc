#include "emulator/os/process_title.h"

#include <linux/prctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

/// Returns the addresses that the kernel has noted about this process. The result has no auxiliary
/// vector and no executable file, so prctl(2) leaves these two unchanged.
std::optional<prctl_mm_map> own_memory_map() {
  constexpr int kStateField = 3, kLastField = 51;  // proc(5), "stat"
  const std::string stat = proc::contents_of("/proc/self/stat");
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(end_of_name + 1));
  uint64_t values[kLastField + 1] = {};
  std::string field;
  for (int number = kStateField; number <= kLastField; ++number) {
    if (!(fields >> field)) return std::nullopt;
    if (number != kStateField) values[number] = std::strtoull(field.c_str(), nullptr, 10);
  }
  prctl_mm_map map{};
  map.start_code = values[26];
  map.end_code = values[27];
  map.start_stack = values[28];
  map.start_data = values[45];
  map.end_data = values[46];
  map.start_brk = values[47];
  map.brk = reinterpret_cast<uintptr_t>(sbrk(0));
  map.arg_start = values[48];
  map.arg_end = values[49];
  map.env_start = values[50];
  map.env_end = values[51];
  map.exe_fd = UINT32_MAX;
  return map;
}

}  // namespace

bool set_process_title(const std::vector<std::string>& arguments) {
  std::optional<prctl_mm_map> map = own_memory_map();
  if (!map) return false;
  std::string joined;
  for (const std::string& argument : arguments) joined.append(argument).push_back('\0');
  // The string is static because the kernel reads it for as long as the process lives.
  static std::string shown;
  std::string before = std::exchange(shown, std::move(joined));
  map->arg_start = reinterpret_cast<uintptr_t>(shown.data());
  map->arg_end = map->arg_start + shown.size();
  if (prctl(PR_SET_MM, PR_SET_MM_MAP, &*map, sizeof *map, 0) != 0) {
    shown = std::move(before);
    return false;
  }
  const std::string& path = arguments.front();
  prctl(PR_SET_NAME, path.c_str() + path.rfind('/') + 1);
  return true;
}

}  // namespace rocemu
