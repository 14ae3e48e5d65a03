#include "emulator/engine/rdmacm/rdma_cm.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "emulator/engine/rdmacm/command_codec.h"
#include "emulator/engine/rdmacm/connect_commands.h"
#include "emulator/engine/rdmacm/connection_events.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_options.h"
#include "emulator/engine/rdmacm/init_qp_attr.h"
#include "emulator/engine/rdmacm/inspection.h"
#include "emulator/engine/rdmacm/queries.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::Command;
using abi::ucma::PortSpace;

int create_id(IdTable& ids, const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::CreateId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::CreateIdResponse)) return ENOSPC;
  abi::QpType qp_type{};
  switch (in->port_space) {
    case PortSpace::kTcp:
      qp_type = abi::QpType::kRc;
      break;
    case PortSpace::kUdp:
    case PortSpace::kIpoib:
      qp_type = abi::QpType::kUd;
      break;
    case PortSpace::kIb:
      qp_type = static_cast<abi::QpType>(in->qp_type);
      break;
    default:
      return EINVAL;
  }
  RdmaId* id = ids.create(command.channel);
  if (id == nullptr) return ENOMEM;
  id->uid = in->uid;
  id->port_space = in->port_space;
  id->qp_type = qp_type;
  respond(command, abi::ucma::CreateIdResponse{id->number.value}, response);
  return 0;
}

int migrate_id(const IdTable& ids, const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::MigrateId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  RdmaId* id;
  if (const int error = ids.find(CmChannelId{in->fd}, in->id, id)) return error;
  id->channel = command.channel;
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

/// Refuses rdma_resolve_addrinfo(3) with RAI_SA. It queries a subnet manager, which RoCE does not
/// have: Linux returns EOPNOTSUPP for a port without a subnet manager.
int resolve_ib_service(const IdTable& ids, const CmCommand& command) {
  const auto in = parse<abi::ucma::ResolveIbService>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  return id->local && id->state == IdState::kBound ? EOPNOTSUPP : EINVAL;
}

/// Implements rdma_write_cm_event(3). librdmacm also uses it: when it has resolved a name in a
/// thread (rdma_resolve_addrinfo(3)), it writes kInternal, and replaces this event by the one that
/// the program sees.
int write_event(const IdTable& ids, EventOutput& events, const CmCommand& command) {
  const auto in = parse<abi::ucma::WriteCmEvent>(command);
  if (!in) return EINVAL;
  if (in->event != abi::ucma::EventType::kUser && in->event != abi::ucma::EventType::kInternal)
    return EINVAL;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  EventOutput::Event::Param param{};
  std::memcpy(&param, &in->arg, sizeof in->arg);
  events.emit(*id, in->event, static_cast<int32_t>(in->status), param);
  return 0;
}

/// Returns whether the index of each row is the number of its command.
template <class Rows>
constexpr bool in_order(const Rows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].command) != i) return false;
  }
  return true;
}

}  // namespace

RdmaCm::RdmaCm(Environment& environment, ConnectionManager& connections,
               faults::FaultInjector& injector, uint64_t seed)
    : environment_(environment),
      connections_(connections),
      ids_(seed),
      events_(injector, ids_),
      binding_(ids_, environment_),
      resolution_(ids_, binding_, environment_, events_),
      listening_(ids_, binding_, connections_),
      joins_(ids_, events_),
      requests_(ids_, listening_, connections_, environment_, events_) {}

void RdmaCm::begin_step(Outputs& outputs) {
  events_.begin_step(outputs);
  resolution_.expire();
}

bool RdmaCm::handle_events() {
  bool any = false;
  while (const auto event = connections_.next_event()) {
    any = true;
    if (event->kind == EventKind::kRequest || event->kind == EventKind::kResolveRequest) {
      requests_.handle(*event);
      continue;
    }
    RdmaId* id = ids_.find(RdmaIdNumber{static_cast<uint32_t>(event->context)});
    if (id != nullptr && id->connection == event->connection) {
      handle_connection_event(*id, connections_, events_, *event);
    }
  }
  return any;
}

std::vector<ListenerSnapshot> RdmaCm::listeners() const {
  return listeners_of(ids_);
}

std::vector<RdmaIdSnapshot> RdmaCm::ids() const {
  return snapshots_of(ids_);
}

// ---- Commands -------------------------------------------------------------------------------

CmReply RdmaCm::execute(const CmCommand& command) {
  CmReply reply;
  reply.error = dispatch(command, reply.response);
  if (reply.error != 0) reply.response.clear();
  return reply;
}

