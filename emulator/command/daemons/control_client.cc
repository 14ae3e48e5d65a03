#include "emulator/command/daemons/control_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/daemons/process_exit.h"

namespace rocemu::command {
namespace {

/// The time without a reply after which the command prints what it waits for.
constexpr std::chrono::seconds kProgressInterval{5};
/// The time limit for a killed daemon to disappear. It normally needs less time.
constexpr std::chrono::seconds kEnd{10};

}  // namespace

ControlClient::ControlClient(std::string dir, UniqueFd socket, std::chrono::seconds patience)
    : dir_(std::move(dir)), socket_(std::move(socket)), patience_(patience) {}

std::optional<ControlClient> ControlClient::connect(const std::string& dir,
                                                    std::chrono::seconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir + "/" + abi::kControlSocket;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail_with_errno("cannot make a socket", errno);
  const timeval read_timeout{.tv_sec = std::min(patience, kProgressInterval).count(), .tv_usec = 0};
  const timeval write_timeout{.tv_sec = patience.count(), .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &read_timeout, sizeof read_timeout);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &write_timeout, sizeof write_timeout);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR || errno == ENOTSOCK)
      return std::nullopt;
    fail_with_errno("cannot reach the daemon in " + dir, errno);
  }
  ControlClient client(dir, std::move(fd), patience);
  // If the daemon was killed, its socket still accepts connections until the kernel has closed it.
  const pid_t pid = client.daemon_pid();
  if (pid > 0 && is_ending(pid) && wait_until_gone(pid, kEnd)) return std::nullopt;
  return client;
}

std::string ControlClient::daemon_name() const {
  return "the daemon in " + dir_ + " (pid " + std::to_string(daemon_pid()) + ")";
}

std::string ControlClient::read_line() {
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  bool tells = isatty(STDERR_FILENO) != 0;
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    char buffer[16384];
    const ssize_t count = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count > 0) {
      received_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || errno == ECONNRESET) {
      throw Failure("the daemon in " + dir_ + " closed the connection without an answer");
    } else if (errno == EAGAIN) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw Failure(daemon_name() + " does not answer");
      }
      if (std::exchange(tells, false)) std::cerr << "waiting for " << daemon_name() << "\n";
    } else if (errno != EINTR) {
      fail_with_errno("cannot read from the daemon in " + dir_, errno);
    }
  }
}

Json ControlClient::request(const std::string& command, const Json& arguments) {
  Json request{{"command", command}};
  request.update(arguments);
  // Arguments on the command line may contain bytes that are not UTF-8; these are replaced.
  const std::string line = request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // A broken connection is not reported here, since reading the reply reports it.
  if (send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET)
    fail_with_errno("cannot write to the daemon in " + dir_, errno);
  Json reply = Json::parse(read_line(), nullptr, /*allow_exceptions=*/false);
  const auto ok = reply.is_object() ? reply.find("ok") : reply.end();
  if (!reply.is_object() || ok == reply.end() || !ok->is_boolean())
    throw Failure("the process that listens in " + dir_ +
                  " is not a rocemu daemon of version " ROCEMU_VERSION);
  if (!ok->get<bool>()) {
    const auto error = reply.find("error");
    throw Failure(
        "the daemon in " + dir_ + " refused '" + command + "'" +
        (error != reply.end() && error->is_string() ? ": " + error->get<std::string>() : ""));
  }
  return reply;
}

void ControlClient::require_same_version() {
  const Json reply = request("version");
  const auto version = reply.find("version");
  const auto abi_version = reply.find("abi");
  const bool same = version != reply.end() && *version == ROCEMU_VERSION &&
                    abi_version != reply.end() && *abi_version == abi::kVersion;
  if (same) return;
  std::string theirs = version != reply.end() && version->is_string() ? version->get<std::string>()
                                                                      : std::string("unknown");
  if (abi_version != reply.end()) theirs += " (abi " + abi_version->dump() + ")";
  throw Failure("the daemon in " + dir_ + " has version " + theirs +
                "; this rocemu has version " ROCEMU_VERSION " (abi " +
                std::to_string(abi::kVersion) + "); restart it: rocemu down; rocemu up");
}

pid_t ControlClient::daemon_pid() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

}  // namespace rocemu::command
