// The devices that are attached to UDP: sends and receives on their sockets in the daemon's loop,
// and handles changes of their interfaces.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/network_port.h"
#include "emulator/daemon/net/link_watch.h"
#include "emulator/daemon/net/udp_host_errors.h"
#include "emulator/daemon/net/udp_receiver.h"
#include "emulator/daemon/net/udp_sender.h"
#include "emulator/daemon/net/udp_sockets.h"
#include "emulator/daemon/run/output_delivery.h"

namespace rocemu::daemon {

class UdpNetwork : public Network, public NetworkPort {
 public:
  /// Is called when the interface of a device becomes usable or unusable.
  using LinkChanged = std::function<void(engine::DeviceIndex device, bool up)>;

  /// Opens the devices. `sockets` has an element for each device. Throws StartError.
  UdpNetwork(EventLoop& loop, std::vector<engine::DeviceConfig> devices,
             std::vector<UdpSockets> sockets, UdpReceiver::Arrived arrived, UdpReceiver::Take take,
             LinkChanged link_changed);
  ~UdpNetwork() override;

  void transmit(engine::DeviceIndex from, engine::Frame frame) override;
  void change_group(const engine::GroupChange& change) override;

  /// Receives datagrams from the sockets that epoll reported, and from those at which datagrams
  /// arrived recently. Returns whether there were any.
  bool receive(engine::Instant now) override;
  bool flush(engine::Instant now) override;
  bool holds_back() const override;
  /// Returns whether too many frames wait to be sent. While this is so, inputs that would cause
  /// more frames must wait.
  bool is_congested() const override;

  bool is_up(engine::DeviceIndex device) const;
  void append_counters(engine::FabricSnapshot& snapshot) const;

 private:
  struct Source;
  struct Port;

  void open(Port& port);
  void close(Port& port);
  std::unique_ptr<Source> make_source(Port& port, const wire::IpAddress& address, int socket,
                                      UniqueFd headers);
  bool receive(Source& source, engine::Instant now);
  void join(Port& port, const wire::IpAddress& group);
  void look_at_links();
  void reopen(Port& port, const NetworkInterface& interface);

  EventLoop& loop_;
  UdpReceiver::Arrived arrived_;
  UdpReceiver::Take take_;
  LinkChanged link_changed_;
  const UdpHostErrors host_errors_at_start_ = UdpHostErrors::now();
  ReceiveBuffersPointer buffers_;
  std::vector<std::unique_ptr<Port>> ports_;
  LinkWatch links_;
};

}  // namespace rocemu::daemon
