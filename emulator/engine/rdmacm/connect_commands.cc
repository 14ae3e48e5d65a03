#include "emulator/engine/rdmacm/connect_commands.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "emulator/engine/rdmacm/command_codec.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm::commands {
namespace {

using abi::ucma::ConnParam;

constexpr uint32_t kQpnMask = 0xffffff;
constexpr uint8_t kMaxRetries = 7;
constexpr uint8_t kRejectConsumer = static_cast<uint8_t>(wire::CmRejectReason::kConsumer);
constexpr uint8_t kRejectVendorOption = 35;
constexpr uint32_t kCommEst = static_cast<uint32_t>(abi::EventType::kCommEst);

std::span<const uint8_t> data_of(const ConnParam& param) {
  return {param.private_data, param.private_data_len};
}

/// Returns the private data of a request: the header of annex A11, except for AF_IB, followed by
/// the program's data.
std::vector<uint8_t> request_data(const RdmaId& id, const ConnParam& param) {
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

int connect_stream(ConnectionManager& connections, const Environment& environment, RdmaId& id,
                   const ConnParam& param) {
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
  request.path_mtu = environment.config(id.local->device).active_mtu;
  if (id.ack_timeout) request.local_ack_timeout = *id.ack_timeout;
  request.private_data = data;
  const auto connection = connections.connect(request);
  if (!connection) return connection.error();
  id.connection = *connection;
  return 0;
}

int connect_datagram(ConnectionManager& connections, RdmaId& id, const ConnParam& param) {
  const std::vector<uint8_t> data = request_data(id, param);
  Resolve request;
  request.route = route_of(id);
  request.service_id = service_id(id, id.destination);
  request.context = id.number.value;
  request.private_data = data;
  const auto resolution = connections.resolve(request);
  if (!resolution) return resolution.error();
  id.connection = *resolution;
  return 0;
}

int accept_stream(ConnectionManager& connections, const RdmaId& id, const ConnParam& param) {
  Accept answer;
  answer.qpn = QpNumber{id.qpn};
  answer.starting_psn = id.starting_psn.value();
  answer.srq = id.srq;
  answer.flow_control = param.flow_control != 0;
  answer.responder_resources = param.responder_resources;
  answer.initiator_depth = param.initiator_depth;
  answer.rnr_retry_count = std::min(param.rnr_retry_count, kMaxRetries);
  answer.private_data = data_of(param);
  return connections.accept(*id.connection, answer);
}

int answer_datagram(ConnectionManager& connections, RdmaId& id, wire::SidrStatus status,
                    std::span<const uint8_t> data) {
  if (!id.connection) return EINVAL;
  Resolved answer;
  answer.status = status;
  if (status == wire::SidrStatus::kValid) {
    answer.qpn = QpNumber{id.qpn};
    answer.qkey = id.qkey;
  }
  answer.private_data = data;
  const int error = connections.answer_resolve(*id.connection, answer);
  if (error == 0) id.connection.reset();
  return error;
}

}  // namespace

int connect(const IdTable& ids, ConnectionManager& connections, const Environment& environment,
            const CmCommand& command) {
  const auto in = parse<abi::ucma::Connect>(command, offsetof(abi::ucma::Connect, ece));
  if (!in || in->param.valid == 0) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find_with_device(command.channel, in->id, id)) return error;
  if (id->state != IdState::kRouteResolved) return EINVAL;
  id->qpn = in->param.qp_num & kQpnMask;
  id->srq = in->param.srq != 0;
  const int error = id->is_datagram() ? connect_datagram(connections, *id, in->param)
                                      : connect_stream(connections, environment, *id, in->param);
  if (error != 0) return error;
  id->was_known_to_manager = true;
  id->state = IdState::kConnecting;
  return 0;
}

int accept(const IdTable& ids, ConnectionManager& connections, const CmCommand& command) {
  const auto in = parse<abi::ucma::Accept>(command, offsetof(abi::ucma::Accept, ece));
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find_with_device(command.channel, in->id, id)) return error;
  if (id->state != IdState::kConnecting) return EINVAL;
  const bool has_param = in->param.valid != 0;
  if (has_param) {
    id->qpn = in->param.qp_num & kQpnMask;
    id->srq = in->param.srq != 0;
  }
  int error = 0;
  if (id->is_datagram()) {
    choose_qkey(*id, has_param && id->source.family == Family::kIb ? in->param.qkey : 0);
    error = answer_datagram(connections, *id, wire::SidrStatus::kValid,
                            has_param ? data_of(in->param) : std::span<const uint8_t>{});
  } else if (!id->connection) {
    error = EINVAL;
  } else if (has_param) {
    error = accept_stream(connections, *id, in->param);
  } else {
    error = connections.ready(*id->connection);
  }
  if (error == 0) {
    if (has_param) id->uid = in->uid;
  } else if (id->connection) {
    // An accept that fails refuses the connection or the resolution, as in Linux's rdma_accept().
    if (id->is_datagram()) {
      answer_datagram(connections, *id, wire::SidrStatus::kRejectedByProvider, {});
    } else {
      connections.reject(*id->connection);
    }
  }
  return error;
}

int reject(const IdTable& ids, ConnectionManager& connections, const CmCommand& command) {
  const auto in = parse<abi::ucma::Reject>(command);
  if (!in) return EINVAL;
  const uint8_t reason = in->reason != 0 ? in->reason : kRejectConsumer;
  if (reason != kRejectConsumer && reason != kRejectVendorOption) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find_with_device(command.channel, in->id, id)) return error;
  if (!id->connection) return EINVAL;
  const std::span data(in->private_data, in->private_data_len);
  if (id->is_datagram()) {
    return answer_datagram(connections, *id, wire::SidrStatus::kRejectedByProvider, data);
  }
  Reject answer;
  answer.reason = reason;
  answer.private_data = data;
  return connections.reject(*id->connection, answer);
}

int notify(const IdTable& ids, ConnectionManager& connections, const CmCommand& command) {
  const auto in = parse<abi::ucma::Notify>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  if (!id->local || !id->connection || id->is_datagram() || in->event != kCommEst) return EINVAL;
  return connections.notify_established(*id->connection);
}

int disconnect(const IdTable& ids, ConnectionManager& connections, const CmCommand& command) {
  const auto in = parse<abi::ucma::Disconnect>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find_with_device(command.channel, in->id, id)) return error;
  if (!id->was_known_to_manager) return EINVAL;
  // The result is 0 in every state, because the program need not know whether there is anything to
  // release.
  if (id->connection && !id->is_datagram() && connections.disconnect(*id->connection) != 0) {
    connections.answer_disconnect(*id->connection);
  }
  return 0;
}

}  // namespace rocemu::engine::cm::commands
