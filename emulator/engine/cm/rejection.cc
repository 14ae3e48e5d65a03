#include "emulator/engine/cm/rejection.h"

#include <cerrno>

#include "emulator/engine/cm/private_data.h"
#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::engine::cm::rejection {
namespace {

using wire::CmRejected;
using wire::CmRejectReason;

/// Returns the connection to which the REJ refers, or nullptr.
Connection* rejected_by(ConnectionTable& table, const wire::CmRej& rej) {
  if (rej.remote_comm_id == 0) {
    // This REJ does not contain this side's ID, because its sender got no message from this side. A
    // CA GUID identifies the connection instead.
    if (rej.reason != static_cast<uint16_t>(CmRejectReason::kTimeout) || rej.info_length < 8) {
      return nullptr;
    }
    const auto guid = wire::load<wire::Be64>(std::span(rej.info).first<8>());
    return table.with_remote_id({guid.get(), rej.local_comm_id});
  }
  Connection* connection = table.find(ConnectionId{rej.remote_comm_id});
  if (connection == nullptr) return nullptr;
  const bool peer_known = connection->state != State::kReqSent;
  return peer_known && connection->remote_id != rej.local_comm_id ? nullptr : connection;
}

}  // namespace

int reject(ProtocolContext& context, ConnectionId id, const Reject& reject) {
  Connection* connection = context.table().find_owned(id);
  if (connection == nullptr || reject.info.size() > wire::kCmInfoSize ||
      reject.private_data.size() > wire::CmRej().private_data.size()) {
    return EINVAL;
  }
  switch (connection->state) {
    case State::kReqReceived:
    case State::kRepReceived:
    case State::kRepSent:
      send(context, *connection, reject);
      context.close(*connection);
      return 0;
    default:
      return EINVAL;
  }
}

void send(ProtocolContext& context, Connection& connection, const Reject& reject) {
  wire::CmRej rej{.local_comm_id = connection.id.value,
                  .remote_comm_id = connection.remote_id,
                  .message = CmRejected::kNoMessage,
                  .info_length = static_cast<uint8_t>(reject.info.size()),
                  .reason = reject.reason};
  if (connection.state == State::kReqReceived) rej.message = CmRejected::kReq;
  if (connection.state == State::kRepReceived) rej.message = CmRejected::kRep;
  wire::require(fill(rej.info, reject.info) && fill(rej.private_data, reject.private_data));
  context.send(connection, connection.transaction_id, rej);
}

// Rejects a request without creating a connection, since the peer's message contains everything
// that the answer needs.
void reject_request(ProtocolContext& context, const Arrival& from, const wire::CmReq& req,
                    CmRejectReason reason) {
  context.send(from.back, {.transaction_id = from.transaction_id,
                           .message = wire::CmRej{.remote_comm_id = req.local_comm_id,
                                                  .message = CmRejected::kReq,
                                                  .reason = static_cast<uint16_t>(reason)}});
}

void reject_unknown(ProtocolContext& context, const Arrival& from, uint32_t our_id,
                    uint32_t their_id, CmRejected message) {
  context.send(from.back, {.transaction_id = from.transaction_id,
                           .message = wire::CmRej{
                               .local_comm_id = our_id,
                               .remote_comm_id = their_id,
                               .message = message,
                               .reason = static_cast<uint16_t>(CmRejectReason::kInvalidCommId)}});
}

void on_rej(ProtocolContext& context, const Arrival& from, const wire::CmRej& rej) {
  Connection* connection = rejected_by(context.table(), rej);
  if (connection == nullptr) return context.drop(from.device);
  switch (connection->state) {
    case State::kReqSent:
    case State::kReqReceived:
    case State::kRepReceived:
    case State::kRepSent:
      context.report(*connection, EventKind::kRejected, rej);
      return context.close(*connection);
    case State::kEstablished:
    case State::kDreqSent:
    case State::kDreqReceived:
      context.report(*connection, EventKind::kRejected, rej);
      return context.enter_timewait(*connection);
    case State::kTimewait:
    case State::kClosed:
    case State::kSidrReqSent:
    case State::kSidrReqReceived:
      return context.drop(from.device);
  }
}

}  // namespace rocemu::engine::cm::rejection
