#include "emulator/engine/cm/connection_manager.h"

#include <cerrno>
#include <variant>

#include "emulator/engine/cm/establishment.h"
#include "emulator/engine/cm/rejection.h"
#include "emulator/engine/cm/release.h"
#include "emulator/engine/cm/resolution.h"
#include "emulator/engine/cm/timeouts.h"

namespace rocemu::engine::cm {
namespace {

/// Passes each message to the stage of the protocol that handles it.
struct Dispatch {
  ProtocolContext& context;
  const Listeners& listeners;
  const Arrival& from;

  void operator()(const wire::CmReq& req) const {
    establishment::on_req(context, listeners, from, req);
  }
  void operator()(const wire::CmRep& rep) const { establishment::on_rep(context, from, rep); }
  void operator()(const wire::CmRtu& rtu) const { establishment::on_rtu(context, from, rtu); }
  void operator()(const wire::CmMra& mra) const { establishment::on_mra(context, from, mra); }
  void operator()(const wire::CmRej& rej) const { rejection::on_rej(context, from, rej); }
  void operator()(const wire::CmDreq& dreq) const { release::on_dreq(context, from, dreq); }
  void operator()(const wire::CmDrep& drep) const { release::on_drep(context, from, drep); }
  void operator()(const wire::CmLap& lap) const { release::on_lap(context, from, lap); }
  void operator()(const wire::CmApr& apr) const { release::on_apr(context, from, apr); }
  void operator()(const wire::CmSidrReq& req) const {
    resolution::on_sidr_req(context, listeners, from, req);
  }
  void operator()(const wire::CmSidrRep& rep) const { resolution::on_sidr_rep(context, from, rep); }
};

bool awaits_answer(const Connection& connection) {
  switch (connection.state) {
    case State::kReqSent:
    case State::kRepSent:
    case State::kDreqSent:
    case State::kSidrReqSent:
      return true;
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kEstablished:
    case State::kDreqReceived:
    case State::kTimewait:
    case State::kClosed:
    case State::kSidrReqReceived:
      break;
  }
  return false;
}

}  // namespace

ConnectionManager::ConnectionManager(Environment& environment, uint64_t seed)
    : general_services_(environment),
      table_(seed),
      context_(environment, general_services_, table_, events_) {}

// ---- Listening ----

wire::Result<ListenerId, int> ConnectionManager::listen(const Listen& listen) {
  return listeners_.add(listen);
}

void ConnectionManager::stop_listening(ListenerId listener) {
  listeners_.remove(listener);
}

// ---- Establishment ----

wire::Result<ConnectionId, int> ConnectionManager::connect(const Connect& connect) {
  return establishment::connect(context_, connect);
}

int ConnectionManager::accept(ConnectionId id, const Accept& accept) {
  return establishment::accept(context_, id, accept);
}

int ConnectionManager::ready(ConnectionId id, std::span<const uint8_t> private_data) {
  return establishment::ready(context_, id, private_data);
}

int ConnectionManager::reject(ConnectionId id, const Reject& reject) {
  return rejection::reject(context_, id, reject);
}

int ConnectionManager::delay(ConnectionId id, uint8_t service_timeout,
                             std::span<const uint8_t> private_data) {
  return establishment::delay(context_, id, service_timeout, private_data);
}

int ConnectionManager::notify_established(ConnectionId id) {
  return establishment::notify_established(context_, id);
}

// ---- Release ----

int ConnectionManager::disconnect(ConnectionId id, std::span<const uint8_t> private_data) {
  return release::disconnect(context_, id, private_data);
}

int ConnectionManager::answer_disconnect(ConnectionId id, std::span<const uint8_t> private_data) {
  return release::answer_disconnect(context_, id, private_data);
}

void ConnectionManager::destroy(ConnectionId id) {
  Connection* connection = table_.find_owned(id);
  if (connection == nullptr) return;
  connection->orphan = true;
  switch (connection->state) {
    case State::kReqSent:
      return timeouts::give_up(context_, *connection);
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kRepSent:
      rejection::send(context_, *connection, {});
      return context_.close(*connection);
    case State::kEstablished:
      return release::send_dreq(context_, *connection, {});
    case State::kDreqReceived:
      return release::send_drep(context_, *connection, {});
    case State::kSidrReqSent:
      return table_.remove(*connection);
    case State::kSidrReqReceived:
      return resolution::send_sidr_rep(
          context_, *connection,
          {.status = static_cast<uint8_t>(wire::SidrStatus::kRejectedByProvider)});
    case State::kDreqSent:  // continues by itself
    case State::kTimewait:
    case State::kClosed:
      return;
  }
}

// ---- Service ID resolution ----

wire::Result<ConnectionId, int> ConnectionManager::resolve(const Resolve& resolve) {
  return resolution::resolve(context_, resolve);
}

int ConnectionManager::answer_resolve(ConnectionId id, const Resolved& resolved) {
  return resolution::answer(context_, id, resolved);
}

// ---- State of a connection ----

int ConnectionManager::set_context(ConnectionId id, Context context) {
  Connection* connection = table_.find_owned(id);
  if (connection == nullptr) return EINVAL;
  connection->context = context;
  return 0;
}

bool ConnectionManager::exists(ConnectionId id) const {
  return table_.find_owned(id) != nullptr;
}

wire::Result<QpAttributes, int> ConnectionManager::qp_attributes(ConnectionId id,
                                                                 abi::QpState to) const {
  const Connection* connection = table_.find_owned(id);
  if (connection == nullptr) return EINVAL;
  return agreed_attributes(*connection, to);
}

std::optional<Event> ConnectionManager::next_event() {
  return events_.take();
}

// ---- Functions that the fabric calls ----

void ConnectionManager::receive(DeviceIndex device, const wire::Packet& packet) {
  const auto bytes = general_services_.admit(device, packet);
  if (!bytes) return;
  if (events_.is_full()) return context_.drop(device);  // the sender will repeat the message
  const auto mad = wire::parse_cm_mad(*bytes);
  if (mad) {
    const Arrival from{.device = device,
                       .back = general_services_.route_back(device, packet),
                       .transaction_id = mad->transaction_id};
    return std::visit(Dispatch{context_, listeners_, from}, mad->message);
  }
  if (mad.error() == wire::MadError::kReservedValue || mad.error() == wire::MadError::kBadLength) {
    return context_.environment().count(device, Counter::kDroppedMalformed);
  }
  general_services_.refuse(device, packet);
}

bool ConnectionManager::awaits_answer() const {
  return table_.any([](const Connection& connection) { return cm::awaits_answer(connection); });
}

void ConnectionManager::expire_timers() {
  timeouts::expire(context_);
}

void ConnectionManager::forget(DeviceIndex device) {
  for (const ConnectionId id : table_.of_device(device)) table_.remove(*table_.find(id));
}

}  // namespace rocemu::engine::cm
