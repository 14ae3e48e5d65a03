#include "emulator/engine/cm/release.h"

#include <cerrno>

#include "emulator/engine/cm/private_data.h"
#include "emulator/engine/cm/rejection.h"

namespace rocemu::engine::cm::release {

int disconnect(ProtocolContext& context, ConnectionId id, std::span<const uint8_t> private_data) {
  Connection* connection = context.table().find_owned(id, State::kEstablished);
  wire::CmDreq dreq;
  if (connection == nullptr || !fill(dreq.private_data, private_data)) return EINVAL;
  send_dreq(context, *connection, dreq);
  return 0;
}

void send_dreq(ProtocolContext& context, Connection& connection, const wire::CmDreq& request) {
  wire::CmDreq dreq = request;
  dreq.local_comm_id = connection.id.value;
  dreq.remote_comm_id = connection.remote_id;
  dreq.remote_qpn = connection.remote_qpn;
  connection.state = State::kDreqSent;
  connection.release_id = release_transaction(connection.id);
  context.send(connection, connection.release_id, dreq);
  context.expect_answer(connection);
}

int answer_disconnect(ProtocolContext& context, ConnectionId id,
                      std::span<const uint8_t> private_data) {
  Connection* connection = context.table().find_owned(id, State::kDreqReceived);
  wire::CmDrep drep;
  if (connection == nullptr || !fill(drep.private_data, private_data)) return EINVAL;
  send_drep(context, *connection, drep);
  return 0;
}

void send_drep(ProtocolContext& context, Connection& connection, const wire::CmDrep& reply) {
  wire::CmDrep drep = reply;
  drep.local_comm_id = connection.id.value;
  drep.remote_comm_id = connection.remote_id;
  context.send(connection, connection.release_id, drep);
  context.enter_timewait(connection);
}

void on_dreq(ProtocolContext& context, const Arrival& from, const wire::CmDreq& dreq) {
  Connection* connection = context.table().find(ConnectionId{dreq.remote_comm_id});
  if (connection == nullptr || connection->remote_id != dreq.local_comm_id) {
    // The peer wants to end a connection that does not exist here. This answer makes the peer stop
    // repeating its DREQ.
    return context.send(from.back, {.transaction_id = from.transaction_id,
                                    .message = wire::CmDrep{.local_comm_id = dreq.remote_comm_id,
                                                            .remote_comm_id = dreq.local_comm_id}});
  }
  if (connection->local_qpn != dreq.remote_qpn) return context.drop(from.device);
  switch (connection->state) {
    case State::kRepReceived:
    case State::kRepSent:  // its RTU was lost
    case State::kEstablished:
      connection->state = State::kDreqReceived;
      connection->release_id = from.transaction_id;
      context.stop_timer(*connection);
      context.report(*connection, EventKind::kDisconnectRequest, dreq);
      return;
    case State::kDreqSent:
      // Both sides sent DREQ: each side answers, and either answer ends the connection.
      if (Event* event = context.report(*connection, EventKind::kDisconnectRequest, dreq)) {
        event->answered = true;
      }
      connection->release_id = from.transaction_id;
      return send_drep(context, *connection, {});
    case State::kTimewait: {
      // Either the DREP was lost, or it was sent at the same time as this DREQ.
      const bool is_repeat = std::holds_alternative<wire::CmDrep>(connection->sent.message) &&
                             connection->sent.transaction_id == from.transaction_id;
      return context.send(connection->route,
                          {.transaction_id = from.transaction_id,
                           .message = wire::CmDrep{.local_comm_id = connection->id.value,
                                                   .remote_comm_id = connection->remote_id}},
                          {.why = is_repeat ? Resent::kDuplicate : Resent::kNo, .begins = true});
    }
    case State::kClosed:
    case State::kReqSent:
    case State::kReqReceived:
    case State::kDreqReceived:
    case State::kSidrReqSent:
    case State::kSidrReqReceived:
      return context.drop(from.device);
  }
}

void on_drep(ProtocolContext& context, const Arrival& from, const wire::CmDrep& drep) {
  Connection* connection = context.table().find(ConnectionId{drep.remote_comm_id});
  if (connection == nullptr || connection->remote_id != drep.local_comm_id ||
      connection->state != State::kDreqSent) {
    return context.drop(from.device);
  }
  context.report(*connection, EventKind::kDisconnectReply, drep);
  context.enter_timewait(*connection);
}

void on_stale(ProtocolContext& context, Connection& connection) {
  if (connection.state == State::kEstablished) send_dreq(context, connection, {});
}

// Annex A17: a RoCE port has no alternate paths. The answer is "not supported" (IBTA vol 1,
// 12.8.2.1).
void on_lap(ProtocolContext& context, const Arrival& from, const wire::CmLap& lap) {
  Connection* connection = context.table().find(ConnectionId{lap.remote_comm_id});
  if (connection == nullptr || connection->remote_id != lap.local_comm_id) {
    return rejection::reject_unknown(context, from, lap.remote_comm_id, lap.local_comm_id,
                                     wire::CmRejected::kNoMessage);
  }
  if (connection->state != State::kEstablished) return context.drop(from.device);
  const auto status = lap.remote_qpn == connection->local_qpn ? wire::AprStatus::kNotSupported
                                                              : wire::AprStatus::kQpnMismatch;
  context.send(connection->route, {.transaction_id = from.transaction_id,
                                   .message = wire::CmApr{.local_comm_id = connection->id.value,
                                                          .remote_comm_id = connection->remote_id,
                                                          .status = static_cast<uint8_t>(status)}});
  context.report(*connection, EventKind::kAlternatePathRequest, lap);
}

// LAP is never sent, so no APR is expected.
void on_apr(ProtocolContext& context, const Arrival& from, const wire::CmApr&) {
  context.drop(from.device);
}

}  // namespace rocemu::engine::cm::release
