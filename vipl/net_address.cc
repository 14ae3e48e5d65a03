#include "vipl/net_address.h"

#include <arpa/inet.h>

#include <cstddef>
#include <cstring>

namespace rocemu::vipl {

std::optional<NetAddress> read_address(const VIP_NET_ADDRESS* address) {
  if (address == nullptr) return std::nullopt;
  const size_t host = address->HostAddressLen;
  const size_t discriminator = address->DiscriminatorLen;
  if ((host != 4 && host != 16) || discriminator > kMaxDiscriminator) return std::nullopt;
  const char* bytes =
      reinterpret_cast<const char*>(address) + offsetof(VIP_NET_ADDRESS, HostAddress);
  return NetAddress{std::string(bytes, host), std::string(bytes + host, discriminator)};
}

void write_address(const NetAddress& from, VIP_NET_ADDRESS* to) {
  to->HostAddressLen = static_cast<VIP_UINT16>(from.host.size());
  to->DiscriminatorLen = static_cast<VIP_UINT16>(from.discriminator.size());
  char* bytes = reinterpret_cast<char*>(to) + offsetof(VIP_NET_ADDRESS, HostAddress);
  std::memcpy(bytes, from.host.data(), from.host.size());
  std::memcpy(bytes + from.host.size(), from.discriminator.data(), from.discriminator.size());
}

uint16_t port_of(const std::string& discriminator, uint16_t attempt) {
  uint32_t hash = 2166136261u;  // FNV-1a: both sides must get the same result
  for (const char c : discriminator) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return static_cast<uint16_t>(kFirstPort + (hash + attempt) % kPortRange);
}

sockaddr_storage socket_address(const std::string& host, uint16_t port) {
  sockaddr_storage storage{};
  if (host.size() == 4) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    std::memcpy(&v4->sin_addr, host.data(), 4);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    std::memcpy(&v6->sin6_addr, host.data(), 16);
  }
  return storage;
}

std::string host_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return std::string(reinterpret_cast<const char*>(&v4->sin_addr), 4);
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return std::string(reinterpret_cast<const char*>(&v6->sin6_addr), 16);
}

}  // namespace rocemu::vipl
