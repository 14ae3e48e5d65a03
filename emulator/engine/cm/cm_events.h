// The calls and events of the connection manager
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/ids.h"
#include "wire/cm/cm_messages.h"
#include "wire/ip_address.h"

namespace rocemu::engine::cm {

/// The ID of a connection or a service ID resolution. Its value is the local communication ID on
/// the wire, which is unique in the whole fabric and never 0.
using ConnectionId = Id<struct ConnectionTag>;
using ListenerId = Id<struct ListenerTag>;

/// A value that the layer above chooses for a connection or listener. Each event contains it.
using Context = uint64_t;

/// The ports of a connection, and the header fields of the frames that carry its MADs and its data.
struct Route {
  DeviceIndex device = {};
  uint8_t gid_index = 0;  // of the device; its address is the source
  wire::IpAddress remote{};
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint32_t flow_label = 0;  // 20 bits
  friend constexpr bool operator==(const Route&, const Route&) = default;
};

struct Listen {
  uint64_t service_id = 0;
  /// The device and address at which the consumer listens. Without a device, it listens on every
  /// device; without an address, at every address. If several listeners fit a request, the most
  /// specific one gets it: a listener with an address first, then one with only a device, then one
  /// with neither.
  std::optional<DeviceIndex> device = std::nullopt;
  std::optional<wire::IpAddress> address = std::nullopt;
  Context context = 0;
};

/// A request for a connection: the fields of REQ that the consumer chooses
struct Connect {
  Route route = {};
  uint64_t service_id = 0;
  Context context = 0;
  abi::QpType qp_type = abi::QpType::kRc;  // RC, UC or XRC (send or receive, the same on the wire)
  QpNumber qpn = {};
  uint32_t qkey = 0;
  std::optional<uint32_t> starting_psn = std::nullopt;  // else from the seed
  bool srq = false;
  bool flow_control = true;
  uint8_t responder_resources = 1;
  uint8_t initiator_depth = 1;
  uint8_t retry_count = 7;
  uint8_t rnr_retry_count = 7;
  abi::Mtu path_mtu = abi::Mtu::k1024;
  uint8_t local_ack_timeout = 19;              // code; the packet lifetime is one less
  uint8_t response_timeout = 20;               // code; the time for either side's reply: 4.3 s
  uint8_t max_retries = 15;                    // 0 to 15
  bool peer_to_peer = false;                   // IBTA vol 1, 12.10.4
  std::span<const uint8_t> private_data = {};  // at most 92 bytes; the rest is zero
};

/// The fields of REP that the consumer chooses
struct Accept {
  QpNumber qpn = {};
  uint32_t qkey = 0;
  std::optional<uint32_t> starting_psn = std::nullopt;
  bool srq = false;
  bool flow_control = true;
  uint8_t responder_resources = 1;
  uint8_t initiator_depth = 1;
  uint8_t rnr_retry_count = 7;
  uint8_t target_ack_delay = 15;               // code
  std::span<const uint8_t> private_data = {};  // at most 196 bytes
};

struct Reject {
  uint16_t reason = static_cast<uint16_t>(wire::CmRejectReason::kConsumer);
  std::span<const uint8_t> info = {};          // at most 72 bytes
  std::span<const uint8_t> private_data = {};  // at most 148 bytes
};

/// A service ID resolution request.
struct Resolve {
  Route route = {};
  uint64_t service_id = 0;
  Context context = 0;
  uint8_t response_timeout = 20;  // code
  uint8_t packet_life_time = 18;  // code
  uint8_t max_retries = 15;
  std::span<const uint8_t> private_data = {};  // at most 216 bytes
};

/// The reply to a service ID resolution request
struct Resolved {
  wire::SidrStatus status = wire::SidrStatus::kValid;
  QpNumber qpn = {};
  uint32_t qkey = 0;
  std::span<const uint8_t> info = {};          // at most 72 bytes
  std::span<const uint8_t> private_data = {};  // at most 136 bytes
};

enum class EventKind : uint8_t {
  // Events of the passive side
  kRequest,      // REQ, for `listener`; `connection` is new: answer with accept, reject or destroy
  kEstablished,  // RTU, or notify_established() without a message
  kReplyError,   // no RTU arrived for the REP
  // Events of the active side
  kReply,         // REP: answer with ready, reject or destroy
  kRequestError,  // no reply to the REQ arrived
  kRemoteMra,     // MRA: the peer needs more time
  // Events of either side
  kRejected,  // REJ
  /// DREQ. The consumer must answer with answer_disconnect or destroy, unless this side had sent
  /// its DREQ before (`answered`).
  kDisconnectRequest,
  kDisconnectReply,       // DREP
  kDisconnectError,       // no reply to the DREQ arrived
  kTimewaitExit,          // the QP may be reused; the connection's ID no longer exists
  kAlternatePathRequest,  // LAP, which was refused already
  // Events of service ID resolution
  kResolveRequest,  // SIDR_REQ, for `listener`; answer with answer_resolve or destroy
  kResolveReply,    // SIDR_REP; the ID no longer exists
  kResolveError,    // no reply; the ID no longer exists
};

struct Event {
  EventKind kind{};
  ConnectionId connection = {};
  /// The context of the connection; for kRequest and kResolveRequest, that of the listener.
  Context context = 0;
  /// The listener that got the request; set for kRequest and kResolveRequest only.
  std::optional<ListenerId> listener = std::nullopt;
  Route route = {};
  bool answered = false;  // kDisconnectRequest: DREP was sent already
  /// The message that caused the event, if one did.
  std::optional<wire::CmMessage> message = std::nullopt;
};

}  // namespace rocemu::engine::cm
