// librdmacm's side of the connection manager, as Linux's rdma_ucm and rdma_cm have it: event
// channels, rdma_cm ids, and the commands of abi/ucma.h. Below it the connection manager of the
// fabric exchanges the messages.
//
// The parts: rdma_cm.cc (ids, channels, the table of commands), addresses.cc (bind, resolve),
// connect_commands.cc (listen, connect, accept ...), manager_events.cc (what the connection manager
// tells), queries.cc, options.cc, multicast.cc, inspection.cc (for `rocemu show` and `rdma`).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/base/random.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/events.h"
#include "emulator/engine/fabric.h"
#include "emulator/engine/rdmacm/port_spaces.h"
#include "emulator/engine/rdmacm/rdma_id.h"
#include "emulator/engine/snapshot.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm {

class RdmaCm {
 public:
  static constexpr uint32_t kMaxIds = 1 << 18;
  static constexpr uint32_t kMaxGroups = 1 << 16;

  explicit RdmaCm(Fabric& fabric) : fabric_(fabric), random_(fabric.config().seed ^ kSeedMix) {}

  /// Events go there until the next step; ids whose resolution took too long hear of it.
  void begin_step(Outputs& outputs);
  /// Takes what the connection manager has to tell. True if it told something.
  bool handle_events();
  std::optional<Instant> next_deadline() const;
  /// By number of the id.
  std::vector<ListenerSnapshot> listeners() const;
  std::vector<RdmaIdSnapshot> ids() const;

  /// Tells all ids of the device.
  void remove_device(DeviceIndex device);
  /// Destroys all ids of the channel.
  void close(CmChannelId channel);
  CmReply execute(const CmCommand& command);

  /// An event by a rule, to every id that is bound to the device, or to any.
  void raise(abi::ucma::EventType type, int32_t status, std::optional<DeviceIndex> device);

 private:
  using Event = abi::ucma::EventResponse;
  using Param = abi::ucma::EventResponse::Param;

  static constexpr uint64_t kSeedMix = 0x72646d61'5f636d00;

  // ---- Commands: 0 or a positive errno value ----
  int dispatch(const CmCommand& command, std::vector<std::byte>& response);
  int create_id(const CmCommand& command, std::vector<std::byte>& response);
  int destroy_id(const CmCommand& command, std::vector<std::byte>& response);
  int migrate_id(const CmCommand& command, std::vector<std::byte>& response);
  int bind_ip(const CmCommand& command);
  int bind(const CmCommand& command);
  int resolve_ip(const CmCommand& command);
  int resolve_addr(const CmCommand& command);
  int resolve_route(const CmCommand& command);
  int query_route(const CmCommand& command, std::vector<std::byte>& response);
  int query(const CmCommand& command, std::vector<std::byte>& response);
  int connect(const CmCommand& command);
  int listen(const CmCommand& command);
  int accept(const CmCommand& command);
  int reject(const CmCommand& command);
  int disconnect(const CmCommand& command);
  int notify(const CmCommand& command);
  int request_was_read(const CmCommand& command);
  int init_qp_attr(const CmCommand& command, std::vector<std::byte>& response);
  int set_option(const CmCommand& command);
  int join_ip_mcast(const CmCommand& command, std::vector<std::byte>& response);
  int join_mcast(const CmCommand& command, std::vector<std::byte>& response);
  int leave_mcast(const CmCommand& command, std::vector<std::byte>& response);

  // ---- faults ----
  void judge_event(CmChannelId channel, Event event);

  // ---- Ids ----
  /// ENOENT: there is no such id; EINVAL: it is on another channel; ENXIO: its device was removed.
  int find(CmChannelId channel, uint32_t number, RdmaId*& id) const;
  /// And EINVAL if it has no device yet.
  int find_with_device(CmChannelId channel, uint32_t number, RdmaId*& id) const;
  RdmaId* new_id(CmChannelId channel);
  void destroy(RdmaId& id);
  /// Its port, and what the connection manager has of it.
  void let_go(RdmaId& id);

