// Service ID resolution (IBTA vol 1, 12.11): one request, one answer.
#include <cerrno>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/private_data.h"
#include "emulator/engine/fabric.h"

namespace rocemu::engine::cm {

wire::Result<ConnectionId, int> ConnectionManager::resolve(const Resolve& resolve) {
  wire::CmSidrReq req{.pkey = wire::kDefaultPkey, .service_id = resolve.service_id};
  if (!is_usable(fabric_, resolve.route) || resolve.response_timeout > 31 ||
      resolve.packet_life_time > 31 || resolve.max_retries > 15 ||
      !fill(req.private_data, resolve.private_data)) {
    return EINVAL;
  }
  Connection* connection = table_.create(State::kSidrReqSent);
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
  send(*connection, connection->transaction_id, req);
  expect_answer(*connection);
  return connection->id;
}

void ConnectionManager::on_message(const Arrival& from, const wire::CmSidrReq& req) {
  const ResolverKey key{from.back.remote, req.request_id};
  if (Connection* known = table_.with_resolver(key)) {
    // Answered before: the answer was lost. Otherwise it is still to come.
    return known->state == State::kClosed ? repeat(*known) : drop(from.device);
  }
  const wire::IpAddress& address =
      fabric_.objects.devices[from.device].config.addresses[from.back.gid_index];
  const auto refuse = [&](wire::SidrStatus status) {
    send(from.back, {.transaction_id = from.transaction_id,
                     .message = wire::CmSidrRep{.request_id = req.request_id,
                                                .status = static_cast<uint8_t>(status),
                                                .service_id = req.service_id}});
  };
  const Listener* listener = listener_for(req.service_id, from.device, address);
  if (listener == nullptr) return refuse(wire::SidrStatus::kServiceIdNotSupported);
  Connection* connection = table_.create(State::kSidrReqReceived);
  if (connection == nullptr) return refuse(wire::SidrStatus::kNoQp);
  connection->route = from.back;
  connection->service_id = req.service_id;
  connection->transaction_id = from.transaction_id;
  connection->remote_id = req.request_id;
  table_.take_resolver(*connection, key);
  tell(*connection, EventKind::kResolveRequest, req);
  events_.back().context = listener->options.context;
  events_.back().listener = listener->id;
}

int ConnectionManager::answer_resolve(ConnectionId id, const Resolved& resolved) {
  Connection* connection = find(id, State::kSidrReqReceived);
  wire::CmSidrRep rep{.status = static_cast<uint8_t>(resolved.status),
                      .info_length = static_cast<uint8_t>(resolved.info.size()),
                      .qpn = resolved.qpn.value,
                      .qkey = resolved.qkey};
  if (connection == nullptr || !fill(rep.info, resolved.info) ||
      !fill(rep.private_data, resolved.private_data)) {
    return EINVAL;
  }
  send_resolved(*connection, rep);
  return 0;
}

void ConnectionManager::send_resolved(Connection& connection, const wire::CmSidrRep& answer) {
  wire::CmSidrRep rep = answer;
  rep.request_id = connection.remote_id;
  rep.service_id = connection.service_id;
  send(connection, connection.transaction_id, rep);
  connection.orphan = true;
  close(connection);
}

void ConnectionManager::on_message(const Arrival& from, const wire::CmSidrRep& rep) {
  Connection* connection = table_.find(ConnectionId{rep.request_id});
  if (connection == nullptr || connection->state != State::kSidrReqSent) return drop(from.device);
  tell(*connection, EventKind::kResolveReply, rep);
  table_.remove(*connection);
}

}  // namespace rocemu::engine::cm
