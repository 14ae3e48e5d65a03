// The configuration of a fabric, and settings for behavior in which real NICs differ
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

/// Behavior that differs between NICs or that the specification leaves open
struct DevicePolicy {
  /// RoCE requires a global route header in every address vector (IBTA vol 1, annex A17), so a NIC
  /// refuses a vector without a GRH (EINVAL). Programs for InfiniBand, among them ibv_rc_pingpong
  /// without -g, provide no GRH. With `false`, a vector without a GRH refers to the device of this
  /// fabric that owns the destination QP, and the path is from GID 0 to GID 0.
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
  /// If true, there is a network outside the fabric, which may have addresses that no device of the
  /// fabric has.
  bool outside = false;
  /// The UDP source ports of frames, one for each flow; if empty, all ports of IANA's dynamic
  /// range. A daemon sends from sockets, and has only a few ports.
  std::vector<uint16_t> source_ports = {};
  /// The number of each address's network interface (if_nametoindex(3)), which is the scope of a
  /// link-local address. If empty, any scope is accepted.
  std::vector<uint32_t> interfaces = {};
  DevicePolicy policy;
};

/// The maximum of FabricConfig::ack_coalescing, which is the number of packets that a QP sends in
/// one quantum.
inline constexpr uint32_t kMaxAckCoalescing = 16;

struct FabricConfig {
  std::vector<DeviceConfig> devices;
  /// The seed of all random numbers. It determines the tags of MR keys and the decisions of faults,
  /// for example.
  uint64_t seed = 0;
  /// If true, a FrameTrace output is emitted for every frame, and frames between two devices of the
  /// fabric get an ICRC. (Without a trace the ICRC could not be observed, so it is omitted, as with
  /// checksum offload.)
  bool trace_frames = false;
  /// The maximum number of consecutive messages that one acknowledgement covers (IBTA vol 1,
  /// 9.7.5.1.2), and the maximum number of WQEs of a QP that the daemon posts in one step. If it is
  /// 1, each message has a separate acknowledgement, however close in time the program posts
  /// messages.
  uint32_t ack_coalescing = 1;
  /// If true, the L_Key and R_Key of a region are equal, as on most NICs.
  bool same_keys = false;
  /// The enabled classes of `--adversarial`, as the bits of an adversarial::Classes.
  uint32_t adversarial = 0;
  /// The choices to which `--adversarial` is limited: pairs of a class and the number of a choice
  /// (adversarial/choices.h). A class that is in no pair is not limited.
  std::vector<std::pair<uint8_t, uint64_t>> adversarial_choices = {};
  /// If true, the engine reports the choices of `--adversarial` in Outputs::choices.
  bool reports_adversarial_choices = false;
  /// The time that a frame takes between two devices of the fabric. It is 0 on the real clock,
  /// where measurements should show the program's own speed.
  Duration link_latency{0};
  /// The network between the devices; device N is host N of the network. If null, frames take
  /// `link_latency`.
  std::shared_ptr<const NetworkPlan> network = nullptr;
};

/// Arranges the GID table as the profile requires: each address appears once for each GID type, and
/// link-local addresses come first if the profile says so. Must be called once, after all addresses
/// have been added.
void arrange_gids(DeviceConfig& device);

/// Returns the EUI-64 of the device's MAC, in host byte order.
uint64_t node_guid(const DeviceConfig& device);

/// Returns the default fabric. rocemu0 has the addresses 127.0.0.1 and ::1; rocemuN has
/// 127.0.0.(N+1), and the address in fe80::/64 with the EUI-64 of its MAC. `count` is 1 to 250.
FabricConfig default_fabric(uint32_t count);

}  // namespace rocemu::engine
