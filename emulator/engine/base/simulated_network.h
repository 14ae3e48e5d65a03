// The engine's interface to a simulated network (`rocemu run --fabric`): the engine hands over
// frames, and gets them back when their last bits arrive. emulator/network/programs implements it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/network_fault.h"
#include "emulator/engine/base/rate_controller.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine {

/// A frame that enters the network. Its bytes stay with the engine.
struct Injection {
  uint64_t token = 0;  // the engine's name for the frame
  DeviceIndex from{};
  DeviceIndex to{};            // not `from`
  uint32_t bytes_on_wire = 0;  // with FCS, preamble and gap
  uint32_t flow_hash = 0;      // of the 5-tuple
  uint8_t dscp = 0;
  uint8_t ecn = 0;
  uint8_t ttl = 255;
  std::optional<QpNumber> qp = {};  // that sends it, for observers
};

/// The numbers of PFC frames with XOFF that a device's port has received and sent, by priority
/// (IEEE 802.1Qbb).
struct PauseCounters {
  std::array<uint64_t, 8> received{};
  std::array<uint64_t, 8> sent{};
};

/// Receives the events of SimulatedNetwork::advance().
class NetworkEvents {
 public:
  virtual ~NetworkEvents() = default;
  /// Called when the last bit of the frame has arrived. `is_marked` is true if a switch set CE.
  virtual void deliver(uint64_t token, Instant at, bool is_marked) = 0;
  /// Called when the network has lost the frame.
  virtual void drop(uint64_t token) = 0;
  /// Called when can_inject() has become true for a priority of the device.
  virtual void resumed(DeviceIndex device) = 0;
  /// Called when a frame begins to leave a captured port. `capture` is the port's index among the
  /// captured ports.
  virtual void capture(uint32_t capture, uint64_t token, Instant at, bool is_marked,
                       uint8_t ttl) = 0;
};

class SimulatedNetwork {
 public:
  virtual ~SimulatedNetwork() = default;

  /// Returns whether the device's port has room in the queue for frames of this DSCP.
  virtual bool can_inject(DeviceIndex from, uint8_t dscp) const = 0;
  /// Puts a frame into the network. Before that, advance() must have processed all events due by
  /// `now`.
  virtual void inject(const Injection& injection, Instant now) = 0;
  /// Returns a time before which advance() calls no function of NetworkEvents. The time is as late
  /// as can be known, because hops inside the network need no step of the engine.
  virtual std::optional<Instant> next_event() = 0;
  virtual void advance(Instant now, NetworkEvents& events) = 0;
  /// Begins or ends a fault. At its end, the part of the network is again as the network's file
  /// describes it. advance() must have processed all events due by `now`.
  virtual void set_fault(const NetworkElement& element, const NetworkChange& change, bool is_on,
                         Instant now) = 0;
  /// Returns the controller of a new flow of the device, or null without congestion control.
  virtual std::unique_ptr<RateController> make_rate_controller(DeviceIndex from,
                                                               Instant now) const = 0;
  virtual PauseCounters pauses_of(DeviceIndex device) const = 0;
};

/// The settings for the notifications (CNPs) by which NICs inform senders of congestion
struct CongestionNotification {
  Duration interval{};  // the shortest time between two CNPs of a QP
  uint8_t dscp = 0;     // of CNPs
};

/// The description of a network, from which each run creates its own network.
class NetworkPlan {
 public:
  virtual ~NetworkPlan() = default;
  virtual std::unique_ptr<SimulatedNetwork> build(uint64_t seed) const = 0;
  /// Returns the text of the file that describes the network, for recordings.
  virtual const std::string& text() const = 0;
  virtual size_t host_count() const = 0;
  /// Returns the reason why the network cannot have the fault, for example that it has no such
  /// link. Returns an empty string if it can.
  virtual std::string problem_of(const NetworkElement& element,
                                 const NetworkChange& change) const = 0;
  /// Returns the settings of congestion control; nothing if QPs neither send CNPs nor slow down.
  virtual std::optional<CongestionNotification> notification() const = 0;
};

}  // namespace rocemu::engine
