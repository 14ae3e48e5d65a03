// Listening, connecting and what follows: the commands that become calls of the connection manager.
// States and errors as in Linux's rdma_cm.
#include <algorithm>
#include <cerrno>

#include "emulator/engine/rdmacm/rdma_cm.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::ConnParam;
using abi::ucma::PortSpace;

constexpr uint32_t kMaxBacklog = 1024;
constexpr uint32_t kUdpQkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr uint32_t kQpnMask = 0xffffff;
constexpr uint8_t kMaxRetries = 7;
constexpr uint8_t kRejectConsumer = static_cast<uint8_t>(wire::CmRejectReason::kConsumer);
constexpr uint8_t kRejectVendorOption = 35;
constexpr uint32_t kCommEst = static_cast<uint32_t>(abi::EventType::kCommEst);

std::span<const uint8_t> data_of(const ConnParam& param) {
  return {param.private_data, param.private_data_len};
}

abi::ucma::QpAttrResponse response_of(const QpAttributes& attributes, const Route& route) {
  const abi::QpAttr& attr = attributes.attr;
  abi::ucma::QpAttrResponse out{};
  out.qp_attr_mask = attributes.mask;
  out.qp_state = attr.qp_state;
  out.cur_qp_state = attr.cur_qp_state;
  out.path_mtu = attr.path_mtu;
  out.path_mig_state = attr.path_mig_state;
  out.qkey = attr.qkey;
  out.rq_psn = attr.rq_psn;
  out.sq_psn = attr.sq_psn;
  out.dest_qp_num = attr.dest_qp_num;
  out.qp_access_flags = attr.qp_access_flags;
  if ((attributes.mask & abi::kAttrAv) != 0) {
    wire::IpAddress dgid;
    std::copy(std::begin(attr.ah_attr.dgid), std::end(attr.ah_attr.dgid), dgid.bytes.begin());
    out.ah_attr = ah_attr(route, dgid);
    out.ah_attr.sgid_index = attr.ah_attr.sgid_index;
    out.ah_attr.hop_limit = attr.ah_attr.hop_limit;
    out.ah_attr.traffic_class = attr.ah_attr.traffic_class;
    out.ah_attr.flow_label = attr.ah_attr.flow_label;
  }
  out.pkey_index = attr.pkey_index;
  out.max_rd_atomic = attr.max_rd_atomic;
  out.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  out.min_rnr_timer = attr.min_rnr_timer;
  out.port_num = attr.port_num;
  out.timeout = attr.timeout;
  out.retry_cnt = attr.retry_cnt;
  out.rnr_retry = attr.rnr_retry;
  return out;
}

}  // namespace

