// The messages of the connection manager (IBTA vol 1, 12.6 and 12.11): values, and the 232 bytes
// after the MAD header that carry them. Fields have the specification's names; time codes mean
// 4.096 us * 2^code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "wire/cm/mad.h"
#include "wire/ip_address.h"
#include "wire/psn.h"
#include "wire/result.h"

namespace rocemu::wire {

enum class CmAttribute : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1a,
};

/// The size in bytes of the additional information in a REJ, SIDR_REP or APR about a rejection, an
/// address or a path.
inline constexpr size_t kCmInfoSize = 72;
using CmInfo = std::array<uint8_t, kCmInfoSize>;

enum class CmTransport : uint8_t { kRc = 0, kUc = 1, kRd = 2, kExtended = 3 };
/// The extended transport type of XRC, in a message whose transport type is kExtended (annex A14).
inline constexpr uint8_t kCmExtendedXrc = 1;

/// The message to which a REJ or MRA refers.
enum class CmRejected : uint8_t { kReq = 0, kRep = 1, kNoMessage = 2 };
enum class CmMraed : uint8_t { kReq = 0, kRep = 1, kLap = 2 };

/// The reasons of a REJ (IBTA vol 1, 12.6.7.2). A message can contain any other 16-bit value, too.
enum class CmRejectReason : uint16_t {
  kNoQp = 1,
  kNoEec = 2,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupportedRequest = 5,
  kInvalidCommId = 6,
  kInvalidCommInstance = 7,
  kInvalidServiceId = 8,
  kInvalidTransportServiceType = 9,
  kStaleConnection = 10,
  kRdcDoesNotExist = 11,
  kPrimaryRemoteGid = 12,
  kPrimaryRemoteLid = 13,
  kInvalidPrimarySl = 14,
  kInvalidPrimaryTrafficClass = 15,
  kInvalidPrimaryHopLimit = 16,
  kInvalidPrimaryPacketRate = 17,
  kAlternateRemoteGid = 18,
  kAlternateRemoteLid = 19,
  kInvalidAlternateSl = 20,
  kInvalidAlternateTrafficClass = 21,
  kInvalidAlternateHopLimit = 22,
  kInvalidAlternatePacketRate = 23,
  kPortAndCmRedirection = 24,
  kPortRedirection = 25,
  kInvalidPathMtu = 26,
  kInsufficientResponderResources = 27,
  kConsumer = 28,
  kRnrRetryCount = 29,
  kDuplicateLocalCommId = 30,
  kInvalidClassVersion = 31,
  kInvalidPrimaryFlowLabel = 32,
  kInvalidAlternateFlowLabel = 33,
};

/// The status of a SIDR_REP (IBTA vol 1, 12.11.2.1).
enum class SidrStatus : uint8_t {
  kValid = 0,
  kServiceIdNotSupported = 1,
  kRejectedByProvider = 2,
  kNoQp = 3,
  kRedirect = 4,
  kVersionNotSupported = 5,
};

/// The status of an APR (IBTA vol 1, 12.8.2.1).
enum class AprStatus : uint8_t {
  kLoaded = 0,
  kInvalidCommInstance = 1,
  kNotSupported = 2,
  kRejected = 3,
  kRedirect = 4,
  kDuplicateReq = 5,
  kQpnMismatch = 6,
};

/// One path of a REQ or LAP.
struct CmPath {
  uint16_t local_lid = 0;
  uint16_t remote_lid = 0;
  IpAddress local_gid{};
  IpAddress remote_gid{};
  uint32_t flow_label = 0;  // 20 bits
  uint8_t packet_rate = 0;  // 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t sl = 0;  // 4 bits
  bool subnet_local = false;
  uint8_t local_ack_timeout = 0;  // 5 bits
  friend constexpr bool operator==(const CmPath&, const CmPath&) = default;
};

/// Request for communication.
struct CmReq {
  static constexpr CmAttribute kAttribute = CmAttribute::kReq;
  uint32_t local_comm_id = 0;
  uint64_t service_id = 0;
  uint64_t local_ca_guid = 0;
  uint32_t local_qkey = 0;
  uint32_t local_qpn = 0;  // 24 bits
  uint8_t responder_resources = 0;
  uint32_t local_eecn = 0;  // 24 bits
  uint8_t initiator_depth = 0;
  uint32_t remote_eecn = 0;                // 24 bits
  uint8_t remote_cm_response_timeout = 0;  // 5 bits: the time that the sender allows the recipient
  CmTransport transport = CmTransport::kRc;
  bool end_to_end_flow_control = false;
  Psn starting_psn{};
  uint8_t local_cm_response_timeout = 0;  // 5 bits: the time that the sender itself needs
  uint8_t retry_count = 0;                // 3 bits
  uint16_t pkey = 0;
  uint8_t path_mtu = 0;  // 4 bits: 1 to 5 for 256 to 4096 bytes
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  uint8_t extended_transport = 0;  // 3 bits
  CmPath primary{};
  CmPath alternate{};  // zero if there is none
  std::array<uint8_t, 92> private_data{};
  friend constexpr bool operator==(const CmReq&, const CmReq&) = default;
};

