#include "emulator/engine/cm/protocol_context.h"

#include <algorithm>
#include <array>

namespace rocemu::engine::cm {

void ProtocolContext::send(const Route& route, const wire::CmMad& mad, const Resend& resend) {
  std::array<uint8_t, wire::kMadSize> bytes;
  wire::emit(mad, bytes);
  general_services_.send(route, bytes, resend);
}

void ProtocolContext::send(Connection& connection, uint64_t transaction_id,
                           const wire::CmMessage& message) {
  connection.sent = {.transaction_id = transaction_id, .message = message};
  send(connection.route, connection.sent);
}

void ProtocolContext::repeat(const Connection& connection, const Resend& resend) {
  environment_.count(connection.route.device, Counter::kCmRetries);
  send(connection.route, connection.sent, resend);
}

void ProtocolContext::expect_answer(Connection& connection) {
  connection.retries_left = connection.max_retries;
  start_timer(connection, connection.response_timeout);
}

void ProtocolContext::start_timer(Connection& connection, Duration duration) {
  connection.timer = duration;
  table_.set_deadline(connection, environment_.now() + duration);
}

void ProtocolContext::close(Connection& connection) {
  /// The timeout code of the time for which the connection is kept: 4.3 s, after which a peer with
  /// usual values repeats its message.
  constexpr uint8_t kRemembered = 20;
  connection.state = State::kClosed;
  table_.give_back_remote_qpn(connection);
  start_timer(connection, cm_time(kRemembered));
}

// IBTA vol 1, 12.9: after the end of a connection, its packets can be in flight for two packet
// lifetimes and the peer's delay, which is the local ACK timeout. The peer chose this timeout, so
// it is limited to 34 s. During the wait, the peer's QP is not "already connected" (12.9.8.3.1): a
// new request from this QP is not stale, as in Linux.
void ProtocolContext::enter_timewait(Connection& connection) {
  constexpr uint8_t kLongest = 23;
  connection.state = State::kTimewait;
  table_.give_back_remote_qpn(connection);
  start_timer(connection, cm_time(std::min(connection.local_ack_timeout, kLongest)));
}

}  // namespace rocemu::engine::cm
