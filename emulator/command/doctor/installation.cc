#include "emulator/command/doctor/installation.h"

#include <unistd.h>

#include <climits>
#include <string_view>
#include <vector>

#include "emulator/command/error.h"

namespace rocemu::command {
namespace {

constexpr std::string_view kSanitizers = ROCEMU_SANITIZE;
/// Colon-separated paths of runtime libraries, known when the build was configured.
constexpr std::string_view kSanitizerRuntimes = ROCEMU_SANITIZER_RUNTIMES;

std::string executable_dir() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) fail_with_errno("cannot read /proc/self/exe (is /proc mounted?)", errno);
  const std::string_view executable(path, static_cast<size_t>(length));
  return std::string(executable.substr(0, executable.rfind('/')));
}

std::vector<std::string> library_dirs() {
  const std::string prefix = executable_dir() + "/../";
  const std::string libdir = ROCEMU_INSTALL_LIBDIR;
  return {prefix + "lib", libdir.starts_with("/") ? libdir : prefix + libdir};
}

/// The file's full name without "..", or nothing.
std::string existing(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : "";
}

std::string find_library(const std::string& name) {
  for (const std::string& dir : library_dirs())
    if (std::string path = existing(dir + "/" + name); !path.empty()) return path;
  return "";
}

/// The entries of an LD_PRELOAD value, which spaces and colons separate.
std::vector<std::string> split_preload(std::string_view value) {
  std::vector<std::string> entries;
  while (!value.empty()) {
    const size_t end = value.find_first_of(": ");
    if (end != 0) entries.emplace_back(value.substr(0, end));
    if (end == std::string_view::npos) break;
    value.remove_prefix(end + 1);
  }
  return entries;
}

}  // namespace

std::string daemon_path() {
  return executable_dir() + "/rocemud";
}

std::string shim_path() {
  std::string path = find_library("librocemu.so");
  if (path.empty())
    throw Failure("librocemu.so is missing in " + library_dirs()[0] + "; build or install it");
  return path;
}

std::string provider_path(int private_abi) {
  return find_library("rocemu/librocemu-rdmav" + std::to_string(private_abi) + ".so");
}

std::string scenario_library_dir() {
  const std::string dir = executable_dir() + "/../" ROCEMU_SCENARIO_DIR;
  const std::string resolved = existing(dir);
  return resolved.empty() ? dir : resolved;
}

std::string preload_value(const std::string& present, bool with_turns) {
  std::vector<std::string> entries = split_preload(kSanitizerRuntimes);
  const std::string shim = shim_path();
  const std::string turns = find_library("librocemu-turns.so");
  if (with_turns && turns.empty())
    throw Failure("librocemu-turns.so is missing in " + library_dirs()[0] +
                  "; build or install it");
  if (shim.find_first_of(": ") != std::string::npos)
    throw Failure("LD_PRELOAD cannot name " + shim +
                  ", which has a space or a colon; install rocemu somewhere else");
  if (with_turns) entries.push_back(turns);
  entries.push_back(shim);
  const size_t ours = entries.size();
  for (const std::string& entry : split_preload(present)) {
    bool is_ours = entry == turns;  // already there inside another `rocemu run`
    for (size_t i = 0; i < ours; ++i) is_ours = is_ours || entries[i] == entry;
    if (!is_ours) entries.push_back(entry);
  }
  std::string value;
  for (const std::string& entry : entries) value += (value.empty() ? "" : ":") + entry;
  return value;
}

bool is_sanitized_with(const char* sanitizer) {
  return kSanitizers.find(sanitizer) != std::string_view::npos;
}

}  // namespace rocemu::command