/// MRA, the message receipt acknowledgement: its sender needs more time to reply to a message.
struct CmMra {
  static constexpr CmAttribute kAttribute = CmAttribute::kMra;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmMraed message = CmMraed::kReq;
  uint8_t service_timeout = 0;  // 5 bits
  std::array<uint8_t, 222> private_data{};
  friend constexpr bool operator==(const CmMra&, const CmMra&) = default;
};

struct CmRej {
  static constexpr CmAttribute kAttribute = CmAttribute::kRej;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmRejected message = CmRejected::kReq;
  uint8_t info_length = 0;  // bytes of `info`, at most 72
  uint16_t reason = 0;      // CmRejectReason, or another value
  CmInfo info{};
  std::array<uint8_t, 148> private_data{};
  friend constexpr bool operator==(const CmRej&, const CmRej&) = default;
};

/// REP, the reply to a request for communication.
struct CmRep {
  static constexpr CmAttribute kAttribute = CmAttribute::kRep;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t local_qkey = 0;
  uint32_t local_qpn = 0;   // 24 bits
  uint32_t local_eecn = 0;  // 24 bits
  Psn starting_psn{};
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;   // 5 bits
  uint8_t failover_accepted = 0;  // 2 bits: 0 yes, 1 not supported, 2 rejected
  bool end_to_end_flow_control = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  uint64_t local_ca_guid = 0;
  std::array<uint8_t, 196> private_data{};
  friend constexpr bool operator==(const CmRep&, const CmRep&) = default;
};

/// Ready to use.
struct CmRtu {
  static constexpr CmAttribute kAttribute = CmAttribute::kRtu;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<uint8_t, 224> private_data{};
  friend constexpr bool operator==(const CmRtu&, const CmRtu&) = default;
};

/// DREQ, the request to release the communication.
struct CmDreq {
  static constexpr CmAttribute kAttribute = CmAttribute::kDreq;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t remote_qpn = 0;  // 24 bits: the recipient's
  std::array<uint8_t, 220> private_data{};
  friend constexpr bool operator==(const CmDreq&, const CmDreq&) = default;
};

struct CmDrep {
  static constexpr CmAttribute kAttribute = CmAttribute::kDrep;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<uint8_t, 224> private_data{};
  friend constexpr bool operator==(const CmDrep&, const CmDrep&) = default;
};

/// SIDR_REQ, which asks for the datagram QP that serves a service ID.
struct CmSidrReq {
  static constexpr CmAttribute kAttribute = CmAttribute::kSidrReq;
  uint32_t request_id = 0;
  uint16_t pkey = 0;
  uint64_t service_id = 0;
  std::array<uint8_t, 216> private_data{};
  friend constexpr bool operator==(const CmSidrReq&, const CmSidrReq&) = default;
};

struct CmSidrRep {
  static constexpr CmAttribute kAttribute = CmAttribute::kSidrRep;
  uint32_t request_id = 0;
  uint8_t status = 0;       // SidrStatus, or another value
  uint8_t info_length = 0;  // bytes of `info`, at most 72
  uint32_t qpn = 0;         // 24 bits
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  CmInfo info{};
  std::array<uint8_t, 136> private_data{};
  friend constexpr bool operator==(const CmSidrRep&, const CmSidrRep&) = default;
};

/// Load alternate path.
struct CmLap {
  static constexpr CmAttribute kAttribute = CmAttribute::kLap;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t remote_qpn = 0;                 // 24 bits: the recipient's
  uint8_t remote_cm_response_timeout = 0;  // 5 bits
  CmPath alternate{};
  std::array<uint8_t, 168> private_data{};
  friend constexpr bool operator==(const CmLap&, const CmLap&) = default;
};

/// Alternate path response.
struct CmApr {
  static constexpr CmAttribute kAttribute = CmAttribute::kApr;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint8_t info_length = 0;  // bytes of `info`, at most 72
  uint8_t status = 0;       // AprStatus, or another value
  CmInfo info{};
  std::array<uint8_t, 148> private_data{};
  friend constexpr bool operator==(const CmApr&, const CmApr&) = default;
};

using CmMessage = std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq,
                               CmSidrRep, CmLap, CmApr>;

CmAttribute attribute_of(const CmMessage& message);

struct CmMad {
  uint64_t transaction_id = 0;
  CmMessage message;
  friend constexpr bool operator==(const CmMad&, const CmMad&) = default;
};

/// Parses a MAD of the connection manager. Ignores reserved bits, the status and the attribute
/// modifier, which the method Send does not use.
Result<CmMad, MadError> parse_cm_mad(std::span<const uint8_t> bytes);
void emit(const CmMad& mad, std::span<uint8_t, kMadSize> bytes);

}  // namespace rocemu::wire
