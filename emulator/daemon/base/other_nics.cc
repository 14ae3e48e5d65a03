#include "emulator/daemon/base/other_nics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>

#include "emulator/abi/runtime_dir.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

constexpr std::string_view kPrivate = "run-";  // PID-RANDOM follows, with leading zeros in PID
constexpr size_t kLongestCommand = 80;

std::string& own_directory() {
  static std::string directory;
  return directory;
}

/// Returns whether the daemon of the directory is alive. A living daemon holds a lock on its
/// directory.
bool is_alive(const std::filesystem::path& directory) {
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return fd && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Describes the `rocemu run` that owns the directory `name`: "pid 12: rocemu run --
/// ibv_rc_pingpong -g 0".
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

/// Returns the NIC's reply to {"command":"show"}; null if it does not reply.
nlohmann::json show(const std::filesystem::path& directory) {
  constexpr timeval kPatience{2, 0};
  constexpr std::string_view kRequest = "{\"command\":\"show\"}\n";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory / abi::kControlSocket;
  if (path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(socket.get(), SOL_SOCKET, option, &kPatience, sizeof kPatience);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0)
    return {};
  std::string line;
  char buffer[16384];
  while (line.find('\n') == std::string::npos) {
    const ssize_t size = recv(socket.get(), buffer, sizeof buffer, 0);
    if (size <= 0) return {};
    line.append(buffer, static_cast<size_t>(size));
  }
  return nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
}

bool has_qp(const std::filesystem::path& directory, uint32_t qpn) {
  try {
    const nlohmann::json reply = show(directory);
    if (!reply.is_object()) return false;
    for (const auto& device : reply.at("fabric").at("devices"))
      for (const auto& qp : device.at("qps"))
        if (qp.at("number") == qpn) return true;
  } catch (const nlohmann::json::exception&) {
    // The other NIC has a different version, whose reply has another format.
  }
  return false;
}

/// Looks for another `rocemu run` whose NIC has a QP with this number. Returns its description, or
/// an empty text if there is none.
std::string find_other(uint32_t qpn) {
  const std::filesystem::path own = own_directory();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(own.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrivate) && name != own.filename() && is_alive(entry.path()) &&
        has_qp(entry.path(), qpn))
      return describe(name);
  }
  return "";
}

void find_and_explain(pid_t program, uint32_t qpn) {
  static std::atomic<bool> is_explained{false};
  const std::string other = find_other(qpn);
  if (other.empty() || is_explained.exchange(true)) return;
  std::string name = file_text(fmt::format("/proc/{}/comm", program));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  spdlog::warn(
      "{} (pid {}) connects its QP {} to that same QP. Is its peer under another "
      "`rocemu run` ({})? Each has a separate NIC with the same addresses, and they "
      "cannot reach each other. Start a NIC for both programs with `rocemu up`, and "
      "then each program with `rocemu run`; or run both programs under one `rocemu "
      "run`",
      name, program, qpn, other);
}

}  // namespace

void set_own_directory(const std::string& dir) {
  own_directory() = dir;
}

void explain_meeting_itself(pid_t program, uint32_t qpn) {
  const std::string own = std::filesystem::path(own_directory()).filename();
  if (!own.starts_with(kPrivate)) return;
  std::thread(find_and_explain, program, qpn).detach();
}

}  // namespace rocemu::daemon
