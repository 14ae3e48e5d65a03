// The description of a simulated network (`--fabric`) as a plain value: hosts, switches, and the
// links between them. emulator/network/file reads it from YAML, and network_shapes.h builds the
// usual shapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/base/time.h"
#include "emulator/network/dcqcn_parameters.h"

namespace rocemu::network {

using engine::Duration;
using engine::Instant;

using HostId = uint32_t;    // an index into Topology::hosts
using SwitchId = uint32_t;  // an index into Topology::switches
using LinkId = uint32_t;    // an index into Topology::links
/// A port of a host or a switch. The only port of host N is port N. The ports of the switches
/// follow; those of one switch are in the order of its links.
using PortId = uint32_t;

/// The 802.1p priorities.
inline constexpr size_t kPriorities = 8;
inline constexpr size_t kDscpValues = 64;

/// The size of a PFC frame on the wire: the smallest Ethernet frame, preamble and gap (IEEE
/// 802.1Qbb, 35.1.2; IEEE 802.3, 3.1.1 and 4.4.2).
inline constexpr uint32_t kPfcFrameBytes = 84;

struct NodeRef {
  bool is_switch = false;
  uint32_t index = 0;  // HostId or SwitchId

  bool operator==(const NodeRef&) const = default;
};

/// Random early marking. The probability is 0 up to kmin, rises linearly to pmax at kmax, and is 1
/// above.
struct EcnThresholds {
  uint64_t kmin_bytes = 0;
  uint64_t kmax_bytes = 0;
  double pmax = 0;

  bool operator==(const EcnThresholds&) const = default;
};

/// Priority flow control (IEEE 802.1Qbb), for each ingress port and priority.
struct PfcThresholds {
  uint64_t xoff_bytes = 0;
  uint64_t xon_bytes = 0;
  /// The room for frames that arrive after xoff. 0 means what needed_headroom() returns for the
  /// port's link.
  uint64_t headroom_bytes = 0;

  bool operator==(const PfcThresholds&) const = default;
};

struct SwitchParameters {
  uint64_t buffer_bytes = 16u << 20;
  std::optional<EcnThresholds> ecn;
  std::optional<PfcThresholds> pfc;
  /// The limit of one egress queue, above which frames without PFC are dropped. 0 means that the
  /// buffer is the limit.
  uint64_t queue_limit_bytes = 0;
  /// If true, the switch is a router, which decrements the TTL and drops a frame whose TTL has run
  /// out.
  bool decrements_ttl = false;
};

/// The mapping of frames to priorities, and the order in which each port serves them.
struct PriorityParameters {
  std::array<uint8_t, kDscpValues> of_dscp = default_map();
  /// The priorities for which PFC prevents losses, as bits.
  uint8_t lossless = 1u << 3;
  /// The priorities that are served before all others, starting with the highest, as bits.
  uint8_t strict = 1u << 6 | 1u << 7;
  /// The shares of the other priorities (deficit weighted round robin); at least 1.
  std::array<uint32_t, kPriorities> weights = {1, 1, 1, 1, 1, 1, 1, 1};

  /// Returns the usual mapping of NVIDIA's NICs and switches for RoCE: all frames have priority 3,
  /// except CNPs (DSCP 48), which have priority 6.
  static constexpr std::array<uint8_t, kDscpValues> default_map() {
    std::array<uint8_t, kDscpValues> map{};
    map.fill(3);
    map[48] = 6;
    return map;
  }
};

struct NicParameters {
  /// The limit of a priority's waiting bytes: Network::can_inject() is true while fewer bytes wait
  /// for the port.
  uint64_t queue_bytes = 8192;
  /// The parameters of DCQCN. Without a value, QPs send at the rate of their link.
  std::optional<DcqcnParameters> dcqcn;
};

struct Host {
  std::string name;
};

struct Switch {
  std::string name;
  SwitchParameters parameters;
};

/// A full-duplex link between two ports.
struct Link {
  NodeRef a;
  NodeRef b;
  uint64_t rate_bps = 100'000'000'000;
  Duration delay{500};
};

enum class Routing : uint8_t {
  kShortest,  // all shortest paths, selected by the hash of the flow
  kUpDown,    // never up after down, relative to a root: buffers cannot wait for each other in a
              // cycle
};

struct Topology {
  std::vector<Host> hosts;
  std::vector<Switch> switches;
  std::vector<Link> links;
  PriorityParameters priorities;
  NicParameters nic;
  Routing routing = Routing::kShortest;
  /// The largest frame on the wire, from which the headroom is computed: 4096 bytes of payload,
  /// RoCEv2's largest path MTU, with headers.
  uint32_t largest_frame_bytes = 4200;
};

/// An error in a topology, or (`is_warning`) something that is probably not intended.
struct TopologyProblem {
  /// The part of the topology that has the problem, by which the file reader finds its line.
  enum class Subject : uint8_t {
    kTopology,
    kBuffer,
    kEcn,
    kPfc,
    kHeadroom,
    kLink,
    kNode,
    kPriority
  };
  Subject subject = Subject::kTopology;
  uint32_t index = 0;  // of the link, host or switch
  std::string message;
  bool is_warning = false;
};

/// Returns all problems. A Network can be constructed from a topology without errors.
std::vector<TopologyProblem> check(const Topology& topology);

/// Returns the bytes that may arrive at a port between the frame that crosses xoff and the moment
/// when the link is quiet: that frame, the frame that delays the PFC frame, the PFC frame, twice
/// the link's delay, and the frame that the sender has already begun (IEEE 802.1Q, annex N).
uint64_t needed_headroom(const Link& link, uint32_t largest_frame_bytes);

/// The node, link and peer of a port, as Network numbers them.
struct PortInfo {
  NodeRef node;
  uint32_t number = 0;  // at its node, counted from 0
  LinkId link = 0;
  PortId peer = 0;
};

/// Returns the ports by PortId.
std::vector<PortInfo> ports_of(const Topology& topology);

/// Returns the name of a port, made of the name of its node: "h3" for the port of host 3, and
/// "s1:3" for port 3 of switch 1.
std::string port_name(const Topology& topology, const PortInfo& port);
std::optional<PortId> find_port(const Topology& topology, std::string_view name);
/// Finds a link by the nodes that it connects, "h3-s1", or by one of its ports, "s1:3".
std::optional<LinkId> find_link(const Topology& topology, std::string_view name);
std::optional<SwitchId> find_switch(const Topology& topology, std::string_view name);
std::optional<HostId> find_host(const Topology& topology, std::string_view name);

}  // namespace rocemu::network
