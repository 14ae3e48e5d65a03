// The receive path of a device: converts datagrams, each of which may contain many frames
// (UDP_GRO), to the Ethernet frames that the engine accepts, in one burst for each system call. The
// system scatters the packets of a datagram by the size of the previous ones. This leaves space for
// headers in front of each packet, so no packet is copied.
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

/// The buffers for reading a socket. All sockets of a daemon use the same object.
class ReceiveBuffers;
struct ReceiveBuffersDeleter {
  void operator()(ReceiveBuffers* buffers) const;
};
using ReceiveBuffersPointer = std::unique_ptr<ReceiveBuffers, ReceiveBuffersDeleter>;
ReceiveBuffersPointer make_receive_buffers();

class UdpReceiver {
 public:
  /// Is called before the first burst of datagrams that arrived together, and handles all actions
  /// of programs until then. A peer may have waited for such an action, for example a posted
  /// receive, before it sent the datagrams.
  using Arrived = std::function<void()>;
  using Take = std::function<void(std::span<const engine::ReceivedFrame>)>;

  /// Receives datagrams for `address` of the device, whose MAC address is `mac`, from `socket`. If
  /// `headers` is a socket, it provides their IPv4 headers, with which the ICRC is checked.
  UdpReceiver(engine::DeviceIndex device, wire::MacAddress mac, wire::IpAddress address, int socket,
              UniqueFd headers, UdpCounters& counters)
      : device_(device), mac_(mac), address_(address), socket_(socket), counters_(counters) {
    if (headers) headers_.emplace(std::move(headers));
  }
  UdpReceiver(const UdpReceiver&) = delete;
  UdpReceiver& operator=(const UdpReceiver&) = delete;
  ~UdpReceiver() { count_overruns(); }

  /// The maximum number of datagrams that one system call receives. If it received this number,
  /// there may be more.
  static constexpr size_t kMaxDatagrams = 8;
  /// Passes the datagrams that have arrived to `take`. Returns their number.
  size_t receive(ReceiveBuffers& buffers, const Arrived& arrived, const Take& take);
  /// Adds the number of datagrams that the socket has dropped since the last call to the counters.
  void count_overruns();

 private:
  /// Adds the frames of a datagram to the burst.
  void add_frames(ReceiveBuffers& buffers, size_t datagram);

  engine::DeviceIndex device_;
  wire::MacAddress mac_;
  wire::IpAddress address_;
  int socket_;
  UdpCounters& counters_;
  size_t piece_size_ = 0;  // of recent large datagrams; 0: there were none
  std::optional<IpHeaders> headers_;
  uint32_t overruns_ = 0;  // the system's count, in 32 bits
};

}  // namespace rocemu::daemon
