// The simulated network of `--fabric`, on virtual time: NICs that serialize, full-duplex links with
// rate and delay, and output-queued shared-buffer switches with priorities, ECN, PFC and ECMP. It
// handles tokens; the caller keeps the frames.
//
// Like the engine, it is a pure function of its calls and its seed. Internal times are exact, in
// picoseconds: the remaining fraction of a picosecond of a frame's serialization is carried to the
// next frame. In the interface, times are whole nanoseconds, rounded up: a frame arrives at the
// first nanosecond at which its last bit has arrived.
//
// Simultaneous events happen in this order: arrivals, by the port of arrival; then ports that
// become free, by their number; then the ends of outages.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

struct Packet {
  uint64_t token = 0;  // the caller's name for it
  HostId from = 0;
  HostId to = 0;  // not `from`
  /// The size with FCS, preamble and gap. Links and buffers count these bytes.
  uint32_t bytes_on_wire = 0;
  uint32_t flow_hash = 0;  // hash of the 5-tuple, which selects one of several shortest paths
  uint8_t dscp = 0;
  uint8_t ecn = 0;    // the two bits of the IP header; 0 is never marked (RFC 3168, 5)
  uint8_t ttl = 255;  // used by switches that decrement it
};

enum class DropReason : uint8_t {
  kBufferFull,    // no room in the switch, or the queue is at its limit
  kHeadroomFull,  // more frames of a priority with PFC arrived than the headroom holds
  kLinkDown,      // it was on a link, or waited for one, that went down
  kSwitchDown,    // it was in a switch that rebooted
  kNoRoute,       // no path is left to its host
  kCorrupted,     // its FCS was wrong when it arrived
  kTtlExpired,
};
std::string_view name_of(DropReason reason);

/// The event that a frame begins to leave a port.
struct Hop {
  PortId port = 0;
  uint64_t token = 0;
  Instant at{};
  bool is_marked = false;  // CE is set
  uint8_t ttl = 0;
};

/// Receives the events of Network::advance().
class Sink {
 public:
  virtual ~Sink() = default;

  /// Is called when the frame's last bit has arrived at its host. `is_marked` is true if a switch
  /// has set CE.
  virtual void deliver(uint64_t token, HostId host, Instant at, bool is_marked) = 0;
  /// Is called when a frame is lost. `where` is the port for which the frame waited or at which it
  /// arrived.
  virtual void drop(uint64_t token, PortId where, DropReason why) = 0;
  /// Is called when can_inject() has become true for a priority of the host.
  virtual void host_resumed(HostId host) = 0;
  /// Is called for each hop if Network::observe_hops() was called.
  virtual void on_hop(const Hop&) {}
};

struct PriorityCounters {
  uint64_t tx_packets = 0;
  uint64_t tx_bytes = 0;
  uint64_t rx_packets = 0;
  uint64_t rx_bytes = 0;
  uint64_t ecn_marks = 0;    // frames marked when they left
  uint64_t drops = 0;        // frames that this port would have sent
  uint64_t tx_pauses = 0;    // XOFF sent
  uint64_t rx_pauses = 0;    // XOFF received
  uint64_t queue_bytes = 0;  // bytes that wait now
  uint64_t queue_high_water_bytes = 0;
  Duration paused{};  // total time for which the peer stopped this port, without a current pause

  bool operator==(const PriorityCounters&) const = default;
};

class Network {
 public:
  /// Creates the network with a copy of the topology, which must have no errors (see check()).
  Network(const Topology& topology, uint64_t seed);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const Topology& topology() const;
  uint8_t priority_of(uint8_t dscp) const;

  /// Returns whether the queue of the host's port has room for a frame of that priority. A caller
  /// that injects only then keeps the queue short. inject() itself accepts every frame.
  bool can_inject(HostId host, uint8_t priority) const;
  /// Puts a frame into the queue of its sender's port. `now` must not be before any earlier call,
  /// and advance() must have processed all events due by then. Calls no function of the sink; the
  /// effects occur in advance(), perhaps at the same `now`.
  void inject(const Packet& packet, Instant now);
  /// Returns the time of the next event for advance().
  std::optional<Instant> next_event() const;
  /// Enables next_delivery().
  void track_deliveries();
  /// Returns the earliest time at which advance() can call deliver() or host_resumed(). This bound
  /// is as late as possible without simulating further, and exact for a frame that meets no other
  /// frame. Returns nothing if there is no such time.
  std::optional<Instant> next_delivery();
  /// Processes all events that are due by `now`.
  void advance(Instant now, Sink& sink);
  void observe_hops(bool is_on);

  size_t port_count() const;
  const PortInfo& port(PortId port) const;
  const PriorityCounters& counters(PortId port, uint8_t priority) const;
  /// Returns whether the peer keeps the port from sending the priority.
  bool is_paused(PortId port, uint8_t priority) const;
  uint64_t rate_bps(LinkId link) const;
  bool is_link_up(LinkId link) const;
  /// Returns the number of frames in queues and on links.
  size_t packets_in_flight() const;
  /// Returns the total number of frames that have left a port.
  uint64_t packet_hops() const;
  /// Returns the number of bytes in the buffer of a switch.
  uint64_t buffered_bytes(SwitchId switch_id) const;

  // Faults. They take effect at `now`. Frames that are lost because of them are dropped in
  // advance().

  /// Takes a link up or down. If it goes down, frames on it or waiting for it are lost, and routes
  /// avoid it.
  void set_link_state(LinkId link, bool is_up, Instant now);
  /// Changes the rate from the next frame on. The rate must not be 0.
  void set_link_rate(LinkId link, uint64_t rate_bps, Instant now);
  /// Corrupts each frame on the link with this probability.
  void set_corruption(LinkId link, double probability);
  /// Makes the switch lose its frames, and takes its links down for the time `outage`.
  void reboot_switch(SwitchId switch_id, Duration outage, Instant now);
  /// Makes the host's NIC pause its switch for that priority, until this is switched off.
  void set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now);
  void set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds);

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace rocemu::network
