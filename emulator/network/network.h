// The simulated network of `--fabric`, on virtual time: NICs that serialize, full-duplex links with
// rate and delay, and output-queued shared-buffer switches with priorities, ECN, PFC and ECMP. It
// moves tokens; the caller keeps the frames.
//
// Like the engine it is a pure function of its calls and its seed. Time is in picoseconds inside,
// and exact: what a frame's serialization leaves of a picosecond is carried to the next one. At the
// door, times are whole nanoseconds, rounded up: a frame is there at the first nanosecond at which
// its last bit is.
//
// What happens at the same time happens in this order: arrivals, by the port they arrive at; then
// ports that become free, by their number; then the ends of outages.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

struct Packet {
  uint64_t token = 0;  // the caller's name of it
  HostId from = 0;
  HostId to = 0;  // another host than `from`
  /// With FCS, preamble and gap. Links and buffers count these bytes.
  uint32_t bytes_on_wire = 0;
  uint32_t flow_hash = 0;  // of the 5-tuple: chooses among paths of equal length
  uint8_t dscp = 0;
  uint8_t ecn = 0;    // the two bits of the IP header: 0 is never marked (RFC 3168, 5)
  uint8_t ttl = 255;  // of interest to switches that decrement it
};

enum class DropReason : uint8_t {
  kBufferFull,    // no room in the switch, or in the queue's limit
  kHeadroomFull,  // of a priority with PFC: more came than headroom was there for
  kLinkDown,      // it was on a link, or waiting for one, that went down
  kSwitchDown,    // it was in a switch that rebooted
  kNoRoute,       // no path is left to its host
  kCorrupted,     // its FCS was wrong when it arrived
  kTtlExpired,
};
std::string_view name_of(DropReason reason);

/// A frame begins to leave a port.
struct Hop {
  PortId port = 0;
  uint64_t token = 0;
  Instant at{};
  bool is_marked = false;  // CE is set
  uint8_t ttl = 0;
};

/// Receives what happens in Network::advance().
class Sink {
 public:
  virtual ~Sink() = default;

  /// The frame's last bit came to its host. `is_marked`: a switch set CE.
  virtual void deliver(uint64_t token, HostId host, Instant at, bool is_marked) = 0;
  /// The frame is lost. `where`: the port that it waited for or came to.
  virtual void drop(uint64_t token, PortId where, DropReason why) = 0;
  /// can_inject() became true for some priority of the host.
  virtual void host_resumed(HostId host) = 0;
  /// Called for each hop if Network::observe_hops() was.
  virtual void on_hop(const Hop&) {}
};

struct PriorityCounters {
  uint64_t tx_packets = 0;
  uint64_t tx_bytes = 0;
  uint64_t rx_packets = 0;
  uint64_t rx_bytes = 0;
  uint64_t ecn_marks = 0;    // on leaving
  uint64_t drops = 0;        // of frames that this port would have sent
  uint64_t tx_pauses = 0;    // XOFF sent
  uint64_t rx_pauses = 0;    // XOFF received
  uint64_t queue_bytes = 0;  // waiting now
  uint64_t queue_high_water_bytes = 0;
  Duration paused{};  // for how long the peer kept it from sending, while pauses that have ended
};

class Network {
 public:
  /// The topology has no errors (check()). It is copied.
  Network(const Topology& topology, uint64_t seed);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const Topology& topology() const;
  uint8_t priority_of(uint8_t dscp) const;

  /// Returns whether the queue of the host's port has room for a frame of that priority. A caller
  /// that injects only then keeps the queue short; inject() itself takes any frame.
  bool can_inject(HostId host, uint8_t priority) const;
  /// Puts a frame into the queue of its sender's port. `now` is at least the time of the last call
  /// of any function; what is due by then has been advanced. Calls nothing back: what follows
  /// happens in advance(), perhaps as early as at `now`.
  void inject(const Packet& packet, Instant now);
  /// When advance() has something to do.
  std::optional<Instant> next_event() const;
  /// From now on next_delivery() may be asked.
  void track_deliveries();
  /// When advance() calls deliver() or host_resumed() at the earliest: as late as can be known
  /// without simulating on, and exact for a frame that meets no other. Nothing if it never will.
  std::optional<Instant> next_delivery();
  /// Lets everything happen that is due by `now`.
  void advance(Instant now, Sink& sink);
  void observe_hops(bool is_on);

  size_t port_count() const;
  const PortInfo& port(PortId port) const;
  const PriorityCounters& counters(PortId port, uint8_t priority) const;
  /// Returns whether the peer keeps the port from sending the priority.
  bool is_paused(PortId port, uint8_t priority) const;
  uint64_t rate_bps(LinkId link) const;
  /// Frames in queues and on links.
  size_t packets_in_flight() const;
  /// Frames that left a port, ever.
  uint64_t packet_hops() const;
  /// The bytes in the buffer of a switch.
  uint64_t buffered_bytes(SwitchId switch_id) const;

  // Faults. They take effect at `now`; frames that are lost by them are dropped in advance().

  /// Down: what is on the link or waits for it is lost, and routes avoid it.
  void set_link_state(LinkId link, bool is_up, Instant now);
  /// Takes effect with the next frame. The rate is not 0.
  void set_link_rate(LinkId link, uint64_t rate_bps, Instant now);
  /// Each frame on the link is corrupted with this probability.
  void set_corruption(LinkId link, double probability);
  /// The switch loses its frames, and its links are down for that long.
  void reboot_switch(SwitchId switch_id, Duration outage, Instant now);
  /// The host's NIC pauses its switch for that priority, until it is switched off again.
  void set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now);
  void set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds);

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace rocemu::network
