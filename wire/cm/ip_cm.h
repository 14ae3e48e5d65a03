// RDMA IP CM service (IBTA vol 1, annex A11): IP addresses and ports for the connection manager.
// The port is in the service ID; the addresses are in a header in front of the user's private data
// of REQ and SIDR_REQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/ip_address.h"
#include "wire/result.h"

namespace rocemu::wire {

/// An IP protocol number. In librdmacm's port spaces RDMA_PS_TCP and RDMA_PS_UDP, the low byte is
/// the protocol, and the next byte is 0x01.
enum class IpCmProtocol : uint8_t { kTcp = 0x06, kUdp = 0x11 };

/// Returns the service ID: the bytes 00 00 00 00 01, the protocol, the port.
constexpr uint64_t ip_cm_service_id(IpCmProtocol protocol, uint16_t port) {
  return 0x0000000001000000u | static_cast<uint64_t>(protocol) << 16 | port;
}

//  +-------+-------+-------+-------+-------------------------------+
//  | major | minor | IP v. | res.  |          source port          |
//  +-------+-------+-------+-------+-------------------------------+
//  |                      source address (128)                     |
//  +---------------------------------------------------------------+
//  |                    destination address (128)                  |
//  +---------------------------------------------------------------+
// An IPv4 address is in the last 4 of its 16 bytes, the others are zero.
struct IpCmHeader {
  static constexpr size_t kSize = 36;
  uint16_t source_port = 0;
  IpAddress source = IpAddress::from_v4(0, 0, 0, 0);  // both IPv4 or both IPv6
  IpAddress destination = IpAddress::from_v4(0, 0, 0, 0);
  friend constexpr bool operator==(const IpCmHeader&, const IpCmHeader&) = default;
};

enum class IpCmError : uint8_t {
  kBadMajorVersion,  // other than 0; minor versions are compatible
  kBadIpVersion,     // other than 4 and 6
};

Result<IpCmHeader, IpCmError> parse_ip_cm_header(std::span<const uint8_t, IpCmHeader::kSize> bytes);
void emit(const IpCmHeader& header, std::span<uint8_t, IpCmHeader::kSize> bytes);

}  // namespace rocemu::wire
