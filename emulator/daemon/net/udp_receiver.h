// A device's way in: datagrams, of which one may hold many frames (UDP_GRO), become the Ethernet
// frames that the engine takes, one burst of them for each system call. The system puts the pieces
// of a datagram apart by the size that those before it had; then there is room for a header before
// each, and nothing is copied.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "emulator/daemon/net/ip_headers.h"
#include "emulator/daemon/net/udp_counters.h"
#include "emulator/engine/events.h"
#include "wire/ethernet.h"
#include "wire/ip_address.h"

namespace rocemu::daemon {

/// Room for what one look at a socket gives; one is enough for all sockets of a daemon.
class ReceiveBuffers;
struct ReceiveBuffersDeleter {
  void operator()(ReceiveBuffers* buffers) const;
};
using ReceiveBuffersPointer = std::unique_ptr<ReceiveBuffers, ReceiveBuffersDeleter>;
ReceiveBuffersPointer make_receive_buffers();

class UdpReceiver {
 public:
  /// Called before the first burst of what has come together: whatever a peer waited for before it
  /// sent, such as a posted receive, has been done by now.
  using Arrived = std::function<void()>;
  using Take = std::function<void(std::span<const engine::ReceivedFrame>)>;

  /// Datagrams at `socket` are for `address` of the device, which has that MAC address. `headers`,
  /// if there is a socket, gets their IPv4 headers: then they are checked with those.
  UdpReceiver(engine::DeviceIndex device, wire::MacAddress mac, wire::IpAddress address, int socket,
              UniqueFd headers, UdpCounters& counters)
      : device_(device), mac_(mac), address_(address), socket_(socket), counters_(counters) {
    if (headers) headers_.emplace(std::move(headers));
  }
  UdpReceiver(const UdpReceiver&) = delete;
  UdpReceiver& operator=(const UdpReceiver&) = delete;
  ~UdpReceiver() { count_overruns(); }

  /// Of one system call. If as many came, there may be more.
  static constexpr size_t kMaxDatagrams = 8;
  /// Gives what has come; returns the number of datagrams.
  size_t receive(ReceiveBuffers& buffers, const Arrived& arrived, const Take& take);
  /// Adds to the counters what the socket has dropped since the last call.
  void count_overruns();

 private:
  /// Adds those of a datagram to the burst.
  void add_frames(ReceiveBuffers& buffers, size_t datagram);

  engine::DeviceIndex device_;
  wire::MacAddress mac_;
  wire::IpAddress address_;
  int socket_;
  UdpCounters& counters_;
  size_t piece_size_ = 0;  // of large datagrams lately; 0: none came
  std::optional<IpHeaders> headers_;
  uint32_t overruns_ = 0;  // as the system counts them, in 32 bits
};

}  // namespace rocemu::daemon
