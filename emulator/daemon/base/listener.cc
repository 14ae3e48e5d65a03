#include "emulator/daemon/base/listener.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

/// The maximum number of connections that are accepted at once, so that a client that connects
/// repeatedly does not delay other clients.
constexpr int kMaxAtOnce = 256;
constexpr long kPauseNs = 100'000'000;

}  // namespace

Listener::Listener(EventLoop& loop, UniqueFd listener, Connected connected)
    : listener_(std::move(listener)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      connected_(std::move(connected)),
      watch_(loop.watch(listener_.get(), EPOLLIN, [this](uint32_t) { on_ready(); })) {
  if (!watch_) fail_start("cannot watch a listening socket", errno);
  timer_watch_ = loop.watch(timer_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t times;
    if (read(timer_.get(), &times, sizeof times) > 0) watch_.set_events(EPOLLIN);
  });
  if (!timer_watch_) fail_start("cannot create a timer", errno);
}

void Listener::on_ready() {
  struct Arrived {
    UniqueFd socket;
    PeerCredentials peer;
  };
  std::vector<Arrived> arrived;
  for (int i = 0; i < kMaxAtOnce; ++i) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (is_shortage(errno)) pause();
      break;
    }
    if (is_reserved(socket.get())) {
      tell_of_shortage();
      continue;
    }
    const std::optional<PeerCredentials> peer = peer_credentials(socket.get());
    if (peer && peer->uid == geteuid()) {
      arrived.push_back({std::move(socket), *peer});
    } else {
      spdlog::warn(
          "refused the connection of a process of user {}: only the user who started "
          "this NIC may use it",
          peer ? peer->uid : static_cast<uid_t>(-1));
    }
  }
  std::ranges::stable_sort(arrived, {}, [](const Arrived& one) { return one.peer.pid; });
  for (auto& [socket, peer] : arrived) connected_(std::move(socket), peer);
}

void Listener::pause() {
  tell_of_shortage();
  const itimerspec once{{}, {0, kPauseNs}};
  if (timerfd_settime(timer_.get(), 0, &once, nullptr) == 0) watch_.set_events(0);
}

}  // namespace rocemu::daemon
