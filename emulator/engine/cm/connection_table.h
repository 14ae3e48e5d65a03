// The table of all connections. It finds them by their ID, by the peer's identifiers, and by their
// deadlines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/engine/base/random.h"
#include "emulator/engine/cm/connection.h"

namespace rocemu::engine::cm {

class ConnectionTable {
 public:
  /// The maximum number of connections, including half-open ones. Further requests are rejected for
  /// lack of resources.
  static constexpr size_t kLimit = 65536;

  explicit ConnectionTable(uint64_t seed) : random_(seed) {}

  /// Creates a connection. Returns nullptr if the table is full.
  Connection* create(State state);
  Connection* find(ConnectionId id);
  const Connection* find(ConnectionId id) const;
  /// Returns the connection, or nullptr if it does not exist, the layer above has destroyed it, or
  /// it is not in the state `state`.
  Connection* find_owned(ConnectionId id);
  Connection* find_owned(ConnectionId id, State state);
  const Connection* find_owned(ConnectionId id) const;
  void remove(Connection& connection);

  /// Return the connection that owns this key of the peer, or null. If several connections have
  /// the same key, the first one owns it until it releases the key.
  Connection* with_remote_id(const RemoteKey& key);
  Connection* with_remote_qpn(const RemoteKey& key);
  Connection* with_resolver(const ResolverKey& key);
  void take_remote_id(Connection& connection, const RemoteKey& key);
  void take_remote_qpn(Connection& connection, const RemoteKey& key);
  void take_resolver(Connection& connection, const ResolverKey& key);
  void give_back_remote_qpn(Connection& connection);

  /// Adds a peer-to-peer connection that has sent its REQ. Until the connection's state changes, a
  /// REQ from the peer can make this side the passive one (IBTA vol 1, 12.10.4).
  void add_peer_to_peer(Connection& connection);
  /// Returns the first peer-to-peer connection whose own REQ is the counterpart of the peer's REQ.
  Connection* peer_to_peer(uint64_t service_id, DeviceIndex device, const wire::IpAddress& peer);

  void set_deadline(Connection& connection, std::optional<Instant> at);
  std::optional<Instant> next_deadline() const;
  /// Returns the first connection whose deadline is not after `now`, and removes its deadline.
  /// Among equal deadlines, the connection with the lowest ID is first.
  Connection* expire(Instant now);

  /// Returns the IDs of the device's connections, in ascending order.
  std::vector<ConnectionId> of_device(DeviceIndex device) const;
  size_t size() const { return connections_.size(); }
  template <class Predicate>
  bool any(Predicate predicate) const {
    for (const auto& [id, connection] : connections_) {
      if (predicate(connection)) return true;
    }
    return false;
  }
  wire::Psn random_psn() { return wire::Psn(static_cast<uint32_t>(random_.next() >> 32)); }

 private:
  Random random_;
  std::map<ConnectionId, Connection> connections_;
  std::map<RemoteKey, ConnectionId> remote_ids_;
  std::map<RemoteKey, ConnectionId> remote_qpns_;
  std::map<ResolverKey, ConnectionId> resolvers_;
  std::set<ConnectionId> peer_to_peer_;
  std::set<std::pair<Instant, ConnectionId>> deadlines_;
};

}  // namespace rocemu::engine::cm