int RdmaCm::dispatch(const CmCommand& command, Response& response) {
  using namespace commands;
  struct Call {
    RdmaCm& m;
    const CmCommand& in;
    Response& out;
  };
  struct Row {
    Command command;
    int (*execute)(Call);
  };
  static constexpr std::array<Row, abi::ucma::kCommands> kRows = {{
      {Command::kCreateId, [](Call c) { return create_id(c.m.ids_, c.in, c.out); }},
      {Command::kDestroyId, [](Call c) { return c.m.destroy_id(c.in, c.out); }},
      {Command::kBindIp, [](Call c) { return c.m.binding_.bind_ip(c.in); }},
      {Command::kResolveIp, [](Call c) { return c.m.resolution_.resolve_ip(c.in); }},
      {Command::kResolveRoute, [](Call c) { return c.m.resolution_.resolve_route(c.in); }},
      {Command::kQueryRoute,
       [](Call c) { return query_route(c.m.ids_, c.m.environment_, c.in, c.out); }},
      {Command::kConnect,
       [](Call c) { return connect(c.m.ids_, c.m.connections_, c.m.environment_, c.in); }},
      {Command::kListen, [](Call c) { return c.m.listening_.listen(c.in); }},
      {Command::kAccept, [](Call c) { return accept(c.m.ids_, c.m.connections_, c.in); }},
      {Command::kReject, [](Call c) { return reject(c.m.ids_, c.m.connections_, c.in); }},
      {Command::kDisconnect, [](Call c) { return disconnect(c.m.ids_, c.m.connections_, c.in); }},
      {Command::kInitQpAttr,
       [](Call c) { return init_qp_attr(c.m.ids_, c.m.connections_, c.in, c.out); }},
      {Command::kGetEvent, [](Call c) { return c.m.listening_.request_was_read(c.in); }},
      {Command::kGetOption, [](Call) { return ENOSYS; }},
      {Command::kSetOption, [](Call c) { return set_option(c.m.ids_, c.m.events_, c.in); }},
      {Command::kNotify, [](Call c) { return notify(c.m.ids_, c.m.connections_, c.in); }},
      {Command::kJoinIpMcast, [](Call c) { return c.m.joins_.join_ip(c.in, c.out); }},
      {Command::kLeaveMcast, [](Call c) { return c.m.joins_.leave(c.in, c.out); }},
      {Command::kMigrateId, [](Call c) { return migrate_id(c.m.ids_, c.in, c.out); }},
      {Command::kQuery, [](Call c) { return query(c.m.ids_, c.m.environment_, c.in, c.out); }},
      {Command::kBind, [](Call c) { return c.m.binding_.bind(c.in); }},
      {Command::kResolveAddr, [](Call c) { return c.m.resolution_.resolve_addr(c.in); }},
      {Command::kJoinMcast, [](Call c) { return c.m.joins_.join(c.in, c.out); }},
      {Command::kResolveIbService, [](Call c) { return resolve_ib_service(c.m.ids_, c.in); }},
      {Command::kWriteCmEvent, [](Call c) { return write_event(c.m.ids_, c.m.events_, c.in); }},
      {Command::kOpenChannel, [](Call c) { return c.in.in.empty() ? 0 : EINVAL; }},
  }};
  static_assert(in_order(kRows));
  const auto number = static_cast<size_t>(command.command);
  if (number >= kRows.size()) return EINVAL;  // a number that no command has
  return kRows[number].execute({*this, command, response});
}

int RdmaCm::destroy_id(const CmCommand& command, Response& response) {
  const auto in = parse<abi::ucma::DestroyId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  RdmaId* id;
  const int error = ids_.find(command.channel, in->id, id);
  if (error != 0 && error != ENXIO) return error;
  destroy(*id);
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

// ---- Destruction of ids ---------------------------------------------------------------------

void RdmaCm::close(CmChannelId channel) {
  ids_.for_each([&](RdmaId& id) {
    if (id.channel == channel) destroy(id);
  });
}

// Notifies the ids of a removed device. rdma_get_cm_event(3): "RDMA_CM_EVENT_DEVICE_REMOVAL The
// local RDMA device associated with the rdma_cm_id has been removed. Upon receiving this event, the
// user must destroy the related rdma_cm_id." Ids that listen on the wildcard belong to no device
// and continue.
void RdmaCm::remove_device(DeviceIndex device) {
  ids_.for_each([&](RdmaId& id) {
    if (id.state == IdState::kRemoved || !id.local || id.local->device != device) return;
    release(id);
    id.state = IdState::kRemoved;
    events_.emit(id, abi::ucma::EventType::kDeviceRemoval);
  });
}

void RdmaCm::destroy(RdmaId& id) {
  release(id);
  joins_.leave_all(id);
  ids_.destroy(id);
}

void RdmaCm::release(RdmaId& id) {
  listening_.leave_backlog(id);
  if (id.state == IdState::kListening) listening_.stop(id);
  if (id.connection) connections_.destroy(*id.connection);
  id.connection.reset();
  resolution_.cancel(id);
  binding_.unbind(id);
}

}  // namespace rocemu::engine::cm