abi::ucma::AhAttr ah_attr(const Route& route, const wire::IpAddress& dgid) {
  abi::ucma::AhAttr attr{};
  std::copy(dgid.bytes.begin(), dgid.bytes.end(), attr.dgid);
  attr.flow_label = route.flow_label;
  attr.sgid_index = route.gid_index;
  attr.hop_limit = route.hop_limit;
  attr.traffic_class = route.traffic_class;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

Route RdmaCm::route_of(const RdmaId& id) const {
  Route route;
  route.device = id.local->device;
  route.gid_index = id.local->gid_index;
  route.remote = id.destination.address;
  route.traffic_class = id.traffic_class;
  return route;
}

uint64_t RdmaCm::service_id(const RdmaId& id, const SocketAddress& address) const {
  if (address.family == Family::kIb) return address.service | address.port;
  return service_prefix(id.port_space) | address.port;
}

// ---- Listening ------------------------------------------------------------------------------

int RdmaCm::listen(const CmCommand& command) {
  const auto in = parse<abi::ucma::Listen>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  if (id->state == IdState::kIdle) {
    if (const int error = bind_to(*id, any_address(Family::kIpv4))) return error;
  }
  if (id->state != IdState::kBound) return EINVAL;
  if (id->reuse_address) {
    if (const int error = ports_.check_listen(*id)) return error;
  }
  const bool usable = in->backlog > 0 && in->backlog <= kMaxBacklog;
  id->backlog = usable ? in->backlog : kMaxBacklog;
  return start_listening(*id);
}

int RdmaCm::start_listening(RdmaId& id) {
  const uint64_t service = service_id(id, id.source);
  const auto found = services_.find(service);
  if (found == services_.end()) {
    Listen listen;
    listen.service_id = service;
    const auto listener = fabric_.connections.listen(listen);
    if (!listener) return listener.error();
    services_.emplace(service, Service{*listener, {id.number}});
  } else {
    found->second.ids.push_back(id.number);
  }
  id.was_known_to_manager = true;
  id.state = IdState::kListening;
  return 0;
}

void RdmaCm::stop_listening(RdmaId& id) {
  if (id.unread_requests > 0) {
    ids_.for_each([&](RdmaId& requested) {
      if (requested.requested_of == id.number) requested.requested_of.reset();
    });
  }
  const auto found = services_.find(service_id(id, id.source));
  if (found == services_.end()) return;
  std::erase(found->second.ids, id.number);
  if (!found->second.ids.empty()) return;
  fabric_.connections.stop_listening(found->second.listener);
  services_.erase(found);
}

void RdmaCm::leave_backlog(RdmaId& requested) {
  if (!requested.requested_of) return;
  RdmaId* listener = ids_.find(*requested.requested_of);
  requested.requested_of.reset();
  if (listener != nullptr && listener->unread_requests > 0) --listener->unread_requests;
}

int RdmaCm::request_was_read(const CmCommand& command) {
  const auto in = parse<abi::ucma::RequestRead>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  leave_backlog(*id);
  return 0;
}

// ---- Connecting -----------------------------------------------------------------------------

int RdmaCm::connect(const CmCommand& command) {
  const auto in = parse<abi::ucma::Connect>(command, offsetof(abi::ucma::Connect, ece));
  if (!in || in->param.valid == 0) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  if (id->state != IdState::kRouteResolved) return EINVAL;
  id->qpn = in->param.qp_num & kQpnMask;
  id->srq = in->param.srq != 0;
  const int error =
      id->is_datagram() ? connect_datagram(*id, in->param) : connect_stream(*id, in->param);
  if (error != 0) return error;
  id->was_known_to_manager = true;
  id->state = IdState::kConnecting;
  return 0;
}

std::vector<uint8_t> RdmaCm::request_data(const RdmaId& id, const ConnParam& param) const {
  std::vector<uint8_t> data;
  if (id.source.family != Family::kIb) {
    wire::IpCmHeader header;
    header.source_port = id.source.port;
    header.source = id.source.address;
    header.destination = id.destination.address;
    data.resize(wire::IpCmHeader::kSize);
    wire::emit(header, std::span(data).first<wire::IpCmHeader::kSize>());
  }
  const auto users = data_of(param);
  data.insert(data.end(), users.begin(), users.end());
  return data;
}

int RdmaCm::connect_stream(RdmaId& id, const ConnParam& param) {
  const std::vector<uint8_t> data = request_data(id, param);
  Connect request;
  request.route = route_of(id);
  request.service_id = service_id(id, id.destination);
  request.context = id.number.value;
  request.qp_type = id.qp_type;
  request.qpn = QpNumber{id.qpn};
  request.starting_psn = id.starting_psn.value();
  request.srq = id.srq;
  request.flow_control = param.flow_control != 0;
  request.responder_resources = param.responder_resources;
  request.initiator_depth = param.initiator_depth;
  request.retry_count = std::min(param.retry_count, kMaxRetries);
  request.rnr_retry_count = std::min(param.rnr_retry_count, kMaxRetries);
  request.path_mtu = fabric_.objects.devices[id.local->device].config.active_mtu;
  if (id.ack_timeout) request.local_ack_timeout = *id.ack_timeout;
  request.private_data = data;
  const auto connection = fabric_.connections.connect(request);
  if (!connection) return connection.error();
  id.connection = *connection;
  return 0;
}

int RdmaCm::connect_datagram(RdmaId& id, const ConnParam& param) {
  const std::vector<uint8_t> data = request_data(id, param);
  Resolve request;
  request.route = route_of(id);
  request.service_id = service_id(id, id.destination);
  request.context = id.number.value;
  request.private_data = data;
  const auto resolution = fabric_.connections.resolve(request);
  if (!resolution) return resolution.error();
  id.connection = *resolution;
  return 0;
}

// ---- Answering ------------------------------------------------------------------------------

int RdmaCm::accept(const CmCommand& command) {
  const auto in = parse<abi::ucma::Accept>(command, offsetof(abi::ucma::Accept, ece));
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  if (id->state != IdState::kConnecting) return EINVAL;
  const bool has_param = in->param.valid != 0;
  if (has_param) {
    id->qpn = in->param.qp_num & kQpnMask;
    id->srq = in->param.srq != 0;
  }
  int error = 0;
  if (id->is_datagram()) {
    use_qkey(*id, has_param && id->source.family == Family::kIb ? in->param.qkey : 0);
    error = answer_datagram(*id, wire::SidrStatus::kValid,
                            has_param ? data_of(in->param) : std::span<const uint8_t>{});
  } else if (!id->connection) {
    error = EINVAL;
  } else if (has_param) {
    error = accept_stream(*id, in->param);
  } else {
    error = fabric_.connections.ready(*id->connection);
  }
  if (error == 0) {
    if (has_param) id->uid = in->uid;
  } else if (id->connection) {
    // As rdma_accept does: a side that cannot accept has refused.
    if (id->is_datagram()) {
      answer_datagram(*id, wire::SidrStatus::kRejectedByProvider, {});
    } else {
      fabric_.connections.reject(*id->connection);
    }
  }
  return error;
}

int RdmaCm::accept_stream(RdmaId& id, const ConnParam& param) {
  Accept answer;
  answer.qpn = QpNumber{id.qpn};
  answer.starting_psn = id.starting_psn.value();
  answer.srq = id.srq;
  answer.flow_control = param.flow_control != 0;
  answer.responder_resources = param.responder_resources;
  answer.initiator_depth = param.initiator_depth;
  answer.rnr_retry_count = std::min(param.rnr_retry_count, kMaxRetries);
  answer.private_data = data_of(param);
  return fabric_.connections.accept(*id.connection, answer);
}

void RdmaCm::use_qkey(RdmaId& id, uint32_t qkey) const {
  const bool has_default = id.port_space == PortSpace::kUdp || id.port_space == PortSpace::kIb;
  if (qkey != 0) {
    id.qkey = qkey;
  } else if (id.qkey == 0 && has_default) {
    id.qkey = kUdpQkey;
  }
}

int RdmaCm::answer_datagram(RdmaId& id, wire::SidrStatus status, std::span<const uint8_t> data) {
  if (!id.connection) return EINVAL;
  Resolved answer;
  answer.status = status;
  if (status == wire::SidrStatus::kValid) {
    answer.qpn = QpNumber{id.qpn};
    answer.qkey = id.qkey;
  }
  answer.private_data = data;
  const int error = fabric_.connections.answer_resolve(*id.connection, answer);
  if (error == 0) id.connection.reset();
  return error;
}

int RdmaCm::reject(const CmCommand& command) {
  const auto in = parse<abi::ucma::Reject>(command);
  if (!in) return EINVAL;
  const uint8_t reason = in->reason != 0 ? in->reason : kRejectConsumer;
  if (reason != kRejectConsumer && reason != kRejectVendorOption) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  if (!id->connection) return EINVAL;
  const std::span data(in->private_data, in->private_data_len);
  if (id->is_datagram()) {
    return answer_datagram(*id, wire::SidrStatus::kRejectedByProvider, data);
  }
  Reject answer;
  answer.reason = reason;
  answer.private_data = data;
  return fabric_.connections.reject(*id->connection, answer);
}

// ---- Established and after ------------------------------------------------------------------

int RdmaCm::notify(const CmCommand& command) {
  const auto in = parse<abi::ucma::Notify>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find(command.channel, in->id, id)) return error;
  if (!id->local || !id->connection || id->is_datagram() || in->event != kCommEst) return EINVAL;
  return fabric_.connections.notify_established(*id->connection);
}

