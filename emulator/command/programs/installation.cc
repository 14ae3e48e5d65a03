#include "emulator/command/programs/installation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <vector>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"

namespace rocemu::command {
namespace {

constexpr std::string_view kSanitizers = ROCEMU_SANITIZE;
/// The paths of the sanitizers' runtime libraries, separated by colons. The build's configuration
/// determines them.
constexpr std::string_view kSanitizerRuntimes = ROCEMU_SANITIZER_RUNTIMES;

std::string executable_dir() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) fail_with_errno("cannot read /proc/self/exe (is /proc mounted?)", errno);
  const std::string_view executable(path, static_cast<size_t>(length));
  return std::string(executable.substr(0, executable.rfind('/')));
}

/// Returns the directories in which rocemu's libraries may be: in a build tree, and in an
/// installation.
std::vector<std::string> plugin_dirs() {
  const std::string prefix = executable_dir() + "/../";
  const std::string installed = ROCEMU_PLUGIN_DIR;
  return {prefix + "lib/rocemu", installed.starts_with("/") ? installed : prefix + installed};
}

/// Returns the absolute path of the file, without ".." and links; empty if there is no such file.
std::string existing(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : "";
}

std::string find_library(const std::string& name) {
  for (const std::string& dir : plugin_dirs())
    if (const std::string path = dir + "/" + name; !existing(path).empty())
      return existing(dir) + "/" + name;
  return "";
}

/// Returns the entries of an LD_PRELOAD value, which are separated by spaces and colons.
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

constexpr char kShim[] = "librocemu.so";
constexpr char kTurns[] = "librocemu-turns.so";
constexpr char kCallSites[] = "librocemu-call-sites.so";
constexpr char kSanitizer[] = "librocemu-sanitizer.so";

/// Returns whether the path has a character that separates entries of LD_PRELOAD or of libibverbs's
/// list of providers.
bool has_separator(const std::string& path) {
  return path.find_first_of(" :;\t\n") != std::string::npos;
}

/// Returns a path of the directory that contains no separator. If `dir` contains one, creates a
/// link to `dir` in the runtime directory, and returns the link's path. The daemon removes the link
/// with the runtime directory.
std::string nameable_dir(const std::string& dir, const std::string& runtime_dir) {
  if (!has_separator(dir)) return dir;
  if (has_separator(runtime_dir))
    throw Failure(
        "LD_PRELOAD can name neither " + dir + ", nor a link to it in " + runtime_dir +
        ": both contain a space or a colon; set XDG_RUNTIME_DIR to a directory without them");
  std::string link = runtime_dir + "/" + abi::kPluginLink;
  if (symlink(dir.c_str(), link.c_str()) == 0) return link;
  if (errno != EEXIST) fail_with_errno("cannot make the link " + link, errno);
  if (existing(link) == existing(dir)) return link;
  throw Failure(link + " points to another rocemu than " + dir +
                "; use the rocemu that started this NIC, or stop the NIC: rocemu down");
}

}  // namespace

std::string daemon_path() {
  return executable_dir() + "/rocemud";
}

std::string shim_path() {
  std::string path = find_library(kShim);
  if (path.empty())
    throw Failure("librocemu.so is missing in " + plugin_dirs()[0] + "; build or install it");
  return path;
}

std::string provider_path(int private_abi) {
  return find_library("librocemu-rdmav" + std::to_string(private_abi) + ".so");
}

std::string scenario_library_dir() {
  const std::string dir = executable_dir() + "/../" ROCEMU_SCENARIO_DIR;
  const std::string resolved = existing(dir);
  return resolved.empty() ? dir : resolved;
}

std::string preload_value(const std::string& present, const std::string& runtime_dir,
                          Preloaded preloaded) {
  std::vector<std::string> entries = split_preload(kSanitizerRuntimes);
  const std::string shim = shim_path();
  const std::string dir = nameable_dir(shim.substr(0, shim.rfind('/')), runtime_dir);
  const auto add = [&](const char* name) {
    if (find_library(name).empty())
      throw Failure(std::string(name) + " is missing in " + plugin_dirs()[0] +
                    "; build or install it");
    entries.push_back(dir + "/" + name);
  };
  if (preloaded.sanitizer)
    add(kSanitizer);  // first, to see the waits that the turns library replaces
  if (preloaded.turns) add(kTurns);
  if (preloaded.call_sites) add(kCallSites);
  entries.push_back(dir + "/" + kShim);
  for (const std::string& entry : split_preload(present)) {
    // Inside another `rocemu run`, LD_PRELOAD already names rocemu's libraries, perhaps by a link
    // in the runtime directory of the outer run's NIC.
    const std::string name = entry.substr(entry.rfind('/') + 1);
    if (name != kTurns && name != kCallSites && name != kSanitizer && name != kShim &&
        std::ranges::find(entries, entry) == entries.end())
      entries.push_back(entry);
  }
  std::string value;
  for (const std::string& entry : entries) value += (value.empty() ? "" : ":") + entry;
  return value;
}

bool is_sanitized_with(const char* sanitizer) {
  return kSanitizers.find(sanitizer) != std::string_view::npos;
}

bool is_sanitizer_build() {
  return !kSanitizers.empty();
}

}  // namespace rocemu::command
