#include "emulator/daemon/kernel/netlink_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

std::deque<Bytes> pack(std::vector<Bytes> messages) {
  std::deque<Bytes> datagrams;
  for (Bytes& message : messages) {
    if (!datagrams.empty() &&
        datagrams.back().size() + message.size() <= NetlinkServer::kDatagram) {
      datagrams.back().insert(datagrams.back().end(), message.begin(), message.end());
    } else {
      datagrams.push_back(std::move(message));
    }
  }
  return datagrams;
}

}  // namespace

NetlinkServer::NetlinkServer(EventLoop& loop, UniqueFd listener, NldevSource& source)
    : loop_(loop),
      source_(source),
      listener_(loop, std::move(listener),
                [this](UniqueFd socket, PeerCredentials) { on_connect(std::move(socket)); }) {}

void NetlinkServer::on_connect(UniqueFd socket) {
  const int fd = socket.get();
  Connection connection;
  connection.watch = loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { on_ready(fd); });
  if (!connection.watch) return;
  connection.socket = std::move(socket);
  connections_.emplace(fd, std::move(connection));
}

void NetlinkServer::on_ready(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const bool alive = (!connection.output.empty() || read_from(connection)) && write_to(connection);
  if (!alive) connections_.erase(found);
}

bool NetlinkServer::read_from(Connection& connection) {
  std::array<std::byte, kMaxRequest> buffer;
  const ssize_t size = recv(connection.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  connection.output =
      pack(answer_nldev(std::span(buffer).first(static_cast<size_t>(size)), source_));
  return true;
}

bool NetlinkServer::write_to(Connection& connection) {
  while (!connection.output.empty()) {
    const Bytes& datagram = connection.output.front();
    if (send(connection.socket.get(), datagram.data(), datagram.size(),
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno != EAGAIN && errno != EINTR) return false;
      connection.watch.set_events(EPOLLOUT);
      return true;
    }
    connection.output.pop_front();
  }
  connection.watch.set_events(EPOLLIN);
  return true;
}

}  // namespace rocemu::daemon