int RdmaCm::disconnect(const CmCommand& command) {
  const auto in = parse<abi::ucma::Disconnect>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  if (!id->was_known_to_manager) return EINVAL;
  // Whether there is anything to release is not the program's business: 0 in every state.
  if (id->connection && !id->is_datagram() &&
      fabric_.connections.disconnect(*id->connection) != 0) {
    fabric_.connections.answer_disconnect(*id->connection);
  }
  return 0;
}

int RdmaCm::init_qp_attr(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::InitQpAttr>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::QpAttrResponse)) return ENOSPC;
  if (in->qp_state > static_cast<uint32_t>(abi::QpState::kErr)) return EINVAL;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, in->id, id)) return error;
  const auto to = static_cast<abi::QpState>(in->qp_state);
  QpAttributes attributes;
  if (id->was_known_to_manager && !id->is_datagram()) {
    if (!id->connection) return EINVAL;
    const auto known = fabric_.connections.qp_attributes(*id->connection, to);
    if (!known) return known.error();
    attributes = *known;
    // What REQ or REP tells the peer to start with, told or not.
    if (to == abi::QpState::kRtr) attributes.attr.rq_psn = id->starting_psn.value();
    if ((attributes.mask & abi::kAttrTimeout) != 0 && id->ack_timeout) {
      attributes.attr.timeout = *id->ack_timeout;
    }
  } else {
    attributes.mask = abi::kAttrPkeyIndex | abi::kAttrPort;
    attributes.attr.port_num = 1;
    if (id->is_datagram()) {
      use_qkey(*id, 0);
      attributes.attr.qkey = id->qkey;
      attributes.mask |= abi::kAttrQkey;
    } else {
      attributes.mask |= abi::kAttrAccessFlags;
    }
  }
  attributes.mask |= abi::kAttrState;
  attributes.attr.qp_state = in->qp_state;
  respond(command, response_of(attributes, route_of(*id)), response);
  return 0;
}

}  // namespace rocemu::engine::cm
