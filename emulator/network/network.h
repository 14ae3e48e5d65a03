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
  /// The size with FCS, preamble and gap. This is the size that links and buffers count.
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

/// An event: a frame begins to leave a port.
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

  /// Is called when the last bit of a frame has arrived at its host. `is_marked` is true if a
  /// switch has marked the frame with CE.
  virtual void deliver(uint64_t token, HostId host, Instant at, bool is_marked) = 0;
  /// Is called when a frame is lost. `where` is the port for which the frame waited or at which it
  /// arrived.
  virtual void drop(uint64_t token, PortId where, DropReason why) = 0;
  /// Is called when can_inject() has become true again for a priority of the host.
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

  /// Returns whether the queue of the host's port has room for a frame of that priority. The queue
  /// stays short if the caller only injects frames when this is true; inject() itself accepts every
  /// frame.
  bool can_inject(HostId host, uint8_t priority) const;
  /// Puts a frame into the queue of its sender's port. `now` must not be earlier than in any
  /// previous call, and advance() must have processed all events that are due by then. Does not
  /// call the sink: the effects occur in advance(), perhaps at the same `now`.
  void inject(const Packet& packet, Instant now);
  /// Returns the time of the next event that advance() must process.
  std::optional<Instant> next_event() const;
  /// Enables next_delivery().
  void track_deliveries();
  /// Returns a lower bound of the time at which advance() can next call deliver() or
  /// host_resumed(). It is the best bound without further simulation, and is exact for a frame that
  /// meets no other frame. Returns nothing if neither function will be called.
  std::optional<Instant> next_delivery();
  /// Processes all events that are due by `now`.
  void advance(Instant now, Sink& sink);
  void observe_hops(bool is_on);

  size_t port_count() const;
  const PortInfo& port(PortId port) const;
  const PriorityCounters& counters(PortId port, uint8_t priority) const;
  /// Returns whether the port's peer has paused this priority, so that the port must not send it.
  bool is_paused(PortId port, uint8_t priority) const;
  uint64_t rate_bps(LinkId link) const;
  bool is_link_up(LinkId link) const;
  /// Returns the number of frames in queues and on links.
  size_t packets_in_flight() const;
  /// Returns how often a frame has left a port, in total.
  uint64_t packet_hops() const;
  /// Returns the number of bytes in the buffer of a switch.
  uint64_t buffered_bytes(SwitchId switch_id) const;

  // ---- Faults. They take effect at `now`. Frames that are lost because of them are dropped in
  // advance().

  /// Takes a link up or down. If it goes down, frames on it or waiting for it are lost, and routes
  /// avoid it.
  void set_link_state(LinkId link, bool is_up, Instant now);
  /// Changes the link's rate for all frames from the next one on. The rate must not be 0.
  void set_link_rate(LinkId link, uint64_t rate_bps, Instant now);
  /// Corrupts each frame on the link with the given probability.
  void set_corruption(LinkId link, double probability);
  /// Reboots the switch: it loses its frames, and its links are down for the time `outage`.
  void reboot_switch(SwitchId switch_id, Duration outage, Instant now);
  /// Makes the host's NIC pause its switch for that priority, until a call with `is_on` false.
  void set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now);
  void set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds);

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace rocemu::network
