#include "emulator/engine/cm/connection_manager.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::cm {
namespace {

constexpr size_t kMaxListeners = 65536;
/// While the layer above has not looked at that many events, further MADs are dropped; their
/// senders will repeat them.
constexpr size_t kMaxEvents = 4096;

/// How particular a listener is about where a request came to.
int particularity(const Listen& listen) {
  if (listen.address) return 2;
  return listen.device ? 1 : 0;
}

bool same_place(const Listen& a, const Listen& b) {
  return a.device == b.device && a.address == b.address;
}

}  // namespace

ConnectionManager::ConnectionManager(Fabric& fabric, uint64_t seed)
    : fabric_(fabric), general_services_(fabric), table_(seed) {}

// ---- Listening ----

wire::Result<ListenerId, int> ConnectionManager::listen(const Listen& listen) {
  if (listeners_.size() >= kMaxListeners) return ENOMEM;
  std::vector<Listener>& there = services_[listen.service_id];
  for (const Listener& other : there) {
    if (same_place(other.options, listen)) return EADDRINUSE;
  }
  do {
    ++last_listener_;
  } while (last_listener_ == 0 || listeners_.contains(ListenerId{last_listener_}));
  const ListenerId id{last_listener_};
  there.push_back({id, listen});
  listeners_[id] = listen.service_id;
  return id;
}

void ConnectionManager::stop_listening(ListenerId id) {
  const auto found = listeners_.find(id);
  if (found == listeners_.end()) return;
  const auto service = services_.find(found->second);
  std::erase_if(service->second, [&](const Listener& listener) { return listener.id == id; });
  if (service->second.empty()) services_.erase(service);
  listeners_.erase(found);
}

const ConnectionManager::Listener* ConnectionManager::listener_for(
    uint64_t service_id, DeviceIndex device, const wire::IpAddress& address) const {
  const auto service = services_.find(service_id);
  if (service == services_.end()) return nullptr;
  const Listener* best = nullptr;
  for (const Listener& listener : service->second) {
    const Listen& options = listener.options;
    if (options.device && *options.device != device) continue;
    if (options.address && *options.address != address) continue;
    if (best == nullptr || particularity(options) > particularity(best->options)) best = &listener;
  }
  return best;
}

// ---- What is known ----

Connection* ConnectionManager::find(ConnectionId id) {
  Connection* connection = table_.find(id);
  return connection != nullptr && !connection->orphan ? connection : nullptr;
}

Connection* ConnectionManager::find(ConnectionId id, State state) {
  Connection* connection = find(id);
  return connection != nullptr && connection->state == state ? connection : nullptr;
}

int ConnectionManager::set_context(ConnectionId id, Context context) {
  Connection* connection = find(id);
  if (connection == nullptr) return EINVAL;
  connection->context = context;
  return 0;
}

bool ConnectionManager::exists(ConnectionId id) const {
  const Connection* connection = table_.find(id);
  return connection != nullptr && !connection->orphan;
}

void ConnectionManager::forget(DeviceIndex device) {
  for (const ConnectionId id : table_.of_device(device)) {
    peers_.erase(id);
    table_.remove(*table_.find(id));
  }
}

// ---- Events ----

void ConnectionManager::tell(Connection& connection, EventKind kind,
                             const std::optional<wire::CmMessage>& message) {
  if (connection.orphan) return;
  events_.push_back({.kind = kind,
                     .connection = connection.id,
                     .context = connection.context,
                     .listener = std::nullopt,
                     .route = connection.route,
                     .answered = false,
                     .message = message});
}

std::optional<Event> ConnectionManager::next_event() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

// ---- Messages out ----

void ConnectionManager::send(const Route& route, const wire::CmMad& mad) {
  std::array<uint8_t, wire::kMadSize> bytes;
  wire::emit(mad, bytes);
  general_services_.send(route, bytes);
}

void ConnectionManager::send(Connection& connection, uint64_t transaction_id,
                             const wire::CmMessage& message) {
  connection.sent = {.transaction_id = transaction_id, .message = message};
  send(connection.route, connection.sent);
}

