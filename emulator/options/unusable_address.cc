#include "emulator/options/unusable_address.h"

#include <fmt/format.h>

namespace rocemu::options {

std::string why_unusable(const wire::IpAddress& address) {
  using wire::IpAddress;
  const bool is_unspecified =
      address == IpAddress{} || address == IpAddress::from_v4(0, 0, 0, 0);      // RFC 4291, 2.5.2
  const bool is_broadcast = address == IpAddress::from_v4(255, 255, 255, 255);  // RFC 919
  const char* const kind = is_unspecified           ? "the unspecified"
                           : is_broadcast           ? "the broadcast"
                           : address.is_multicast() ? "a multicast"
                                                    : nullptr;
  if (kind == nullptr) return "";
  return fmt::format("{} is {} address, which no NIC has; use a unicast address such as 10.0.0.1",
                     wire::to_string(address), kind);
}

}  // namespace rocemu::options
