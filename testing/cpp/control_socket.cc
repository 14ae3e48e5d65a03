#include "testing/cpp/control_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "testing/cpp/rocemu/testing.h"

namespace rocemu::testing {
namespace {

constexpr int kTimeoutSeconds = 120;

}  // namespace

ControlSocket::ControlSocket(const std::string& directory)
    : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const std::string path = directory + "/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Error("the name is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const timeval timeout{.tv_sec = kTimeoutSeconds, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(fd_);
    throw Error("no NIC listens at " + path + ": " + std::strerror(error));
  }
}

ControlSocket::~ControlSocket() {
  close(fd_);
}

Json ControlSocket::request(const Json& request) {
  const std::string line = request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t size = send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw Error(std::string("the NIC is gone: ") + std::strerror(errno));
    sent += static_cast<size_t>(size);
  }
  Json reply = Json::parse(read_line(), nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object() || !reply.contains("ok"))
    throw Error("the NIC's answer is not a JSON object");
  if (reply.at("ok") != true) throw Error(reply.value("error", "the NIC refuses"));
  reply.erase("ok");
  return reply;
}

std::string ControlSocket::read_line() {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    char buffer[16384];
    const ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw Error(std::string("the NIC does not answer: ") + std::strerror(errno));
    if (size == 0) throw Error("the NIC ended before it answered");
    received_.append(buffer, static_cast<size_t>(size));
  }
}

}  // namespace rocemu::testing
