// The simulated network below the engine, which `rocemu run --fabric` puts between the devices of
// programs. Device N is host N.
#pragma once

#include <optional>
#include <vector>

#include "emulator/engine/base/simulated_network.h"
#include "emulator/network/network.h"

namespace rocemu::network {

/// Observes the events in the network as they happen.
class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  /// Is called when a QP hands a frame to its port.
  virtual void on_inject(const engine::Injection& injection, Instant now) = 0;
  virtual void on_hop(const Network& network, const Hop& hop) = 0;
  /// Is called when a frame is dropped. `latest` is the time of the latest hop before the drop.
  virtual void on_drop(const Network& network, PortId where, Instant latest) = 0;
};

class ProgramNetwork final : public engine::SimulatedNetwork, private Sink {
 public:
  /// Creates the network from a topology without errors. Frames that leave one of `captured_ports`
  /// are reported.
  ProgramNetwork(const Topology& topology, uint64_t seed, std::vector<PortId> captured_ports);

  bool can_inject(engine::DeviceIndex from, uint8_t dscp) const override;
  void inject(const engine::Injection& injection, Instant now) override;
  std::optional<Instant> next_event() override { return network_.next_delivery(); }
  void advance(Instant now, engine::NetworkEvents& events) override;
  void set_fault(const engine::NetworkElement& element, const engine::NetworkChange& change,
                 bool is_on, Instant now) override;
  std::unique_ptr<engine::RateController> make_rate_controller(engine::DeviceIndex from,
                                                               Instant now) const override;

  engine::PauseCounters pauses_of(engine::DeviceIndex device) const override;

  /// Sets the observer, which must outlive this object.
  void observe(NetworkObserver& observer);
  const Network& network() const { return network_; }

 private:
  void deliver(uint64_t token, HostId host, Instant at, bool is_marked) override;
  void drop(uint64_t token, PortId where, DropReason why) override;
  void host_resumed(HostId host) override { events_->resumed({host}); }
  void on_hop(const Hop& hop) override;

  void set_link_fault(LinkId link, const engine::NetworkChange& change, bool is_on, Instant now);
  void set_switch_fault(SwitchId of, const engine::NetworkChange& change, bool is_on, Instant now);
  void set_host_fault(HostId host, const engine::PauseStorm& storm, bool is_on, Instant now);

  Network network_;
  std::vector<uint64_t> rates_bps_;  // of the file, by link
  std::vector<PortId> captured_ports_;
  engine::NetworkEvents* events_ = nullptr;  // during advance()
  Instant latest_{};                         // the latest observed event
  NetworkObserver* observer_ = nullptr;
};

}  // namespace rocemu::network
