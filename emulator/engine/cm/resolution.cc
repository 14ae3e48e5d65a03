#include "emulator/engine/cm/resolution.h"

#include <cerrno>

#include "emulator/engine/cm/private_data.h"

namespace rocemu::engine::cm::resolution {

wire::Result<ConnectionId, int> resolve(ProtocolContext& context, const Resolve& resolve) {
  wire::CmSidrReq req{.pkey = wire::kDefaultPkey, .service_id = resolve.service_id};
  if (!is_usable(context.environment(), resolve.route) || resolve.response_timeout > 31 ||
      resolve.packet_life_time > 31 || resolve.max_retries > 15 ||
      !fill(req.private_data, resolve.private_data)) {
    return EINVAL;
  }
  Connection* connection = context.table().create(State::kSidrReqSent);
  if (connection == nullptr) return ENOMEM;
  connection->context = resolve.context;
  connection->route = resolve.route;
  connection->service_id = resolve.service_id;
  connection->packet_life_time = resolve.packet_life_time;
  connection->max_retries = resolve.max_retries;
  connection->response_timeout =
      cm_time(resolve.response_timeout) + 2 * cm_time(resolve.packet_life_time);
  connection->transaction_id = establishment_transaction(connection->id);
  req.request_id = connection->id.value;
  context.send(*connection, connection->transaction_id, req);
  context.expect_answer(*connection);
  return connection->id;
}

void on_sidr_req(ProtocolContext& context, const Listeners& listeners, const Arrival& from,
                 const wire::CmSidrReq& req) {
  const ResolverKey key{from.back.remote, req.request_id};
  if (Connection* known = context.table().with_resolver(key)) {
    // If the request was answered before, the answer was lost and is repeated. Otherwise the answer
    // has yet to be sent.
    return known->state == State::kClosed ? context.repeat_answer(*known)
                                          : context.drop(from.device);
  }
  const wire::IpAddress& address =
      context.environment().config(from.device).addresses[from.back.gid_index];
  const auto refuse = [&](wire::SidrStatus status) {
    context.send(from.back, {.transaction_id = from.transaction_id,
                             .message = wire::CmSidrRep{.request_id = req.request_id,
                                                        .status = static_cast<uint8_t>(status),
                                                        .service_id = req.service_id}});
  };
  const Listener* listener = listeners.find(req.service_id, from.device, address);
  if (listener == nullptr) return refuse(wire::SidrStatus::kServiceIdNotSupported);
  Connection* connection = context.table().create(State::kSidrReqReceived);
  if (connection == nullptr) return refuse(wire::SidrStatus::kNoQp);
  connection->route = from.back;
  connection->service_id = req.service_id;
  connection->transaction_id = from.transaction_id;
  connection->remote_id = req.request_id;
  context.table().take_resolver(*connection, key);
  Event* event = context.report(*connection, EventKind::kResolveRequest, req);
  event->context = listener->options.context;
  event->listener = listener->id;
}

int answer(ProtocolContext& context, ConnectionId id, const Resolved& resolved) {
  Connection* connection = context.table().find_owned(id, State::kSidrReqReceived);
  wire::CmSidrRep rep{.status = static_cast<uint8_t>(resolved.status),
                      .info_length = static_cast<uint8_t>(resolved.info.size()),
                      .qpn = resolved.qpn.value,
                      .qkey = resolved.qkey};
  if (connection == nullptr || !fill(rep.info, resolved.info) ||
      !fill(rep.private_data, resolved.private_data)) {
    return EINVAL;
  }
  send_sidr_rep(context, *connection, rep);
  return 0;
}

void send_sidr_rep(ProtocolContext& context, Connection& connection, const wire::CmSidrRep& reply) {
  wire::CmSidrRep rep = reply;
  rep.request_id = connection.remote_id;
  rep.service_id = connection.service_id;
  context.send(connection, connection.transaction_id, rep);
  connection.orphan = true;
  context.close(connection);
}

void on_sidr_rep(ProtocolContext& context, const Arrival& from, const wire::CmSidrRep& rep) {
  Connection* connection = context.table().find(ConnectionId{rep.request_id});
  if (connection == nullptr || connection->state != State::kSidrReqSent)
    return context.drop(from.device);
  context.report(*connection, EventKind::kResolveReply, rep);
  context.table().remove(*connection);
}

}  // namespace rocemu::engine::cm::resolution
