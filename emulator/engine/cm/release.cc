// The end of a connection (IBTA vol 1, 12.9): DREQ and DREP, timewait; and LAP, which has no place
// on RoCE.
#include <algorithm>
#include <cerrno>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/private_data.h"
#include "emulator/engine/fabric.h"

namespace rocemu::engine::cm {

int ConnectionManager::disconnect(ConnectionId id, std::span<const uint8_t> private_data) {
  Connection* connection = find(id, State::kEstablished);
  wire::CmDreq dreq;
  if (connection == nullptr || !fill(dreq.private_data, private_data)) return EINVAL;
  send_disconnect(*connection, dreq);
  return 0;
}

void ConnectionManager::send_disconnect(Connection& connection, const wire::CmDreq& request) {
  wire::CmDreq dreq = request;
  dreq.local_comm_id = connection.id.value;
  dreq.remote_comm_id = connection.remote_id;
  dreq.remote_qpn = connection.remote_qpn;
  connection.state = State::kDreqSent;
  connection.release_id = release_transaction(connection.id);
  send(connection, connection.release_id, dreq);
  expect_answer(connection);
}

int ConnectionManager::answer_disconnect(ConnectionId id, std::span<const uint8_t> private_data) {
  Connection* connection = find(id, State::kDreqReceived);
  wire::CmDrep drep;
  if (connection == nullptr || !fill(drep.private_data, private_data)) return EINVAL;
  send_disconnect_reply(*connection, drep);
  return 0;
}

void ConnectionManager::send_disconnect_reply(Connection& connection, const wire::CmDrep& reply) {
  wire::CmDrep drep = reply;
  drep.local_comm_id = connection.id.value;
  drep.remote_comm_id = connection.remote_id;
  send(connection, connection.release_id, drep);
  enter_timewait(connection);
}

// IBTA vol 1, 12.9: packets of the connection may be under way for two packet lifetimes and the
// peer's delay, which is what the local ACK timeout is. The peer chose it: 34 s are enough.
void ConnectionManager::enter_timewait(Connection& connection) {
  constexpr uint8_t kLongest = 23;
  connection.state = State::kTimewait;
  table_.set_deadline(
      connection, fabric_.step.now() + cm_time(std::min(connection.local_ack_timeout, kLongest)));
}

void ConnectionManager::on_message(const Arrival& from, const wire::CmDreq& dreq) {
  Connection* connection = table_.find(ConnectionId{dreq.remote_comm_id});
  if (connection == nullptr || connection->remote_id != dreq.local_comm_id) {
    // What is not connected is what the peer wants: it need not repeat itself.
    return send(from.back, {.transaction_id = from.transaction_id,
                            .message = wire::CmDrep{.local_comm_id = dreq.remote_comm_id,
                                                    .remote_comm_id = dreq.local_comm_id}});
  }
  if (connection->local_qpn != dreq.remote_qpn) return drop(from.device);
  switch (connection->state) {
    case State::kRepReceived:
    case State::kRepSent:  // its RTU was lost
    case State::kEstablished:
      connection->state = State::kDreqReceived;
      connection->release_id = from.transaction_id;
      stop_waiting(*connection);
      return tell(*connection, EventKind::kDisconnectRequest, dreq);
    case State::kDreqSent:
      // Both at once: each answers, and either answer ends it.
      tell(*connection, EventKind::kDisconnectRequest, dreq);
      if (!connection->orphan) events_.back().answered = true;
      connection->release_id = from.transaction_id;
      return send_disconnect_reply(*connection, {});
    case State::kTimewait:
      // The DREP was lost, or crossed with this DREQ.
      return send(connection->route,
                  {.transaction_id = from.transaction_id,
                   .message = wire::CmDrep{.local_comm_id = connection->id.value,
                                           .remote_comm_id = connection->remote_id}});
    case State::kClosed:
    case State::kReqSent:
    case State::kReqReceived:
    case State::kDreqReceived:
    case State::kSidrReqSent:
    case State::kSidrReqReceived:
      return drop(from.device);
  }
}

void ConnectionManager::on_message(const Arrival& from, const wire::CmDrep& drep) {
  Connection* connection = table_.find(ConnectionId{drep.remote_comm_id});
  if (connection == nullptr || connection->remote_id != drep.local_comm_id ||
      connection->state != State::kDreqSent) {
    return drop(from.device);
  }
  tell(*connection, EventKind::kDisconnectReply, drep);
  enter_timewait(*connection);
}

void ConnectionManager::on_stale(Connection& connection) {
  if (connection.state == State::kEstablished) send_disconnect(connection, {});
}

// Annex A17: a RoCE port has no alternate paths. IBTA vol 1, 12.8.2.1: "not supported".
void ConnectionManager::on_message(const Arrival& from, const wire::CmLap& lap) {
  Connection* connection = table_.find(ConnectionId{lap.remote_comm_id});
  if (connection == nullptr || connection->remote_id != lap.local_comm_id) {
    return reject_unknown(from, lap.remote_comm_id, lap.local_comm_id,
                          wire::CmRejected::kNoMessage);
  }
  if (connection->state != State::kEstablished) return drop(from.device);
  const auto status = lap.remote_qpn == connection->local_qpn ? wire::AprStatus::kNotSupported
                                                              : wire::AprStatus::kQpnMismatch;
  send(connection->route, {.transaction_id = from.transaction_id,
                           .message = wire::CmApr{.local_comm_id = connection->id.value,
                                                  .remote_comm_id = connection->remote_id,
                                                  .status = static_cast<uint8_t>(status)}});
  tell(*connection, EventKind::kAlternatePathRequest, lap);
}

// Nothing here sends LAP.
void ConnectionManager::on_message(const Arrival& from, const wire::CmApr&) {
  drop(from.device);
}

void ConnectionManager::destroy(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  connection->orphan = true;
  switch (connection->state) {
    case State::kReqSent:
      return give_up(*connection);
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kRepSent:
      send_reject(*connection, {});
      return close(*connection);
    case State::kEstablished:
      return send_disconnect(*connection, {});
    case State::kDreqReceived:
      return send_disconnect_reply(*connection, {});
    case State::kSidrReqSent:
      return table_.remove(*connection);
    case State::kSidrReqReceived:
      return send_resolved(*connection,
                           {.status = static_cast<uint8_t>(wire::SidrStatus::kRejectedByProvider)});
    case State::kDreqSent:  // goes on by itself
    case State::kTimewait:
    case State::kClosed:
      return;
  }
}

}  // namespace rocemu::engine::cm
