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
/// A port of a host or a switch. The only port of host N has the number N. The ports of the
/// switches follow, those of one switch in the order of its links.
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

/// The thresholds of a queue for random marking. The probability of a mark is 0 up to kmin, rises
/// linearly to pmax at kmax, and is 1 from kmax on.
struct EcnThresholds {
  uint64_t kmin_bytes = 0;
  uint64_t kmax_bytes = 0;
  double pmax = 0;

  bool operator==(const EcnThresholds&) const = default;
};

/// The thresholds for priority flow control (IEEE 802.1Qbb) of each ingress port and priority.
struct PfcThresholds {
  uint64_t xoff_bytes = 0;
  uint64_t xon_bytes = 0;
  /// The room for frames that arrive after xoff was exceeded. 0 stands for the result of
  /// needed_headroom() for the port's link.
  uint64_t headroom_bytes = 0;

  bool operator==(const PfcThresholds&) const = default;
};

struct SwitchParameters {
  uint64_t buffer_bytes = 16u << 20;
  std::optional<EcnThresholds> ecn;
  std::optional<PfcThresholds> pfc;
  /// The limit of each egress queue. Frames without PFC that would exceed it are dropped. 0 means
  /// that only the buffer is the limit.
  uint64_t queue_limit_bytes = 0;
  /// If true, the switch is a router: it decrements the TTL, and drops a frame whose TTL would
  /// become 0.
  bool decrements_ttl = false;
};

/// The mapping from the DSCP of frames to priorities, and the order in which each port serves the
/// priorities.
struct PriorityParameters {
  std::array<uint8_t, kDscpValues> of_dscp = default_map();
  /// The priorities for which PFC prevents losses, as a bit mask.
  uint8_t lossless = 1u << 3;
  /// The priorities that are served before all others, as a bit mask. Of these, the highest is
  /// served first.
  uint8_t strict = 1u << 6 | 1u << 7;
  /// The shares of the other priorities in the deficit weighted round robin. Each is at least 1.
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
  /// The limit of the bytes that wait in a queue of the host's port. Network::can_inject() returns
  /// true for a priority while fewer bytes wait.
  uint64_t queue_bytes = 8192;
  /// The parameters of DCQCN. If empty, there is no congestion control, and QPs send at the rate of
  /// their link.
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

/// A problem in a topology: an error or, with `is_warning`, something that is probably not
/// intended.
struct TopologyProblem {
  /// The kind of the part of the topology that has the problem. From it, the file reader finds the
  /// line of the problem.
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

/// Returns all problems in the topology. A Network can only be constructed from a topology without
/// errors.
std::vector<TopologyProblem> check(const Topology& topology);

/// Returns the number of bytes that may arrive at a port after xoff was crossed, until the link is
/// quiet: the frame that crosses xoff, the frame that delays the PFC frame, the PFC frame, twice
/// the link's delay, and the frame that the sender has already begun (IEEE 802.1Q, annex N).
uint64_t needed_headroom(const Link& link, uint32_t largest_frame_bytes);

/// The node, link and peer of a port. Network uses the same numbers.
struct PortInfo {
  NodeRef node;
  uint32_t number = 0;  // at its node, counted from 0
  LinkId link = 0;
  PortId peer = 0;
};

/// Returns all ports of the topology. The index of a port is its PortId.
std::vector<PortInfo> ports_of(const Topology& topology);

/// Returns the name of a port, which contains the name of its node: "h3" is the port of host 3, and
/// "s1:3" is port 3 of switch 1.
std::string port_name(const Topology& topology, const PortInfo& port);
std::optional<PortId> find_port(const Topology& topology, std::string_view name);
/// Finds a link by the names of its two nodes, "h3-s1", or by one of its ports, "s1:3".
std::optional<LinkId> find_link(const Topology& topology, std::string_view name);
std::optional<SwitchId> find_switch(const Topology& topology, std::string_view name);
std::optional<HostId> find_host(const Topology& topology, std::string_view name);

}  // namespace rocemu::network
