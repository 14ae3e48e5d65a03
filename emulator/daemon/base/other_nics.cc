#include "emulator/daemon/base/other_nics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

constexpr std::string_view kPrivate = "run-";  // PID-RANDOM follows, the PID with zeros before it
constexpr size_t kLongestCommand = 80;

std::string& own_directory() {
  static std::string directory;
  return directory;
}

/// A daemon holds a lock on its directory for as long as it lives.
bool is_alive(const std::filesystem::path& directory) {
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return fd && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "pid 12: rocemu run -- ibv_rc_pingpong -g 0", of the `rocemu run` that has the directory.
std::string describe(const std::string& name) {
  std::string_view digits = std::string_view(name).substr(kPrivate.size());
  digits = digits.substr(0, digits.find('-'));
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  std::string command = file_text(fmt::format("/proc/{}/cmdline", digits));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::ranges::replace(command, '\0', ' ');
  if (command.size() > kLongestCommand) command = command.substr(0, kLongestCommand) + "...";
  return command.empty() ? fmt::format("pid {}", digits)
                         : fmt::format("pid {}: {}", digits, command);
}

/// One of another `rocemu run` that runs beside this daemon; empty if there is none.
std::string find_other() {
  const std::filesystem::path own = own_directory();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(own.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrivate) && name != own.filename() && is_alive(entry.path()))
      return describe(name);
  }
  return "";
}

}  // namespace

void set_own_directory(const std::string& dir) {
  own_directory() = dir;
}

void explain_other_nics(pid_t program, const std::string& what) {
  static std::atomic<bool> told{false};
  const std::string own = std::filesystem::path(own_directory()).filename();
  if (!own.starts_with(kPrivate) || told.load()) return;
  const std::string other = find_other();
  if (other.empty() || told.exchange(true)) return;
  std::string name = file_text(fmt::format("/proc/{}/comm", program));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  spdlog::warn(
      "{} (pid {}) {}. Is its peer under another `rocemu run` ({})? Each has a NIC of its own, "
      "both "
      "with the same addresses, and they do not reach each other. Start one NIC for both, `rocemu "
      "up`, and then the programs with `rocemu run`; or run both programs under one `rocemu run`",
      name, program, what, other);
}

}  // namespace rocemu::daemon
