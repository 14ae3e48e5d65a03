// The receive path of a device: datagrams, each of which may contain many frames (UDP_GRO), become
// the Ethernet frames that the engine takes, one burst for each system call. The system scatters
// the packets of a datagram by the size of the previous ones; then there is space for headers in
// front of each packet, and nothing is copied.
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

/// The buffers for one read of a socket; one object is enough for all sockets of a daemon.
class ReceiveBuffers;
struct ReceiveBuffersDeleter {
  void operator()(ReceiveBuffers* buffers) const;
};
using ReceiveBuffersPointer = std::unique_ptr<ReceiveBuffers, ReceiveBuffersDeleter>;
ReceiveBuffersPointer make_receive_buffers();

class UdpReceiver {
 public:
  /// Called before the first burst of datagrams that arrived together. A peer may have waited for
  /// an action before it sent them, such as a posted receive; all such actions have been handled by
  /// then.
  using Arrived = std::function<void()>;
  using Take = std::function<void(std::span<const engine::ReceivedFrame>)>;

  /// Datagrams at `socket` are for `address` of the device, which has that MAC address. `headers`,
  /// if it is a socket, provides their IPv4 headers, with which they are then checked.
  UdpReceiver(engine::DeviceIndex device, wire::MacAddress mac, wire::IpAddress address, int socket,
              UniqueFd headers, UdpCounters& counters)
      : device_(device), mac_(mac), address_(address), socket_(socket), counters_(counters) {
    if (headers) headers_.emplace(std::move(headers));
  }
  UdpReceiver(const UdpReceiver&) = delete;
  UdpReceiver& operator=(const UdpReceiver&) = delete;
  ~UdpReceiver() { count_overruns(); }

  /// The maximum number of datagrams for one system call. If as many arrived, there may be more.
  static constexpr size_t kMaxDatagrams = 8;
  /// Passes on what has arrived. Returns the number of datagrams.
  size_t receive(ReceiveBuffers& buffers, const Arrived& arrived, const Take& take);
  /// Adds the datagrams that the socket has dropped since the last call to the counters.
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
