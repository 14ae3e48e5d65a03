// The machine's network interfaces, with the properties that RDMA devices need
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "wire/ethernet.h"
#include "wire/ip_address.h"

namespace rocemu::daemon {

struct NetworkInterface {
  struct Address {
    wire::IpAddress ip;
    uint32_t prefix_length = 0;  // of 32 or 128 bits
  };

  std::string name;
  uint32_t index = 0;
  uint32_t mtu = 0;
  bool is_up = false;  // and has a carrier
  bool is_loopback = false;
  wire::MacAddress mac{};  // zeros if it has none
  std::vector<Address> addresses;

  /// Returns whether the interface has this address. The loopback interface has all addresses of
  /// 127.0.0.0/8.
  bool has(const wire::IpAddress& address) const;
};

/// Returns the interfaces sorted by their numbers; none if the system does not report them.
std::vector<NetworkInterface> list_network_interfaces();

const NetworkInterface* find_interface(const std::vector<NetworkInterface>& interfaces,
                                       std::string_view name);
const NetworkInterface* find_owner(const std::vector<NetworkInterface>& interfaces,
                                   const wire::IpAddress& address);

/// The name of the network interface for loopback addresses, and for addresses that the machine
/// does not have
inline constexpr char kLoopback[] = "lo";
/// Returns the number of the interface of each address; nothing if not even the loopback interface
/// is known.
std::vector<uint32_t> interfaces_of(const std::vector<wire::IpAddress>& addresses,
                                    const std::vector<NetworkInterface>& interfaces);

/// Returns the interface with this name. Throws StartError if there is none. `device` is the name
/// of the device for the error message.
const NetworkInterface& interface_named(const std::vector<NetworkInterface>& interfaces,
                                        std::string_view name, std::string_view device);

/// Returns all addresses of the interface in the order of a GID table. Throws StartError if it has
/// none.
std::vector<wire::IpAddress> gids_of(const NetworkInterface& interface, std::string_view device);

/// Sorts the addresses: first IPv4, then IPv6, then link-local addresses, so that GID 0 is the one
/// that users expect. Otherwise keeps their order.
void sort_as_gids(std::vector<wire::IpAddress>& addresses);

/// Returns the largest path MTU with which each packet, including all headers, fits into the MTU of
/// the interface; nothing if even the smallest path MTU is too large.
std::optional<abi::Mtu> largest_path_mtu(uint32_t interface_mtu);

}  // namespace rocemu::daemon
