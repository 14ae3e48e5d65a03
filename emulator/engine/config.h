// The configuration of a fabric, and the behavior of its devices where real NICs differ
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/base/simulated_network.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/device_profile.h"
#include "wire/ethernet.h"
#include "wire/ip.h"

namespace rocemu::engine {

/// Behavior in which NICs differ or which the specification leaves open
struct DevicePolicy {
  /// RoCE requires a global route header in every address vector (IBTA vol 1 annex A17), so a NIC
  /// refuses a vector without it (EINVAL). Programs for InfiniBand, among them ibv_rc_pingpong
  /// without -g, provide none; with `false` such a vector means the device of this fabric that owns
  /// the destination QP, reached from GID 0 to GID 0.
  bool require_grh = false;
  /// Linux resolves the neighbor of an address vector (ib_resolve_eth_dmac()), and refuses an
  /// address that does not answer (ETIMEDOUT). With `false` every address is accepted, as tests of
  /// lost peers and older recordings require.
  bool resolve_neighbors = false;
};

struct DeviceConfig {
  std::string name;                        // "rocemu0"
  wire::MacAddress mac;                    // its EUI-64 is the node GUID
  std::vector<wire::IpAddress> addresses;  // the GID table, from index 0
  std::shared_ptr<const DeviceProfile> profile = generic_profile();
  abi::Mtu active_mtu = abi::Mtu::k4096;
  /// If true, there is a network outside the fabric: it may contain an address that no device of
  /// the fabric has.
  bool outside = false;
  /// The UDP source ports of frames, one for each flow; empty for all of IANA's dynamic range. A
  /// daemon sends from sockets, and has only a few of them.
  std::vector<uint16_t> source_ports = {};
  /// The number of each address's network interface (if_nametoindex(3)), which is the scope of a
  /// link-local address. Without it any scope is accepted.
  std::vector<uint32_t> interfaces = {};
  DevicePolicy policy;
};

/// The number of short messages that a QP sends in one turn.
inline constexpr uint32_t kMaxAckCoalescing = 16;

struct FabricConfig {
  std::vector<DeviceConfig> devices;
  /// The only source of randomness: for the tags of MR keys and the decisions of faults.
  uint64_t seed = 0;
  /// If true, a FrameTrace output is emitted for every frame, and frames between two devices of the
  /// fabric get an ICRC. (Without a trace no reader can see the ICRC, so it is omitted, as with
  /// checksum offload.)
  bool trace_frames = false;
  /// The maximum number of consecutive messages that one acknowledgement covers (IBTA vol 1,
  /// 9.7.5.1.2), and that a QP posts in one step. With 1 each message has a separate
  /// acknowledgement, however the program's posts coincide.
  uint32_t ack_coalescing = 1;
  /// If true, the L_Key and R_Key of a region are equal, as on most NICs.
  bool same_keys = false;
  /// The enabled classes of `--adversarial`: the bits of an adversarial::Classes.
  uint32_t adversarial = 0;
  /// The adversary's choices that are made, if not all are: each is its class and its number
  /// (adversarial/choices.h).
  std::vector<std::pair<uint8_t, uint64_t>> adversarial_choices = {};
  /// If true, the engine fills Outputs::choices.
  bool reports_adversarial_choices = false;
  /// The latency of a frame between two devices of the fabric. It is 0 on the real clock, where
  /// measurements should show the program's own speed.
  Duration link_latency{0};
  /// The network between the devices, whose host N is device N. Null: frames take `link_latency`.
  std::shared_ptr<const NetworkPlan> network = nullptr;
};

/// Arranges the GID table as in the profile: each address once for each type, link-local addresses
/// first if the profile says so. Must be called once, when the addresses are known.
void arrange_gids(DeviceConfig& device);

/// Returns the EUI-64 of the device's MAC, in host byte order.
uint64_t node_guid(const DeviceConfig& device);

/// Returns the default fabric: rocemu0 is 127.0.0.1 and ::1, rocemuN is 127.0.0.(N+1) and fe80::/64
/// with the EUI-64 of its MAC. `count` is 1 to 250.
FabricConfig default_fabric(uint32_t count);

}  // namespace rocemu::engine