void ConnectionManager::repeat(Connection& connection) {
  fabric_.objects.devices[connection.route.device].counters.add(Counter::kCmRetries);
  send(connection.route, connection.sent);
}

// ---- Time ----

void ConnectionManager::expect_answer(Connection& connection) {
  connection.retries_left = connection.max_retries;
  table_.set_deadline(connection, fabric_.step.now() + connection.response_timeout);
}

std::optional<Instant> ConnectionManager::next_deadline() {
  return table_.next_deadline();
}

void ConnectionManager::expire_timers() {
  while (Connection* connection = table_.expire(fabric_.step.now())) on_timer(*connection);
}

void ConnectionManager::on_timer(Connection& connection) {
  switch (connection.state) {
    case State::kReqSent:
    case State::kRepSent:
    case State::kDreqSent:
    case State::kSidrReqSent:
      if (connection.retries_left == 0) return give_up(connection);
      --connection.retries_left;
      repeat(connection);
      return table_.set_deadline(connection, fabric_.step.now() + connection.response_timeout);
    case State::kTimewait:
      tell(connection, EventKind::kTimewaitExit);
      return table_.remove(connection);
    case State::kClosed:
      return table_.remove(connection);
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kEstablished:
    case State::kDreqReceived:
    case State::kSidrReqReceived:
      return;  // these wait for the consumer, however long
  }
}

void ConnectionManager::give_up(Connection& connection) {
  if (connection.state == State::kReqSent || connection.state == State::kRepSent) {
    const bool active = connection.state == State::kReqSent;
    // IBTA vol 1, 12.6.7.2: with "timeout" the additional information is the sender's CA GUID, by
    // which a recipient finds the connection that no message of its own ever named.
    std::array<uint8_t, 8> guid;
    uint64_t value = node_guid(fabric_.objects.devices[connection.route.device].config);
    for (auto byte = guid.rbegin(); byte != guid.rend(); ++byte, value >>= 8) {
      *byte = static_cast<uint8_t>(value);
    }
    send_reject(connection, {.reason = static_cast<uint16_t>(wire::CmRejectReason::kTimeout),
                             .info = guid,
                             .private_data = {}});
    tell(connection, active ? EventKind::kRequestError : EventKind::kReplyError);
    return close(connection);
  }
  if (connection.state == State::kDreqSent) {
    tell(connection, EventKind::kDisconnectError);
    return enter_timewait(connection);
  }
  tell(connection, EventKind::kResolveError);
  table_.remove(connection);
}

void ConnectionManager::close(Connection& connection) {
  /// How long the end of what never was established is remembered: 4.3 s, what a peer with usual
  /// values waits before it repeats something.
  constexpr uint8_t kRemembered = 20;
  connection.state = State::kClosed;
  table_.give_back_remote_qpn(connection);
  table_.set_deadline(connection, fabric_.step.now() + cm_time(kRemembered));
}

// ---- Messages in ----

void ConnectionManager::drop(DeviceIndex device) {
  fabric_.objects.devices[device].counters.add(Counter::kMadsDropped);
}

void ConnectionManager::receive(DeviceIndex device, const wire::Packet& packet) {
  const auto bytes = general_services_.admit(device, packet);
  if (!bytes) return;
  if (events_.size() >= kMaxEvents) return drop(device);
  const auto mad = wire::parse_cm_mad(*bytes);
  if (mad) {
    const Arrival from{.device = device,
                       .back = general_services_.route_back(device, packet),
                       .transaction_id = mad->transaction_id};
    return std::visit([&](const auto& message) { on_message(from, message); }, mad->message);
  }
  if (mad.error() == wire::MadError::kReservedValue || mad.error() == wire::MadError::kBadLength) {
    return fabric_.objects.devices[device].counters.add(Counter::kDroppedMalformed);
  }
  general_services_.refuse(device, packet);
}

bool ConnectionManager::awaits_answer() const {
  return table_.any([](const Connection& connection) {
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
  });
}

}  // namespace rocemu::engine::cm
