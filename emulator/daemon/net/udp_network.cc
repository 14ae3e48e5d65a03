#include "emulator/daemon/net/udp_network.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/net/network_interface.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// The time after an arrival for which a socket is polled in every round of the loop. After that,
/// epoll reports arrivals.
constexpr engine::Duration kHotTime = 100us;
/// If the latest arrival at a socket was within this time, the socket is also polled after its
/// device has sent something, since a reply may arrive.
constexpr engine::Duration kLately = 10ms;
/// The maximum number of further reads of one socket in one round. Each read returns several
/// datagrams.
constexpr int kMaxReads = 16;

}  // namespace

/// A socket at which datagrams arrive, and the times of its latest activity
struct UdpNetwork::Source {
  UniqueFd owned;  // of a group; the others belong to UdpSockets
  UdpReceiver receiver;
  EventLoop::Watch watch;
  bool called = false;  // by epoll
  engine::Instant last_datagram{};
  engine::Instant hot_until{};
};

struct UdpNetwork::Port {
  engine::DeviceIndex index;
  engine::DeviceConfig config;
  UdpSockets sockets;
  UdpCounters counters{};
  UdpSender sender{sockets, counters};
  std::vector<std::unique_ptr<Source>> sources{};               // one for each address
  std::map<wire::IpAddress, std::unique_ptr<Source>> groups{};  // null: not joined
  std::map<int, EventLoop::Watch> senders{};                    // by socket
  bool blocked = false;                                         // until one of them has space again
  bool up = true;

  /// Makes the port wait until the socket has space. Does nothing if `socket` is -1.
  void wait_for(int socket) {
    if (socket < 0) return;
    blocked = true;
    senders[socket].set_events(EPOLLOUT);
  }
};

UdpNetwork::UdpNetwork(EventLoop& loop, std::vector<engine::DeviceConfig> devices,
                       std::vector<UdpSockets> sockets, UdpReceiver::Arrived arrived,
                       UdpReceiver::Take take, LinkChanged link_changed)
    : loop_(loop),
      arrived_(std::move(arrived)),
      take_(std::move(take)),
      link_changed_(std::move(link_changed)),
      buffers_(make_receive_buffers()),
      links_(loop, [this] { look_at_links(); }) {
  for (uint32_t i = 0; i < devices.size(); ++i) {
    ports_.push_back(std::unique_ptr<Port>(
        new Port{.index = {i}, .config = std::move(devices[i]), .sockets = std::move(sockets[i])}));
    open(*ports_.back());
  }
  look_at_links();
}

UdpNetwork::~UdpNetwork() = default;

std::unique_ptr<UdpNetwork::Source> UdpNetwork::make_source(Port& port,
                                                            const wire::IpAddress& address,
                                                            int socket, UniqueFd headers) {
  auto source = std::unique_ptr<Source>(new Source{
      .owned = {},
      .receiver = {port.index, port.config.mac, address, socket, std::move(headers), port.counters},
      .watch = {}});
  source->watch =
      loop_.watch(socket, EPOLLIN, [at = source.get()](uint32_t) { at->called = true; });
  if (!source->watch) fail_start("cannot watch a UDP socket", errno);
  return source;
}

void UdpNetwork::open(Port& port) {
  for (UdpEndpoint& endpoint : port.sockets.endpoints) {
    port.sources.push_back(
        make_source(port, endpoint.address, endpoint.receive.get(), std::move(endpoint.headers)));
    for (const UdpSendSocket& socket : endpoint.send) {
      const int fd = socket.fd.get();
      // No event is requested, but epoll always reports EPOLLERR.
      port.senders[fd] = loop_.watch(fd, 0, [&port, fd](uint32_t events) {
        if ((events & EPOLLERR) != 0) port.sender.read_errors(fd);
        if ((events & EPOLLOUT) != 0) {
          port.senders[fd].set_events(0);
          port.blocked = false;
        }
      });
      if (!port.senders[fd]) fail_start("cannot watch a UDP socket", errno);
    }
  }
  for (auto& [group, source] : port.groups) join(port, group);
}

void UdpNetwork::close(Port& port) {
  port.senders.clear();
  port.blocked = false;
  port.sources.clear();
  for (auto& [group, source] : port.groups) source.reset();
  port.sockets.endpoints.clear();
}

