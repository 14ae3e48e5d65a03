#include "emulator/engine/cm/connection_table.h"

namespace rocemu::engine::cm {
namespace {

template <class Index, class Key>
void take(Index& index, std::optional<Key>& held, const Key& key, ConnectionId id) {
  if (held) index.erase(*held);
  held.reset();
  if (index.emplace(key, id).second) held = key;
}

template <class Index, class Key>
void give_back(Index& index, std::optional<Key>& held) {
  if (held) index.erase(*held);
  held.reset();
}

template <class Index, class Key>
ConnectionId look_up(const Index& index, const Key& key) {
  const auto found = index.find(key);
  return found != index.end() ? found->second : ConnectionId{};
}

}  // namespace

Connection* ConnectionTable::create(State state) {
  if (connections_.size() >= kLimit) return nullptr;
  // IBTA vol 1, 12.9: an ID is chosen so that the ID of a past connection is not reused soon. At
  // most 2^16 of 2^32 IDs are in use, so the loop rarely runs twice.
  ConnectionId id;
  do {
    id.value = static_cast<uint32_t>(random_.next());
  } while (id.value == 0 || connections_.contains(id));
  return &connections_.try_emplace(id, id, state).first->second;
}

Connection* ConnectionTable::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found != connections_.end() ? &found->second : nullptr;
}

const Connection* ConnectionTable::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() ? &found->second : nullptr;
}

Connection* ConnectionTable::find_owned(ConnectionId id) {
  Connection* connection = find(id);
  return connection != nullptr && !connection->orphan ? connection : nullptr;
}

Connection* ConnectionTable::find_owned(ConnectionId id, State state) {
  Connection* connection = find_owned(id);
  return connection != nullptr && connection->state == state ? connection : nullptr;
}

const Connection* ConnectionTable::find_owned(ConnectionId id) const {
  const Connection* connection = find(id);
  return connection != nullptr && !connection->orphan ? connection : nullptr;
}

void ConnectionTable::remove(Connection& connection) {
  set_deadline(connection, std::nullopt);
  give_back(remote_ids_, connection.remote_id_key);
  give_back(remote_qpns_, connection.remote_qpn_key);
  give_back(resolvers_, connection.resolver_key);
  if (connection.peer_to_peer) peer_to_peer_.erase(connection.id);
  connections_.erase(connection.id);
}

std::vector<ConnectionId> ConnectionTable::of_device(DeviceIndex device) const {
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection.route.device == device) ids.push_back(id);
  }
  return ids;
}

Connection* ConnectionTable::with_remote_id(const RemoteKey& key) {
  return find(look_up(remote_ids_, key));
}

Connection* ConnectionTable::with_remote_qpn(const RemoteKey& key) {
  return find(look_up(remote_qpns_, key));
}

Connection* ConnectionTable::with_resolver(const ResolverKey& key) {
  return find(look_up(resolvers_, key));
}

void ConnectionTable::take_remote_id(Connection& connection, const RemoteKey& key) {
  take(remote_ids_, connection.remote_id_key, key, connection.id);
}

void ConnectionTable::take_remote_qpn(Connection& connection, const RemoteKey& key) {
  take(remote_qpns_, connection.remote_qpn_key, key, connection.id);
}

void ConnectionTable::take_resolver(Connection& connection, const ResolverKey& key) {
  take(resolvers_, connection.resolver_key, key, connection.id);
}

void ConnectionTable::give_back_remote_qpn(Connection& connection) {
  give_back(remote_qpns_, connection.remote_qpn_key);
}

void ConnectionTable::add_peer_to_peer(Connection& connection) {
  connection.peer_to_peer = true;
  peer_to_peer_.insert(connection.id);
}

Connection* ConnectionTable::peer_to_peer(uint64_t service_id, DeviceIndex device,
                                          const wire::IpAddress& peer) {
  Connection* first = nullptr;
  std::erase_if(peer_to_peer_, [&](ConnectionId id) {
    Connection* connection = find(id);
    if (connection->state != State::kReqSent) return true;
    if (first == nullptr && connection->service_id == service_id &&
        connection->route.device == device && connection->route.remote == peer) {
      first = connection;
    }
    return false;
  });
  return first;
}

void ConnectionTable::set_deadline(Connection& connection, std::optional<Instant> at) {
  if (connection.deadline) deadlines_.erase({*connection.deadline, connection.id});
  connection.deadline = at;
  if (at) deadlines_.emplace(*at, connection.id);
}

std::optional<Instant> ConnectionTable::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

Connection* ConnectionTable::expire(Instant now) {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return nullptr;
  Connection* connection = find(deadlines_.begin()->second);
  set_deadline(*connection, std::nullopt);
  return connection;
}

}  // namespace rocemu::engine::cm
