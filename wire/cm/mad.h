// Management datagrams (IBTA vol 1, 13.4.2): the header that all classes have in common. A MAD is
// the 256-byte payload of a UD SEND Only packet to queue pair 1 (queue pair 0 does not exist on
// RoCE).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rocemu::wire {

inline constexpr size_t kMadSize = 256;
/// The queue pair of the general services, and its Q_Key (IBTA vol 1, 10.2.5).
inline constexpr uint32_t kGsiQpn = 1;
inline constexpr uint32_t kGsiQkey = 0x80010000;

inline constexpr uint8_t kMadBaseVersion = 1;
inline constexpr uint8_t kMadClassCm = 0x07;
inline constexpr uint8_t kCmClassVersion = 2;

/// The methods of MADs that rocemu uses (IBTA vol 1, 13.4.5).
enum class MadMethod : uint8_t {
  kGet = 0x01,
  kSet = 0x02,
  kSend = 0x03,
  kGetResp = 0x81,
};

/// The codes in bits 2 to 4 of a MAD's status (IBTA vol 1, 13.4.7).
enum class MadStatus : uint16_t {
  kBadVersion = 1 << 2,
  kMethodAttributeNotSupported = 3 << 2,
};

//  +---------------+---------------+---------------+-+-------------+
//  | base version  |  mgmt class   | class version |R|   method    |
//  +---------------+---------------+---------------+-+-------------+
//  |            status             |        class specific         |
//  +-------------------------------+-------------------------------+
//  |                      transaction ID (64)                      |
//  |                                                               |
//  +-------------------------------+-------------------------------+
//  |         attribute ID          |           reserved            |
//  +-------------------------------+-------------------------------+
//  |                      attribute modifier                       |
//  +---------------------------------------------------------------+
struct MadHeader {
  static constexpr size_t kSize = 24;
  uint8_t base_version = kMadBaseVersion;
  uint8_t mgmt_class = 0;
  uint8_t class_version = 0;
  uint8_t method = 0;  // with the response bit
  uint16_t status = 0;
  uint16_t class_specific = 0;
  uint64_t transaction_id = 0;
  uint16_t attribute_id = 0;
  uint32_t attribute_modifier = 0;
  friend constexpr bool operator==(const MadHeader&, const MadHeader&) = default;
};

/// The reason why bytes are not a MAD, or not a MAD of the connection manager.
enum class MadError : uint8_t {
  kTruncated,         // fewer than 256 bytes
  kTooLong,           // more than 256 bytes
  kBadBaseVersion,    // other than 1
  kNotCm,             // another management class
  kBadClassVersion,   // other than 2
  kBadMethod,         // other than Send
  kUnknownAttribute,  // not a message of the connection manager
  kReservedValue,     // a field whose value the specification reserves
  kBadLength,         // wrong length of the additional information
};
inline constexpr size_t kMadErrorCount = static_cast<size_t>(MadError::kBadLength) + 1;

/// Returns the name of the error, such as "mad_truncated".
std::string_view name(MadError error);

MadHeader parse_mad_header(std::span<const uint8_t, MadHeader::kSize> bytes);
void emit(const MadHeader& header, std::span<uint8_t, MadHeader::kSize> bytes);

}  // namespace rocemu::wire
