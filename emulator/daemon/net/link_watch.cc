#include "emulator/daemon/net/link_watch.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {

LinkWatch::LinkWatch(EventLoop& loop, std::function<void()> changed)
    : socket_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!socket_ ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) {
    fail_start("cannot watch the network interfaces", errno);
  }
  // `changed` is called for any message, and queries the current state, since messages can be lost
  // (ENOBUFS) and can contain more than is needed.
  watch_ =
      loop.watch(socket_.get(), EPOLLIN, [fd = socket_.get(), told = std::move(changed)](uint32_t) {
        std::array<char, 8192> message;
        while (recv(fd, message.data(), message.size(), 0) >= 0 || errno == ENOBUFS) {
        }
        told();
      });
  if (!watch_) fail_start("cannot watch the network interfaces", errno);
}

}  // namespace rocemu::daemon
