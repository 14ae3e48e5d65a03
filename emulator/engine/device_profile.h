// The properties of a device: its identity, the attributes and limits that queries return, and the
// requests that its driver accepts, which can differ from these limits. A profile describes a NIC
// that programs know. The profile `generic` is rocemu's own; all other profiles are files
// (docs/profiles.md).
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/abi/attributes.h"
#include "emulator/abi/operations.h"

namespace rocemu::engine {

/// The values of ib_device::node_type in Linux.
enum class NodeType : uint8_t { kCa = 1, kRnic = 4, kUsnic = 5, kUsnicUdp = 6, kUnspecified = 7 };

enum class GidType : uint8_t { kRoceV1, kRoceV2 };

/// The reaction when a program requests more inline data for a QP than the device has
enum class InlineAbove : uint8_t {
  kRefuse,  // EINVAL
  kCap,     // the maximum, without an error
};

/// The device's identity in sysfs and netlink
struct DeviceIdentity {
  std::string name = "rocemu%d";    // %d: its number
  std::string node_desc;            // empty: the device's name
  std::string hca_type = "rocemu";  // empty: no such file, as with several drivers
  std::string board_id = "rocemu";  // empty: no such file
  std::string hw_rev;               // empty: the number of attr.hw_ver
  std::string driver;               // of the PCI function; empty: no link
  std::string module;               // of the driver
  NodeType node_type = NodeType::kCa;
};

/// The identity of the device's PCI function.
struct PciIdentity {
  // The vendor of QEMU's devices, and an ID that no device of that vendor has.
  uint16_t vendor = 0x1b36, device = 0xace0;
  uint16_t subsystem_vendor = 0x1b36, subsystem_device = 0xace0;
  uint32_t class_code = 0x020000;  // Ethernet controller
  uint8_t revision = 0;
};

/// The limits that ibv_create_qp() applies, and the errors that it returns
struct QpRules {
  uint32_t types = ~0u;  // bits of abi::QpType
  /// The error if the device does not have the QP type. If type_error or limit_error is 0,
  /// ibv_create_qp() returns NULL without changing errno.
  int32_t type_error = EOPNOTSUPP;
  /// The error if a capacity is above the limit
  int32_t limit_error = EINVAL;
  /// The error if the device already has its maximum number of QPs
  int32_t exhausted_error = ENOMEM;
  uint32_t max_send_wr = 0;  // in these four 0 means the value of the attributes
  uint32_t max_recv_wr = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t min_send_wr = 0;
  uint32_t min_recv_wr = 0;  // of a QP without SRQ
  InlineAbove inline_above = InlineAbove::kRefuse;
  uint32_t least_inline = 0;  // granted even if less was requested
};

/// The rules for the opcodes of work requests
struct SendRules {
  uint32_t opcodes = ~0u;      // bits of abi::WrOpcode that can be posted
  uint32_t late_failures = 0;  // can be posted, and then complete with LOC_QP_OP_ERR
  uint32_t late_vendor_err = 0;
};

struct DeviceProfile {
  std::string name = "generic";
  std::string summary;
  DeviceIdentity identity;
  PciIdentity pci;
  /// The result of ibv_query_device_ex(), except that each device has its own GUIDs.
  abi::DeviceAttr attr{};
  /// The result of ibv_query_port(), except that each port has its own state, active MTU and
  /// counters.
  abi::PortAttr port{};
  abi::Mtu active_mtu = abi::Mtu::k4096;
  std::vector<GidType> gid_types{GidType::kRoceV2};  // entries of each address, in this order
  bool link_local_first = false;
  QpRules qp;
  SendRules sends;
  abi::PostRules posts{};
  uint32_t mr_access = ~0u;  // abi::AccessFlags that ibv_reg_mr() accepts
  int32_t mr_access_error = EOPNOTSUPP;
  bool equal_keys = false;             // the R_Key of each region is its L_Key
  std::map<abi::Op, int32_t> refused;  // verbs that the driver lacks, with their error

  /// Returns whether this is rocemu's own profile; a profile from a file can have the same name.
  bool is_generic() const;
};

/// Returns the profile of rocemu's own device, whose limits are those of the engine.
const std::shared_ptr<const DeviceProfile>& generic_profile();

}  // namespace rocemu::engine
