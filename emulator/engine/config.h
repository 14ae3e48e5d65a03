// What a fabric consists of and how its devices behave where real NICs differ.
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

/// Behaviour on which NICs differ or which the specification leaves open.
struct DevicePolicy {
  /// RoCE requires a global route header in every address vector (IBTA vol 1 annex A17), so a NIC
  /// refuses one without it (EINVAL). Programs written for InfiniBand, ibv_rc_pingpong without -g
  /// among them, give none; with `false` such a vector means the device of this fabric that owns
  /// the destination QP, reached from GID 0 to GID 0.
  bool require_grh = false;
  /// Linux resolves the neighbor of an address vector (ib_resolve_eth_dmac()), and refuses an
  /// address that does not answer (ETIMEDOUT). If this is false every address is accepted, as tests
  /// of lost peers and older recordings require.
  bool resolve_neighbors = false;
};

struct DeviceConfig {
  std::string name;                        // "rocemu0"
  wire::MacAddress mac;                    // EUI-64 of it is the node GUID
  std::vector<wire::IpAddress> addresses;  // the GID table, from index 0
  std::shared_ptr<const DeviceProfile> profile = generic_profile();
  abi::Mtu active_mtu = abi::Mtu::k4096;
  /// Beyond the fabric there is a network: an address that no device of the fabric has may be
  /// somebody's there.
  bool outside = false;
  /// The UDP source ports that frames have, one for each flow; empty for all of IANA's dynamic
  /// range. A daemon sends from sockets, and has only so many.
  std::vector<uint16_t> source_ports = {};
  /// The number of each address's network interface (if_nametoindex(3)), which is the scope of a
  /// link-local address. Without it any scope is accepted.
  std::vector<uint32_t> interfaces = {};
  DevicePolicy policy;
};

/// As many as a QP sends short messages in one turn.
inline constexpr uint32_t kMaxAckCoalescing = 16;

struct FabricConfig {
  std::vector<DeviceConfig> devices;
  /// The only source of chance: MR key tags and, later, fault decisions.
  uint64_t seed = 0;
  /// Emit a FrameTrace output for every frame, and give frames between two devices of the fabric
  /// an ICRC (without a trace nobody can see it, so it is left out, as checksum offload does).
  bool trace_frames = false;
  /// The most messages that one acknowledgement is for, of those that arrive in a row (IBTA vol 1,
  /// 9.7.5.1.2), and the most that a QP posts in one step. With 1 each message has its own, however
  /// the program's posts meet each other.
  uint32_t ack_coalescing = 1;
  /// L_Key and R_Key of a region are equal, as on most NICs.
  bool same_keys = false;
  /// The classes of `--adversarial` that are on: the bits of an adversarial::Classes.
  uint32_t adversarial = 0;
  /// The adversary's choices of a class that are made, by their numbers (adversarial/choices.h), if
  /// not all: the class, and the number.
  std::vector<std::pair<uint8_t, uint64_t>> adversarial_choices = {};
  /// Whether the engine fills Outputs::choices.
  bool reports_adversarial_choices = false;
  /// What a frame between two devices of the fabric takes. 0 on the real clock, where the program's
  /// own speed is to be seen.
  Duration link_latency{0};
  /// The network between the devices, whose host N is device N. Null: frames take `link_latency`.
  std::shared_ptr<const NetworkPlan> network = nullptr;
};

/// Makes the GID table as the profile has it: each address once for each type, link-local addresses
/// first if it says so. To be called once, when the addresses are known.
void arrange_gids(DeviceConfig& device);

/// The EUI-64 of the device's MAC, in host byte order.
uint64_t node_guid(const DeviceConfig& device);

/// The default fabric: rocemu0 is 127.0.0.1 and ::1, rocemuN is 127.0.0.(N+1) and fe80::/64 with
/// the EUI-64 of its MAC. `count` is 1 to 250.
FabricConfig default_fabric(uint32_t count);

}  // namespace rocemu::engine
