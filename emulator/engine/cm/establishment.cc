#include "emulator/engine/cm/establishment.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/cm/private_data.h"
#include "emulator/engine/cm/rejection.h"
#include "emulator/engine/cm/release.h"

namespace rocemu::engine::cm::establishment {
namespace {

using wire::CmRejected;
using wire::CmRejectReason;

/// Annex A17: RoCE ports have no LID. This is the permissive LID, which Linux uses, too.
constexpr uint16_t kNoLid = 0xffff;

template <class Message>
bool sent_last(const Connection& connection) {
  return std::holds_alternative<Message>(connection.sent.message);
}

Reject because(CmRejectReason reason) {
  return {.reason = static_cast<uint16_t>(reason), .info = {}, .private_data = {}};
}

wire::CmTransport transport_of(abi::QpType type) {
  switch (type) {
    case abi::QpType::kRc:
    case abi::QpType::kUd:
      return wire::CmTransport::kRc;
    case abi::QpType::kUc:
      return wire::CmTransport::kUc;
    case abi::QpType::kXrcSend:
    case abi::QpType::kXrcRecv:
      return wire::CmTransport::kExtended;
  }
  __builtin_unreachable();
}

/// Returns the type of the QP that can answer the request; nothing if no type can.
std::optional<abi::QpType> answering_type(const wire::CmReq& req) {
  switch (req.transport) {
    case wire::CmTransport::kRc:
      return abi::QpType::kRc;
    case wire::CmTransport::kUc:
      return abi::QpType::kUc;
    case wire::CmTransport::kExtended:
      if (req.extended_transport == wire::kCmExtendedXrc) return abi::QpType::kXrcRecv;
      return std::nullopt;
    case wire::CmTransport::kRd:
      return std::nullopt;
  }
  return std::nullopt;
}

bool is_valid(const Connect& connect) {
  return connect.qp_type != abi::QpType::kUd && connect.retry_count <= 7 &&
         connect.rnr_retry_count <= 7 && connect.local_ack_timeout <= 31 &&
         connect.response_timeout <= 31 && connect.max_retries <= 15;
}

// ---- Active side ----

/// Stores the consumer's values that later messages and the QP need.
void remember(const Connect& connect, Connection& connection) {
  connection.context = connect.context;
  connection.route = connect.route;
  connection.qp_type = connect.qp_type;
  connection.service_id = connect.service_id;
  connection.local_qpn = connect.qpn.value;
  connection.path_mtu = static_cast<uint8_t>(connect.path_mtu);
  connection.retry_count = connect.retry_count;
  connection.rnr_retry_count = connect.rnr_retry_count;
  connection.responder_resources = connect.responder_resources;
  connection.initiator_depth = connect.initiator_depth;
  connection.local_ack_timeout = connect.local_ack_timeout;
  connection.packet_life_time = life_time_of(connect.local_ack_timeout);
  connection.max_retries = connect.max_retries;
  connection.response_timeout =
      cm_time(connect.response_timeout) + 2 * cm_time(connection.packet_life_time);
  connection.transaction_id = establishment_transaction(connection.id);
}

/// Fills in the REQ except for the private data.
void describe(const Connect& connect, const Connection& connection, const DeviceConfig& config,
              wire::CmReq& req) {
  req.local_comm_id = connection.id.value;
  req.service_id = connect.service_id;
  req.local_ca_guid = node_guid(config);
  req.local_qkey = connect.qkey;
  req.local_qpn = connect.qpn.value;
  req.responder_resources = connect.responder_resources;
  req.initiator_depth = connect.initiator_depth;
  req.remote_cm_response_timeout = connect.response_timeout;
  req.transport = transport_of(connect.qp_type);
  req.end_to_end_flow_control = connect.flow_control;
  req.starting_psn = connection.local_psn;
  req.local_cm_response_timeout = connect.response_timeout;
  req.retry_count = connect.retry_count;
  req.pkey = wire::kDefaultPkey;
  req.path_mtu = connection.path_mtu;
  req.rnr_retry_count = connect.rnr_retry_count;
  req.max_cm_retries = connect.max_retries;
  req.srq = connect.srq;
  if (req.transport == wire::CmTransport::kExtended) {
    req.extended_transport = wire::kCmExtendedXrc;
  }
  req.primary = {.local_lid = kNoLid,
                 .remote_lid = kNoLid,
                 .local_gid = config.addresses[connect.route.gid_index],
                 .remote_gid = connect.route.remote,
                 .flow_label = connect.route.flow_label,
                 .traffic_class = connect.route.traffic_class,
                 .hop_limit = connect.route.hop_limit,
                 .local_ack_timeout = connect.local_ack_timeout};
}

void on_first_reply(ProtocolContext& context, Connection& connection, const Arrival& from,
                    const wire::CmRep& rep) {
  const RemoteKey id{rep.local_ca_guid, rep.local_comm_id};
  const RemoteKey qpn{rep.local_ca_guid, rep.local_qpn};
  Connection* stale = context.table().with_remote_qpn(qpn);
  const bool duplicate = context.table().with_remote_id(id) != nullptr;
  connection.remote_id = rep.local_comm_id;
  if (stale != nullptr || duplicate) {
    connection.state = State::kRepReceived;
    rejection::send(context, connection,
                    because(duplicate ? CmRejectReason::kDuplicateLocalCommId
                                      : CmRejectReason::kStaleConnection));
    context.report(connection, EventKind::kRequestError);
    context.close(connection);
    if (stale != nullptr && !duplicate) release::on_stale(context, *stale);
    return;
  }
  context.table().take_remote_id(connection, id);
  context.table().take_remote_qpn(connection, qpn);
  connection.state = State::kRepReceived;
  context.stop_timer(connection);
  connection.transaction_id = from.transaction_id;
  connection.remote_guid = rep.local_ca_guid;
  connection.remote_qpn = rep.local_qpn;
  connection.remote_psn = rep.starting_psn;
  connection.rnr_retry_count = rep.rnr_retry_count;
  // IBTA vol 1, 12.7: the peer may lower the responder resources and the initiator depth, but not
  // raise them.
  connection.responder_resources = std::min(connection.responder_resources, rep.initiator_depth);
  connection.initiator_depth = std::min(connection.initiator_depth, rep.responder_resources);
  connection.local_ack_timeout =
      ack_timeout_code(connection.packet_life_time, rep.target_ack_delay);
  context.report(connection, EventKind::kReply, rep);
}

// ---- Passive side ----

void on_repeated_request(ProtocolContext& context, const Connection& connection,
                         const Arrival& from, const wire::CmReq& req) {
  const bool answered =
      connection.state == State::kRepSent ||
      (connection.state == State::kReqReceived && sent_last<wire::CmMra>(connection)) ||
      (connection.state == State::kClosed && sent_last<wire::CmRej>(connection));
  if (answered) return context.repeat_answer(connection);
  if (connection.state == State::kTimewait) {
    return rejection::reject_request(context, from, req, CmRejectReason::kStaleConnection);
  }
  context.drop(from.device);
}

std::optional<CmRejectReason> reason_to_refuse(const Environment& environment, const Arrival& from,
                                               const wire::CmReq& req) {
  const DeviceConfig& config = environment.config(from.device);
  if (!answering_type(req)) return CmRejectReason::kInvalidTransportServiceType;
  if (!gid_index_of(environment, from.device, req.primary.remote_gid)) {
    return CmRejectReason::kPrimaryRemoteGid;
  }
  if (req.path_mtu == 0 || req.path_mtu > static_cast<uint8_t>(config.active_mtu)) {
    return CmRejectReason::kInvalidPathMtu;
  }
  if (req.local_qpn <= wire::kGsiQpn ||
      req.primary.local_gid.is_v4() != req.primary.remote_gid.is_v4()) {
    return CmRejectReason::kUnsupportedRequest;
  }
  return std::nullopt;
}

void become_passive(ProtocolContext& context, Connection& connection, const Arrival& from,
                    const wire::CmReq& req) {
  if (connection.state == State::kReqSent) context.stop_timer(connection);  // peer to peer
  connection.state = State::kReqReceived;
  connection.route = {
      .device = from.device,
      .gid_index = gid_index_of(context.environment(), from.device, req.primary.remote_gid).value(),
      .remote = req.primary.local_gid,
      .traffic_class = req.primary.traffic_class,
      .hop_limit = req.primary.hop_limit > 1 ? req.primary.hop_limit : Route().hop_limit,
      .flow_label = req.primary.flow_label};
  connection.qp_type = answering_type(req).value();
  connection.service_id = req.service_id;
  connection.transaction_id = from.transaction_id;
  connection.local_psn =
      connection.peer_to_peer ? connection.local_psn : context.table().random_psn();
  connection.remote_guid = req.local_ca_guid;
  connection.remote_id = req.local_comm_id;
  connection.remote_qpn = req.local_qpn;
  connection.remote_psn = req.starting_psn;
  connection.path_mtu = req.path_mtu;
  connection.retry_count = req.retry_count;
  connection.rnr_retry_count = req.rnr_retry_count;
  connection.responder_resources = req.initiator_depth;
  connection.initiator_depth = req.responder_resources;
  connection.local_ack_timeout = req.primary.local_ack_timeout;
  connection.alternate_path_offered = req.alternate != wire::CmPath();
  connection.packet_life_time = life_time_of(req.primary.local_ack_timeout);
  connection.max_retries = req.max_cm_retries;
  connection.response_timeout =
      cm_time(req.local_cm_response_timeout) + 2 * cm_time(connection.packet_life_time);
}

void establish(ProtocolContext& context, Connection& connection,
               const std::optional<wire::CmMessage>& message) {
  context.stop_timer(connection);
  connection.state = State::kEstablished;
  context.report(connection, EventKind::kEstablished, message);
}

}  // namespace

// ---- Active side ----

wire::Result<ConnectionId, int> connect(ProtocolContext& context, const Connect& connect) {
  wire::CmReq req;
  if (!is_usable(context.environment(), connect.route) || !is_valid(connect) ||
      !fill(req.private_data, connect.private_data)) {
    return EINVAL;
  }
  Connection* connection = context.table().create(State::kReqSent);
  if (connection == nullptr) return ENOMEM;
  remember(connect, *connection);
  connection->local_psn =
      connect.starting_psn ? wire::Psn(*connect.starting_psn) : context.table().random_psn();
  if (connect.peer_to_peer) context.table().add_peer_to_peer(*connection);
  describe(connect, *connection, context.environment().config(connect.route.device), req);
  context.send(*connection, connection->transaction_id, req);
  context.expect_answer(*connection);
  return connection->id;
}

void on_rep(ProtocolContext& context, const Arrival& from, const wire::CmRep& rep) {
  Connection* connection = context.table().find(ConnectionId{rep.remote_comm_id});
  if (connection == nullptr) {
    return rejection::reject_unknown(context, from, rep.remote_comm_id, rep.local_comm_id,
                                     CmRejected::kRep);
  }
  if (connection->state == State::kReqSent) return on_first_reply(context, *connection, from, rep);
  // If a REP arrives again, the answer to it was lost.
  const bool answered_by_rej =
      connection->state == State::kClosed && sent_last<wire::CmRej>(*connection);
  const bool answered =
      (connection->state == State::kEstablished && sent_last<wire::CmRtu>(*connection)) ||
      (connection->state == State::kRepReceived && sent_last<wire::CmMra>(*connection));
  if (answered_by_rej || (answered && connection->remote_id == rep.local_comm_id)) {
    return context.repeat_answer(*connection);
  }
  context.drop(from.device);
}

int ready(ProtocolContext& context, ConnectionId id, std::span<const uint8_t> private_data) {
  Connection* connection = context.table().find_owned(id, State::kRepReceived);
  wire::CmRtu rtu;
  if (connection == nullptr || !fill(rtu.private_data, private_data)) return EINVAL;
  rtu.local_comm_id = connection->id.value;
  rtu.remote_comm_id = connection->remote_id;
  context.send(*connection, connection->transaction_id, rtu);
  connection->state = State::kEstablished;
  return 0;
}

// ---- Passive side ----

void on_req(ProtocolContext& context, const Listeners& listeners, const Arrival& from,
            const wire::CmReq& req) {
  const RemoteKey id{req.local_ca_guid, req.local_comm_id};
  const RemoteKey qpn{req.local_ca_guid, req.local_qpn};
  if (Connection* known = context.table().with_remote_id(id))
    return on_repeated_request(context, *known, from, req);
  Connection* connection =
      context.table().peer_to_peer(req.service_id, from.device, req.primary.local_gid);
  const bool stays_active =
      connection != nullptr &&
      std::pair(node_guid(context.environment().config(from.device)), connection->local_qpn) > qpn;
  if (stays_active) return context.drop(from.device);  // the peer will accept ours

  const Listener* listener = nullptr;
  if (connection == nullptr) {
    listener = listeners.find(req.service_id, from.device, req.primary.remote_gid);
    if (listener == nullptr) {
      return rejection::reject_request(context, from, req, CmRejectReason::kInvalidServiceId);
    }
  }
  if (const auto reject = reason_to_refuse(context.environment(), from, req))
    return rejection::reject_request(context, from, req, *reject);
  if (Connection* stale = context.table().with_remote_qpn(qpn)) {
    rejection::reject_request(context, from, req, CmRejectReason::kStaleConnection);
    return release::on_stale(context, *stale);
  }
  if (connection == nullptr) connection = context.table().create(State::kReqReceived);
  if (connection == nullptr) {
    return rejection::reject_request(context, from, req, CmRejectReason::kNoResources);
  }
  context.table().take_remote_id(*connection, id);
  context.table().take_remote_qpn(*connection, qpn);
  become_passive(context, *connection, from, req);
  Event* event = context.report(*connection, EventKind::kRequest, req);
  if (event == nullptr || listener == nullptr) return;
  event->context = listener->options.context;
  event->listener = listener->id;
}

int accept(ProtocolContext& context, ConnectionId id, const Accept& accept) {
  constexpr uint8_t kFailoverNotSupported = 1;  // 12.7: annex A17 has no alternate paths
  Connection* connection = context.table().find_owned(id, State::kReqReceived);
  wire::CmRep rep;
  if (connection == nullptr || accept.rnr_retry_count > 7 || accept.target_ack_delay > 31 ||
      !fill(rep.private_data, accept.private_data)) {
    return EINVAL;
  }
  connection->local_qpn = accept.qpn.value;
  if (accept.starting_psn) connection->local_psn = wire::Psn(*accept.starting_psn);
  connection->responder_resources = accept.responder_resources;
  connection->initiator_depth = accept.initiator_depth;

  rep.local_comm_id = connection->id.value;
  rep.remote_comm_id = connection->remote_id;
  rep.local_qkey = accept.qkey;
  rep.local_qpn = accept.qpn.value;
  rep.starting_psn = connection->local_psn;
  rep.responder_resources = accept.responder_resources;
  rep.initiator_depth = accept.initiator_depth;
  rep.target_ack_delay = accept.target_ack_delay;
  if (connection->alternate_path_offered) rep.failover_accepted = kFailoverNotSupported;
  rep.end_to_end_flow_control = accept.flow_control;
  rep.rnr_retry_count = accept.rnr_retry_count;
  rep.srq = accept.srq;
  rep.local_ca_guid = node_guid(context.environment().config(connection->route.device));
  context.send(*connection, connection->transaction_id, rep);
  connection->state = State::kRepSent;
  context.expect_answer(*connection);
  return 0;
}

void on_rtu(ProtocolContext& context, const Arrival& from, const wire::CmRtu& rtu) {
  Connection* connection = context.table().find(ConnectionId{rtu.remote_comm_id});
  if (connection == nullptr || connection->remote_id != rtu.local_comm_id) {
    return rejection::reject_unknown(context, from, rtu.remote_comm_id, rtu.local_comm_id,
                                     CmRejected::kNoMessage);
  }
  if (connection->state == State::kRepSent) return establish(context, *connection, rtu);
  if (connection->state == State::kClosed && sent_last<wire::CmRej>(*connection)) {
    return context.repeat_answer(*connection);
  }
  context.drop(from.device);
}

int notify_established(ProtocolContext& context, ConnectionId id) {
  Connection* connection = context.table().find_owned(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == State::kEstablished) return EISCONN;
  if (connection->state != State::kRepSent) return EINVAL;
  establish(context, *connection, std::nullopt);
  return 0;
}

// ---- Extension of timeouts: MRA ----

int delay(ProtocolContext& context, ConnectionId id, uint8_t service_timeout,
          std::span<const uint8_t> private_data) {
  Connection* connection = context.table().find_owned(id);
  wire::CmMra mra{.service_timeout = service_timeout};
  if (connection == nullptr || service_timeout > 31 || !fill(mra.private_data, private_data)) {
    return EINVAL;
  }
  if (connection->state == State::kReqReceived) {
    mra.message = wire::CmMraed::kReq;
  } else if (connection->state == State::kRepReceived) {
    mra.message = wire::CmMraed::kRep;
  } else {
    return EINVAL;
  }
  mra.local_comm_id = connection->id.value;
  mra.remote_comm_id = connection->remote_id;
  context.send(*connection, connection->transaction_id, mra);
  return 0;
}

void on_mra(ProtocolContext& context, const Arrival& from, const wire::CmMra& mra) {
  Connection* connection = context.table().find(ConnectionId{mra.remote_comm_id});
  const bool awaited =
      connection != nullptr &&
      ((connection->state == State::kReqSent && mra.message == wire::CmMraed::kReq) ||
       (connection->state == State::kRepSent && mra.message == wire::CmMraed::kRep &&
        connection->remote_id == mra.local_comm_id));
  if (!awaited) return context.drop(from.device);
  context.start_timer(*connection,
                      cm_time(mra.service_timeout) + 2 * cm_time(connection->packet_life_time));
  context.report(*connection, EventKind::kRemoteMra, mra);
}

}  // namespace rocemu::engine::cm::establishment