  // ---- addresses.cc ----
  int bind_to(RdmaId& id, const SocketAddress& address);
  int resolve(RdmaId& id, const std::optional<SocketAddress>& source,
              const SocketAddress& destination, uint32_t timeout_ms);
  void complete_resolution(RdmaId& id, uint32_t timeout_ms);
  void expire_resolutions();
  std::optional<LocalAddress> local_address(const wire::IpAddress& address) const;
  std::optional<LocalAddress> source_for(const SocketAddress& destination) const;
  std::optional<LocalAddress> first_address(Family family) const;
  bool may_be_outside(const RdmaId& id) const;
  const wire::IpAddress& address_of(const LocalAddress& local) const;
  void give_source(RdmaId& id, const LocalAddress& local);

  // ---- connect_commands.cc ----
  Route route_of(const RdmaId& id) const;
  uint64_t service_id(const RdmaId& id, const SocketAddress& address) const;
  /// The header of annex A11, if the family has one, and then the program's data.
  std::vector<uint8_t> request_data(const RdmaId& id, const abi::ucma::ConnParam& param) const;
  int start_listening(RdmaId& id);
  void stop_listening(RdmaId& id);
  /// The program has read of a request, or never will: it counts for the backlog no more.
  void leave_backlog(RdmaId& requested);
  int answer_datagram(RdmaId& id, wire::SidrStatus status, std::span<const uint8_t> data);
  void use_qkey(RdmaId& id, uint32_t qkey) const;
  int connect_datagram(RdmaId& id, const abi::ucma::ConnParam& param);
  int connect_stream(RdmaId& id, const abi::ucma::ConnParam& param);
  int accept_stream(RdmaId& id, const abi::ucma::ConnParam& param);

  // ---- manager_events.cc ----
  void handle(const cm::Event& event);
  void handle_request(const cm::Event& event);
  void handle_event_of(RdmaId& id, const cm::Event& event);
  void refuse(const cm::Event& event);
  /// Its number may be another connection's then.
  void forget_if_gone(RdmaId& id);
  /// With a header the one that listens at its destination, without one of AF_IB.
  RdmaId* listener_for(uint64_t service, const std::optional<wire::IpCmHeader>& header) const;

  // ---- queries.cc ----
  int query_address(const CmCommand& command, const RdmaId& id, abi::ucma::QueryKind kind,
                    std::vector<std::byte>& response);
  int query_path(const CmCommand& command, const RdmaId& id, std::vector<std::byte>& response);

  // ---- options.cc ----
  int set_id_option(RdmaId& id, abi::ucma::IdOption option, std::span<const std::byte> value);
  int set_path(RdmaId& id, std::span<const std::byte> value);

  // ---- multicast.cc ----
  int join(const CmCommand& command, uint32_t number, uint64_t uid, const SocketAddress& address,
           std::vector<std::byte>& response);

  // ---- Events ----
  void emit(const RdmaId& id, abi::ucma::EventType type, int32_t status = 0,
            const Param& param = {});
  void emit(CmChannelId channel, const Event& event);
  /// Behind what makes rdma_get_cm_event() fail, if a rule wants that.
  void deliver(CmChannelId channel, const Event& event);

  /// One listener of the connection manager for all ids that listen at a service ID.
  struct Service {
    ListenerId listener;
    std::vector<RdmaIdNumber> ids;
  };

  Fabric& fabric_;
  Random random_;
  Outputs* outputs_ = nullptr;
  Table<RdmaIdNumber, RdmaId> ids_{1, kMaxIds};
  Table<GroupNumber, Group> groups_{1, kMaxGroups};
  PortSpaces ports_;
  std::map<uint64_t, Service> services_;  // by service ID
  std::set<std::pair<Instant, RdmaIdNumber>> resolutions_;
};

/// The command's struct; nothing if it has fewer bytes than `least`.
template <class Struct>
std::optional<Struct> parse(const CmCommand& command, size_t least = sizeof(Struct)) {
  if (command.in.size() < least) return std::nullopt;
  Struct value{};
  std::memcpy(&value, command.in.data(), std::min(command.in.size(), sizeof value));
  return value;
}

/// Answers with as much of the struct as the program has room for.
template <class Struct>
void respond(const CmCommand& command, const Struct& value, std::vector<std::byte>& response) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  response.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                                                     bytes.size(), command.out_size)));
}

abi::ucma::AhAttr ah_attr(const Route& route, const wire::IpAddress& dgid);

}  // namespace rocemu::engine::cm
