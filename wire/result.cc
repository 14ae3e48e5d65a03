#include "wire/result.h"

namespace rocemu::wire {

std::string_view name(ParseError error) {
  switch (error) {
    case ParseError::kTruncatedEthernet:
      return "truncated_ethernet";
    case ParseError::kTruncatedIpv4:
      return "truncated_ipv4";
    case ParseError::kTruncatedIpv6:
      return "truncated_ipv6";
    case ParseError::kTruncatedIpPayload:
      return "truncated_ip_payload";
    case ParseError::kTruncatedUdp:
      return "truncated_udp";
    case ParseError::kTruncatedBth:
      return "truncated_bth";
#define ROCEMU_TRUNCATED(header, Type, member, header_name) \
  case ParseError::kTruncated##Type:                        \
    return "truncated_" #header_name;
      ROCEMU_EXTENDED_HEADERS(ROCEMU_TRUNCATED)
#undef ROCEMU_TRUNCATED
    case ParseError::kTruncatedIcrc:
      return "truncated_icrc";
    case ParseError::kNotIp:
      return "not_ip";
    case ParseError::kBadIpHeader:
      return "bad_ip_header";
    case ParseError::kBadIpChecksum:
      return "bad_ip_checksum";
    case ParseError::kFragmented:
      return "fragmented";
    case ParseError::kNotUdp:
      return "not_udp";
    case ParseError::kBadLength:
      return "bad_length";
    case ParseError::kNotRoce:
      return "not_roce";
    case ParseError::kBadTransportVersion:
      return "bad_transport_version";
    case ParseError::kUnknownOpcode:
      return "unknown_opcode";
    case ParseError::kBadPad:
      return "bad_pad";
    case ParseError::kUnexpectedPayload:
      return "unexpected_payload";
    case ParseError::kBadIcrc:
      return "bad_icrc";
  }
  return "invalid_parse_error";
}

}  // namespace rocemu::wire