void UdpNetwork::join(Port& port, const wire::IpAddress& group) {
  std::unique_ptr<Source>& source = port.groups[group];
  const bool strict_icrc = port.sockets.strict_icrc;
  UniqueFd socket = open_group_socket(group, port.sockets.interface, strict_icrc);
  UniqueFd headers;
  if (socket && strict_icrc && group.is_v4()) {
    headers = IpHeaders::open_socket(group);
    if (!headers) socket.reset();
  }
  if (!socket) {
    spdlog::warn("device {} cannot join the multicast group {} on {}: {}", port.config.name,
                 wire::to_string(group), port.sockets.interface.name, std::strerror(errno));
    return;
  }
  source = make_source(port, group, socket.get(), std::move(headers));
  source->owned = std::move(socket);
}

void UdpNetwork::change_group(const engine::GroupChange& change) {
  Port& port = *ports_[change.device.value];
  if (change.member) {
    join(port, change.group);
  } else {
    port.groups.erase(change.group);
  }
}

void UdpNetwork::transmit(engine::DeviceIndex from, engine::Frame frame) {
  Port& port = *ports_[from.value];
  port.sender.add(std::move(frame));
  if (!port.blocked && port.sender.has_many()) port.wait_for(port.sender.flush_full());
}

bool UdpNetwork::receive(Source& source, engine::Instant now) {
  source.called = false;
  size_t count = source.receiver.receive(*buffers_, arrived_, take_);
  const bool something = count > 0;
  for (int more = kMaxReads; more > 0 && count == UdpReceiver::kMaxDatagrams; --more) {
    count = source.receiver.receive(*buffers_, arrived_, take_);
  }
  if (something) {
    source.last_datagram = now;
    source.hot_until = now + kHotTime;
  }
  return something;
}

bool UdpNetwork::is_congested() const {
  return std::ranges::any_of(ports_, [](const auto& port) { return port->sender.is_congested(); });
}

bool UdpNetwork::receive(engine::Instant now) {
  bool worked = false;
  if (is_congested()) return worked;
  for (const auto& port : ports_) {
    const auto look = [&](Source& source) {
      if (source.called || now < source.hot_until) worked |= receive(source, now);
    };
    for (const auto& source : port->sources) look(*source);
    for (const auto& [group, source] : port->groups) {
      if (source != nullptr) look(*source);
    }
  }
  return worked;
}

bool UdpNetwork::flush(engine::Instant now) {
  bool worked = false;
  for (const auto& port : ports_) {
    if (port->sender.is_empty() || port->blocked) continue;
    if (port->sender.holds_back(now)) continue;
    worked = true;
    port->wait_for(port->sender.flush());
    for (const auto& source : port->sources) {
      if (now - source->last_datagram < kLately) source->hot_until = now + kHotTime;
    }
  }
  return worked;
}

/// Returns whether frames wait although there is space to send them. After a flush, these are only
/// frames that are held back.
bool UdpNetwork::holds_back() const {
  return std::ranges::any_of(
      ports_, [](const auto& port) { return !port->blocked && !port->sender.is_empty(); });
}

void UdpNetwork::look_at_links() {
  const std::vector<NetworkInterface> interfaces = list_network_interfaces();
  for (const auto& port : ports_) {
    const NetworkInterface* interface = find_interface(interfaces, port->sockets.interface.name);
    if (interface != nullptr && interface->index != port->sockets.interface.index) {
      reopen(*port, *interface);  // the interface was removed and created again under its name
    }
    const bool up = interface != nullptr && interface->is_up && !port->sources.empty() &&
                    std::ranges::any_of(port->config.addresses, [&](const auto& address) {
                      return interface->has(address);
                    });
    if (up == port->up) continue;
    port->up = up;
    spdlog::info("{}: the interface {} is {}", port->config.name, port->sockets.interface.name,
                 up ? "up" : "down");
    link_changed_(port->index, up);
  }
}

void UdpNetwork::reopen(Port& port, const NetworkInterface& interface) {
  close(port);
  try {
    port.sockets = open_udp_sockets(port.config, interface, port.sockets.strict_icrc,
                                    port.sockets.source_ports);
    open(port);
  } catch (const StartError& error) {
    spdlog::error("{}", error.what());
    close(port);
  }
}

bool UdpNetwork::is_up(engine::DeviceIndex device) const {
  return ports_[device.value]->up;
}

void UdpNetwork::append_counters(engine::FabricSnapshot& snapshot) const {
  const UdpHostErrors host = UdpHostErrors::now() - host_errors_at_start_;
  for (const auto& port : ports_) {
    for (const auto& source : port->sources) source->receiver.count_overruns();
    for (const auto& [group, source] : port->groups) {
      if (source != nullptr) source->receiver.count_overruns();
    }
    engine::CounterList& list = snapshot.devices[port->index.value].network_counters;
    port->counters.append_to(list);
    host.append_to(list);
  }
}

}  // namespace rocemu::daemon
