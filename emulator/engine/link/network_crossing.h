// Takes the frames between devices of a fabric through a simulated network (FabricConfig::network).
// A frame leaves its device into the network, and enters the link to its receiver when the network
// delivers it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/simulated_network.h"
#include "emulator/engine/config.h"
#include "emulator/engine/link/departure.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/step.h"

namespace rocemu::engine {

class NetworkCrossing final : private NetworkEvents {
 public:
  /// All arguments must outlive this object.
  NetworkCrossing(const FabricConfig& config, FramePool& frames, Link& link, Step& step);

  bool is_there() const { return network_ != nullptr; }
  /// Returns whether the frame crosses the network, which is true for frames from one device to
  /// another.
  bool takes(const Departure& departure) const {
    return is_there() && departure.from && departure.to && *departure.from != *departure.to;
  }
  void inject(Departure&& departure);
  /// Processes all events of the network that are due.
  void advance();
  std::optional<Instant> next_event() const;
  /// Returns whether no frame is in flight in the network.
  bool empty() const { return used_ == 0; }

  bool can_inject(DeviceIndex from, uint8_t dscp) const { return network_->can_inject(from, dscp); }
  /// Makes take_resumed() return the QP when the device's queues have room again.
  void wait_for_room(DeviceIndex device, QpNumber qp);
  /// Removes and returns the QPs that waited for room and may try again, in the order of their
  /// waits.
  std::vector<QpNumber> take_resumed() { return std::exchange(resumed_, {}); }

  /// Begins or ends a fault. The next call of advance() removes the frames that the fault loses.
  void set_fault(const NetworkElement& element, const NetworkChange& change, bool is_on) {
    if (network_ != nullptr) network_->set_fault(element, change, is_on, step_.now());
  }

  /// Returns the controller of a new flow of the device, or null without congestion control.
  std::unique_ptr<RateController> make_rate_controller(DeviceIndex from, Instant now) const {
    return network_ != nullptr ? network_->make_rate_controller(from, now) : nullptr;
  }

  /// Returns the simulated network, or null if there is none.
  SimulatedNetwork* network() const { return network_.get(); }

 private:
  struct UnderWay {
    Frame frame;
    DeviceIndex to{};
    bool check_icrc = false;
  };

  void deliver(uint64_t token, Instant at, bool is_marked) override;
  void drop(uint64_t token) override { take(token); }
  void resumed(DeviceIndex device) override;
  void capture(uint32_t capture, uint64_t token, Instant at, bool is_marked, uint8_t ttl) override;
  UnderWay take(uint64_t token);

  FramePool& frames_;
  Link& link_;
  Step& step_;
  const bool has_icrcs_;
  std::unique_ptr<SimulatedNetwork> network_;
  std::vector<UnderWay> under_way_;  // by token
  std::vector<uint64_t> free_tokens_;
  size_t used_ = 0;
  std::vector<std::vector<QpNumber>> waiting_;  // by device
  std::vector<QpNumber> resumed_;
};

}  // namespace rocemu::engine
