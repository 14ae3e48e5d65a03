#include "emulator/daemon/net/network_interface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>

#include "emulator/daemon/base/start_error.h"
#include "emulator/engine/config.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

/// The largest size of all headers, in bytes: IPv6 40, UDP 8, BTH 12, the largest headers before a
/// payload (XRCETH 4, RETH 16, ImmDt 4), and the ICRC 4.
constexpr uint32_t kLargestHeaders = 88;

std::optional<wire::IpAddress> ip_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  wire::IpAddress ip;
  if (address->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    ip = wire::IpAddress::from_v4(0, 0, 0, 0);
    std::memcpy(&ip.bytes[12], &in.sin_addr, 4);
    return ip;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    std::memcpy(ip.bytes.data(), &in.sin6_addr, ip.bytes.size());
    return ip;
  }
  return std::nullopt;
}

uint32_t prefix_length_of(const sockaddr* netmask) {
  const auto mask = ip_of(netmask);
  if (!mask) return 0;
  uint32_t bits = 0;
  const bool is_v4 = netmask->sa_family == AF_INET;
  for (size_t i = is_v4 ? 12 : 0; i < mask->bytes.size(); ++i) {
    bits += static_cast<uint32_t>(std::popcount(mask->bytes[i]));
  }
  return bits;
}

sockaddr_ll link_of(const sockaddr* address) {
  sockaddr_ll link;
  std::memcpy(&link, address, sizeof link);
  return link;
}

wire::MacAddress mac_of(const sockaddr_ll& link) {
  wire::MacAddress mac{};
  if (link.sll_halen == mac.bytes.size()) {
    std::memcpy(mac.bytes.data(), link.sll_addr, mac.bytes.size());
  }
  return mac;
}

uint32_t mtu_of(int socket, const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ioctl(socket, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

bool is_link_local(const wire::IpAddress& address) {
  return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

bool same_prefix(const wire::IpAddress& a, const wire::IpAddress& b, uint32_t bits) {
  for (size_t i = 0; bits > 0; ++i) {
    const uint32_t here = std::min<uint32_t>(bits, 8);
    if ((a.bytes[i] ^ b.bytes[i]) >> (8 - here) != 0) return false;
    bits -= here;
  }
  return true;
}

}  // namespace

bool NetworkInterface::has(const wire::IpAddress& address) const {
  return std::ranges::any_of(addresses, [&](const Address& own) {
    if (own.ip == address) return true;
    return is_loopback && own.ip.is_v4() && address.is_v4() &&
           same_prefix(own.ip, address, 96 + own.prefix_length);
  });
}

std::vector<NetworkInterface> list_network_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

  std::map<std::string, NetworkInterface> by_name;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    NetworkInterface& interface = by_name[entry->ifa_name];
    if (interface.name.empty()) {
      interface.name = entry->ifa_name;
      interface.mtu = mtu_of(socket.get(), interface.name);
      interface.is_up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
      interface.is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    }
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_PACKET) {
      const sockaddr_ll link = link_of(entry->ifa_addr);
      interface.index = static_cast<uint32_t>(link.sll_ifindex);
      interface.mac = mac_of(link);
    } else if (const auto ip = ip_of(entry->ifa_addr)) {
      interface.addresses.push_back({*ip, prefix_length_of(entry->ifa_netmask)});
    }
  }
  std::vector<NetworkInterface> interfaces;
  for (auto& [name, interface] : by_name) {
    // A label of an address, such as eth0:1, is not a link.
    if (interface.index == 0) interface.index = if_nametoindex(name.c_str());
    interfaces.push_back(std::move(interface));
  }
  std::ranges::sort(interfaces, {}, &NetworkInterface::index);
  return interfaces;
}

const NetworkInterface* find_interface(const std::vector<NetworkInterface>& interfaces,
                                       std::string_view name) {
  const auto found = std::ranges::find(interfaces, name, &NetworkInterface::name);
  return found != interfaces.end() ? &*found : nullptr;
}

const NetworkInterface* find_owner(const std::vector<NetworkInterface>& interfaces,
                                   const wire::IpAddress& address) {
  const auto found = std::ranges::find_if(
      interfaces, [&](const NetworkInterface& interface) { return interface.has(address); });
  return found != interfaces.end() ? &*found : nullptr;
}

std::vector<uint32_t> interfaces_of(const std::vector<wire::IpAddress>& addresses,
                                    const std::vector<NetworkInterface>& interfaces) {
  const NetworkInterface* const loopback = find_interface(interfaces, kLoopback);
  if (loopback == nullptr) return {};
  std::vector<uint32_t> numbers;
  for (const wire::IpAddress& address : addresses) {
    const NetworkInterface* const owner = find_owner(interfaces, address);
    numbers.push_back(owner != nullptr ? owner->index : loopback->index);
  }
  return numbers;
}

const NetworkInterface& interface_named(const std::vector<NetworkInterface>& interfaces,
                                        std::string_view name, std::string_view device) {
  if (const auto* found = find_interface(interfaces, name)) return *found;
  std::vector<std::string> names;
  for (const NetworkInterface& interface : interfaces) names.push_back(interface.name);
  throw StartError(fmt::format("device {}: there is no network interface '{}'; there are {}",
                               device, name, fmt::join(names, ", ")));
}

std::vector<wire::IpAddress> gids_of(const NetworkInterface& interface, std::string_view device) {
  std::vector<wire::IpAddress> gids;
  for (const auto& address : interface.addresses) gids.push_back(address.ip);
  if (gids.empty()) {
    throw StartError(
        fmt::format("device {}: the interface {} has no IP address", device, interface.name));
  }
  sort_as_gids(gids);
  if (gids.size() > engine::kGidTableLength) gids.resize(engine::kGidTableLength);
  return gids;
}

void sort_as_gids(std::vector<wire::IpAddress>& addresses) {
  std::ranges::stable_sort(addresses, {}, [](const wire::IpAddress& ip) {
    return ip.is_v4() ? 0 : is_link_local(ip) ? 2 : 1;
  });
}

std::optional<abi::Mtu> largest_path_mtu(uint32_t interface_mtu) {
  for (const abi::Mtu mtu :
       {abi::Mtu::k4096, abi::Mtu::k2048, abi::Mtu::k1024, abi::Mtu::k512, abi::Mtu::k256}) {
    if (abi::mtu_bytes(mtu) + kLargestHeaders <= interface_mtu) return mtu;
  }
  return std::nullopt;
}

}  // namespace rocemu::daemon
