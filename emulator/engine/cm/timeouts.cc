#include "emulator/engine/cm/timeouts.h"

#include <array>

#include "emulator/engine/cm/rejection.h"

namespace rocemu::engine::cm::timeouts {
namespace {

void on_timer(ProtocolContext& context, Connection& connection) {
  switch (connection.state) {
    case State::kReqSent:
    case State::kRepSent:
    case State::kDreqSent:
    case State::kSidrReqSent:
      if (connection.retries_left == 0) return give_up(context, connection);
      --connection.retries_left;
      context.repeat(connection,
                     {.why = Resent::kNoReply, .begins = true, .waited = connection.timer});
      return context.start_timer(connection, connection.response_timeout);
    case State::kTimewait:
      context.report(connection, EventKind::kTimewaitExit);
      return context.table().remove(connection);
    case State::kClosed:
      return context.table().remove(connection);
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kEstablished:
    case State::kDreqReceived:
    case State::kSidrReqReceived:
      return;  // these wait for the consumer, without a limit
  }
}

}  // namespace

void expire(ProtocolContext& context) {
  while (Connection* connection = context.table().expire(context.environment().now())) {
    on_timer(context, *connection);
  }
}

void give_up(ProtocolContext& context, Connection& connection) {
  if (connection.state == State::kReqSent || connection.state == State::kRepSent) {
    const bool active = connection.state == State::kReqSent;
    // IBTA vol 1, 12.6.7.2: for the reason "timeout", the additional information is the sender's CA
    // GUID. With it, a recipient that never got the connection's ID can find the connection.
    std::array<uint8_t, 8> guid;
    uint64_t value = node_guid(context.environment().config(connection.route.device));
    for (auto byte = guid.rbegin(); byte != guid.rend(); ++byte, value >>= 8) {
      *byte = static_cast<uint8_t>(value);
    }
    rejection::send(context, connection,
                    {.reason = static_cast<uint16_t>(wire::CmRejectReason::kTimeout),
                     .info = guid,
                     .private_data = {}});
    context.report(connection, active ? EventKind::kRequestError : EventKind::kReplyError);
    return context.close(connection);
  }
  if (connection.state == State::kDreqSent) {
    context.report(connection, EventKind::kDisconnectError);
    return context.enter_timewait(connection);
  }
  context.report(connection, EventKind::kResolveError);
  context.table().remove(connection);
}

}  // namespace rocemu::engine::cm::timeouts
