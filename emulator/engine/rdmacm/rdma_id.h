// The state of an rdma_cm id (struct rdma_cm_id in the kernel), and functions that depend on this
// state only
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/ucma.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/rdmacm/addresses/socket_addresses.h"
#include "wire/psn.h"

namespace rocemu::engine::cm {

using RdmaIdNumber = Id<struct RdmaIdTag>;

enum class IdState : uint8_t {
  kIdle,
  kBound,
  kResolvingAddress,
  kAddressResolved,
  kRouteResolved,
  kListening,
  kConnecting,  // or connected: the connection manager has the exact state
  kDisconnected,
  kRemoved,  // with its device: it can only be destroyed
};

/// A device, and the index of the address that is used on it
struct LocalAddress {
  DeviceIndex device;
  uint8_t gid_index = 0;
};

struct RdmaId {
  RdmaId(RdmaIdNumber n, CmChannelId c) : number(n), channel(c) {}

  RdmaIdNumber number;
  CmChannelId channel;
  /// The number that the program gave to the id. An id that a connect request created has 0 until
  /// the program accepts it; until then, the program gets no events of the id.
  uint64_t uid = 0;
  abi::ucma::PortSpace port_space{};
  abi::QpType qp_type{};
  IdState state = IdState::kIdle;

  SocketAddress source, destination;
  /// If true, `source` means every address: it is unspecified, or a loopback address that no device
  /// has (Linux's cma_any_addr).
  bool is_wildcard = false;
  std::optional<LocalAddress> local;  // none while only a wildcard address is known
  std::optional<Instant> deadline;    // kResolvingAddress: the time when the resolution ends
  uint32_t num_paths = 0;

  // The options of rdma_set_option(3)
  bool reuse_address = false;
  std::optional<bool> family_only_option;
  bool family_only = false;
  uint8_t traffic_class = 0;
  std::optional<uint8_t> ack_timeout;  // code

  std::optional<abi::ucma::PortSpace> bound_space;  // the port space of source.port
  uint32_t backlog = 0;                             // kListening: the maximum of unread requests
  uint32_t unread_requests = 0;                     // kListening
  std::optional<RdmaIdNumber> requested_of;  // the listener, until the program has read its event
  /// If true, the id has, or once had, a connection, a service ID resolution or a listener.
  bool was_known_to_manager = false;
  std::optional<ConnectionId> connection;
  wire::Psn starting_psn;  // of the peer's packets
  uint32_t qpn = 0;
  uint32_t qkey = 0;
  bool srq = false;

  bool is_datagram() const { return qp_type == abi::QpType::kUd; }
};

/// Returns the route of an id that has a device.
Route route_of(const RdmaId& id);

/// Returns the service ID (IBTA vol 1, annex A11) for an address that the id uses.
uint64_t service_id(const RdmaId& id, const SocketAddress& address);

/// Sets the Q_Key of the id. If `qkey` is 0 and the id has no Q_Key yet, sets the default of its
/// port space.
void choose_qkey(RdmaId& id, uint32_t qkey);

abi::ucma::AhAttr ah_attr(const Route& route, const wire::IpAddress& dgid);

}  // namespace rocemu::engine::cm
