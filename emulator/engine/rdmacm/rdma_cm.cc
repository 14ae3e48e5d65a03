#include "emulator/engine/rdmacm/rdma_cm.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/engine/faults/request_faults.h"

namespace rocemu::engine::cm {

using abi::ucma::Command;
using abi::ucma::PortSpace;

void RdmaCm::begin_step(Outputs& outputs) {
  outputs_ = &outputs;
  expire_resolutions();
}

bool RdmaCm::handle_events() {
  bool any = false;
  while (const auto event = fabric_.connections.next_event()) {
    handle(*event);
    any = true;
  }
  return any;
}

std::optional<Instant> RdmaCm::next_deadline() const {
  return resolutions_.empty() ? std::nullopt : std::optional(resolutions_.begin()->first);
}

void RdmaCm::close(CmChannelId channel) {
  ids_.for_each([&](RdmaId& id) {
    if (id.channel == channel) destroy(id);
  });
}

CmReply RdmaCm::execute(const CmCommand& command) {
  CmReply reply;
  reply.error = dispatch(command, reply.response);
  if (reply.error != 0) reply.response.clear();
  return reply;
}

int RdmaCm::dispatch(const CmCommand& command, std::vector<std::byte>& response) {
  switch (command.command) {
    case Command::kCreateId:
      return create_id(command, response);
    case Command::kDestroyId:
      return destroy_id(command, response);
    case Command::kBindIp:
      return bind_ip(command);
    case Command::kResolveIp:
      return resolve_ip(command);
    case Command::kResolveRoute:
      return resolve_route(command);
    case Command::kQueryRoute:
      return query_route(command, response);
    case Command::kConnect:
      return connect(command);
    case Command::kListen:
      return listen(command);
    case Command::kAccept:
      return accept(command);
    case Command::kReject:
      return reject(command);
    case Command::kDisconnect:
      return disconnect(command);
    case Command::kInitQpAttr:
      return init_qp_attr(command, response);
    case Command::kGetEvent:
      return request_was_read(command);
    case Command::kGetOption:
      return ENOSYS;
    case Command::kSetOption:
      return set_option(command);
    case Command::kNotify:
      return notify(command);
    case Command::kJoinIpMcast:
      return join_ip_mcast(command, response);
    case Command::kLeaveMcast:
      return leave_mcast(command, response);
    case Command::kMigrateId:
      return migrate_id(command, response);
    case Command::kQuery:
      return query(command, response);
    case Command::kBind:
      return bind(command);
    case Command::kResolveAddr:
      return resolve_addr(command);
    case Command::kJoinMcast:
      return join_mcast(command, response);
    case Command::kOpenChannel:
      return command.in.empty() ? 0 : EINVAL;
  }
  return EINVAL;  // a number that none of them has
}

// ---- Ids ------------------------------------------------------------------------------------

int RdmaCm::find(CmChannelId channel, uint32_t number, RdmaId*& id) const {
  id = ids_.find(RdmaIdNumber{number});
  if (id == nullptr) return ENOENT;
  if (id->channel != channel) return EINVAL;
  return id->state == IdState::kRemoved ? ENXIO : 0;
}

int RdmaCm::find_with_device(CmChannelId channel, uint32_t number, RdmaId*& id) const {
  if (const int error = find(channel, number, id)) return error;
  return id->local ? 0 : EINVAL;
}

RdmaId* RdmaCm::new_id(CmChannelId channel) {
  RdmaId* id = ids_.create(channel);
  if (id != nullptr) id->starting_psn = wire::Psn(static_cast<uint32_t>(random_.next()) & 0xffffff);
  return id;
}

int RdmaCm::create_id(const CmCommand& command, std::vector<std::byte>& response) {
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
  RdmaId* id = new_id(command.channel);
  if (id == nullptr) return ENOMEM;
  id->uid = in->uid;
  id->port_space = in->port_space;
  id->qp_type = qp_type;
  respond(command, abi::ucma::CreateIdResponse{id->number.value}, response);
  return 0;
}

int RdmaCm::destroy_id(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::DestroyId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  RdmaId* id;
  const int error = find(command.channel, in->id, id);
  if (error != 0 && error != ENXIO) return error;
  destroy(*id);
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

void RdmaCm::let_go(RdmaId& id) {
  leave_backlog(id);
  if (id.state == IdState::kListening) stop_listening(id);
  if (id.connection) fabric_.connections.destroy(*id.connection);
  id.connection.reset();
  if (id.deadline) resolutions_.erase({*id.deadline, id.number});
  id.deadline.reset();
  ports_.unbind(id);
}

// rdma_get_cm_event(3): "RDMA_CM_EVENT_DEVICE_REMOVAL The local RDMA device associated with the
// rdma_cm_id has been removed. Upon receiving this event, the user must destroy the related
// rdma_cm_id." Ids that listen at the wildcard belong to no device and go on.
void RdmaCm::remove_device(DeviceIndex device) {
  ids_.for_each([&](RdmaId& id) {
    if (id.state == IdState::kRemoved || !id.local || id.local->device != device) return;
    let_go(id);
    id.state = IdState::kRemoved;
    emit(id, abi::ucma::EventType::kDeviceRemoval);
  });
}

void RdmaCm::destroy(RdmaId& id) {
  let_go(id);
  groups_.for_each([&](Group& group) {
    if (group.id == id.number) groups_.destroy(group.number);
  });
  ids_.destroy(id.number);
}

int RdmaCm::migrate_id(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::MigrateId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  RdmaId* id;
  if (const int error = find(CmChannelId{in->fd}, in->id, id)) return error;
  id->channel = command.channel;
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

// ---- Events ---------------------------------------------------------------------------------

void RdmaCm::emit(const RdmaId& id, abi::ucma::EventType type, int32_t status, const Param& param) {
  if (id.uid == 0) return;  // not accepted yet: see RdmaId::uid
  Event event{};
  event.uid = id.uid;
  event.id = event.reserved = id.number.value;
  event.event = type;
  event.status = static_cast<uint32_t>(status);
  event.param = param;
  emit(id.channel, event);
}

void RdmaCm::emit(CmChannelId channel, const Event& event) {
  if (fabric_.faults.watches(faults::Where::kCmEvent)) [[unlikely]] {
    return judge_event(channel, event);
  }
  deliver(channel, event);
}

void RdmaCm::deliver(CmChannelId channel, const Event& event) {
  if (fabric_.faults.watches(faults::Where::kVerb)) [[unlikely]] {
    const CmCommand get{channel, Command::kGetEvent, {}, 0};
    if (const int error = faults::verb_fault(fabric_.faults, get)) {
      Event failure = event;  // of the same id, with which it is taken back
      failure.event = abi::ucma::EventType::kGetEventFailed;
      failure.status = static_cast<uint32_t>(error);
      outputs_->list.emplace_back(CmEvent{channel, std::make_shared<const Event>(failure)});
    }
  }
  outputs_->list.emplace_back(CmEvent{channel, std::make_shared<const Event>(event)});
}

}  // namespace rocemu::engine::cm
