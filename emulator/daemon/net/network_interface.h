// The machine's network interfaces, as far as a device on one of them needs to know.
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

  /// Has it this address? All of 127.0.0.0/8 is the loopback interface's.
  bool has(const wire::IpAddress& address) const;
};

/// In the order of their numbers. Empty if the system does not tell.
std::vector<NetworkInterface> list_network_interfaces();

const NetworkInterface* find_interface(const std::vector<NetworkInterface>& interfaces,
                                       std::string_view name);
const NetworkInterface* find_owner(const std::vector<NetworkInterface>& interfaces,
                                   const wire::IpAddress& address);

/// The network interface of loopback addresses, and of those that the machine does not have.
inline constexpr char kLoopback[] = "lo";
/// The number of each address's interface; nothing if even the loopback interface is not known.
std::vector<uint32_t> interfaces_of(const std::vector<wire::IpAddress>& addresses,
                                    const std::vector<NetworkInterface>& interfaces);

/// The interface of that name, for `device`. Throws StartError if there is none.
const NetworkInterface& interface_named(const std::vector<NetworkInterface>& interfaces,
                                        std::string_view name, std::string_view device);

/// All addresses of the interface, as a GID table has them. Throws StartError if there are none.
std::vector<wire::IpAddress> gids_of(const NetworkInterface& interface, std::string_view device);

/// IPv4 before IPv6 before what reaches no further than the link, so that GID 0 is what people
/// expect; else in the order in which they are.
void sort_as_gids(std::vector<wire::IpAddress>& addresses);

/// The largest path MTU of which every packet fits into an IP packet of that size; nothing if not
/// even the smallest does.
std::optional<abi::Mtu> largest_path_mtu(uint32_t interface_mtu);

}  // namespace rocemu::daemon
