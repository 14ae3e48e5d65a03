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
    case ParseError::kTruncatedXrceth:
      return "truncated_xrceth";
    case ParseError::kTruncatedDeth:
      return "truncated_deth";
    case ParseError::kTruncatedFeth:
      return "truncated_feth";
    case ParseError::kTruncatedReth:
      return "truncated_reth";
    case ParseError::kTruncatedAtomicEth:
      return "truncated_atomic_eth";
    case ParseError::kTruncatedAeth:
      return "truncated_aeth";
    case ParseError::kTruncatedAtomicAckEth:
      return "truncated_atomic_ack_eth";
    case ParseError::kTruncatedImmDt:
      return "truncated_imm_dt";
    case ParseError::kTruncatedIeth:
      return "truncated_ieth";
    case ParseError::kTruncatedCnp:
      return "truncated_cnp";
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
