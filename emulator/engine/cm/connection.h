// The state of a connection from its establishment to the end of its timewait, or the state of a
// service ID resolution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/cm/cm_events.h"
#include "wire/cm/cm_messages.h"
#include "wire/psn.h"

namespace rocemu::engine::cm {

/// The states of IBTA vol 1, 12.9. There are no separate states for MRA: a sent MRA is the latest
/// message sent, and a received MRA makes the deadline later.
enum class State : uint8_t {
  kReqSent,      // active: waits for REP
  kRepReceived,  // active: the consumer must answer
  kReqReceived,  // passive: the consumer must answer
  kRepSent,      // passive: waits for RTU
  kEstablished,
  kDreqSent,         // waits for DREP
  kDreqReceived,     // the consumer must answer
  kTimewait,         // packets of it may still be in flight
  kClosed,           // never established; kept to answer repeated messages
  kSidrReqSent,      // waits for SIDR_REP
  kSidrReqReceived,  // the consumer must answer
};

/// Returns the time that a code in a message of the connection manager means: 4.096 us * 2^code,
/// for codes 0 to 31 (IBTA vol 1, chapter 12).
constexpr Duration cm_time(uint8_t code) {
  return Duration(int64_t{4096} << (code & 31));
}

/// Returns the code of a QP's timeout: the sum of two packet lifetimes and the peer's delay,
/// rounded to a power of two. The parameters are codes, too. (The timer may take four times as
/// long: IBTA vol 1, 9.7.6.1.3.)
constexpr uint8_t ack_timeout_code(uint8_t packet_life_time, uint8_t ack_delay) {
  const int twice = packet_life_time + 1;
  const int longer = std::max<int>(twice, ack_delay);
  const int shorter = std::min<int>(twice, ack_delay);
  return static_cast<uint8_t>(std::min(31, longer + (longer - shorter <= 1 ? 1 : 0)));
}
constexpr uint8_t life_time_of(uint8_t local_ack_timeout) {
  return local_ack_timeout > 0 ? static_cast<uint8_t>(local_ack_timeout - 1) : uint8_t{0};
}

/// These two functions return the transaction IDs of a connection: one for the establishment or
/// resolution, and one for the release.
constexpr uint64_t establishment_transaction(ConnectionId id) {
  return uint64_t{1} << 32 | id.value;
}
constexpr uint64_t release_transaction(ConnectionId id) {
  return uint64_t{2} << 32 | id.value;
}

/// A peer's communication ID or QPN, which is unique only together with its CA GUID
using RemoteKey = std::pair<uint64_t, uint32_t>;
/// The address of the peer that requests the resolution of a service ID, and the ID of its request
using ResolverKey = std::pair<wire::IpAddress, uint32_t>;

struct Connection {
  Connection(ConnectionId i, State s) : id(i), state(s) {}

  ConnectionId id;
  State state;
  Context context = 0;
  bool orphan = false;  // the layer above has destroyed it: no events
  bool peer_to_peer = false;
  Route route;
  abi::QpType qp_type = abi::QpType::kRc;
  uint64_t service_id = 0;

  // Numbers that this side and the peer chose
  uint32_t local_qpn = 0;
  wire::Psn local_psn;   // of the first packet to receive
  wire::Psn remote_psn;  // of the first packet to send
  uint64_t remote_guid = 0;
  uint32_t remote_id = 0;  // its communication ID; 0 if unknown
  uint32_t remote_qpn = 0;

  // The values on which the messages agreed, from the point of view of this side
  uint8_t path_mtu = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t local_ack_timeout = 0;
  bool alternate_path_offered = false;

  // Members that are used only while this side waits for an answer
  uint8_t packet_life_time = 0;  // code
  uint8_t max_retries = 0;
  uint8_t retries_left = 0;
  Duration response_timeout{};
  std::optional<Instant> deadline;
  Duration timer{};  // its length, ending at the deadline

  uint64_t transaction_id = 0;  // of the establishment or resolution
  uint64_t release_id = 0;      // of the release
  wire::CmMad sent;             // the latest message

  // The keys by which the table finds the connection
  std::optional<RemoteKey> remote_id_key;
  std::optional<RemoteKey> remote_qpn_key;
  std::optional<ResolverKey> resolver_key;
};

}  // namespace rocemu::engine::cm
