// The connection manager of all devices of a fabric (IBTA vol 1, chapter 12): connections, their
// establishment and release, and service ID resolution, by MADs between the devices' QPs 1.
//
// The layer above (rdma_cm) calls the functions below and takes the events from next_event() until
// there is none, in every step. Calls return 0 or an errno: EINVAL for what cannot be in the
// connection's state, or does not exist, or has too much private data or a value out of its range.
//
// A connection's life, as seen from above:
//
//   active    connect()  kReply            ready()        connected   disconnect()
//   passive   listen()   kRequest          accept()       kEstablished  answer_disconnect()
//
// and from either side, until kTimewaitExit, destroy(). What is destroyed sends what the
// specification asks for (REJ, DREQ, DREP, SIDR_REP) and gives no further events; the manager keeps
// the rest (retries, timewait) to itself. After kRejected, kRequestError and kReplyError of what
// never was established the ID goes without a further event; to destroy it then changes nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection.h"
#include "emulator/engine/cm/connection_table.h"
#include "emulator/engine/cm/general_services.h"
#include "wire/packet.h"
#include "wire/result.h"

namespace rocemu::engine {
class Fabric;
}  // namespace rocemu::engine

namespace rocemu::engine::cm {

/// Attributes for ibv_modify_qp(3) and which of them are given.
struct QpAttributes {
  abi::QpAttr attr{};
  uint32_t mask = 0;  // QpAttrMask
};

class ConnectionManager {
 public:
  /// `seed` decides communication IDs and starting PSNs.
  ConnectionManager(Fabric& fabric, uint64_t seed);

  // ---- Listening ----
  /// EADDRINUSE: there is one with the same service ID, device and address.
  wire::Result<ListenerId, int> listen(const Listen& listen);
  /// Requests that came before stay.
  void stop_listening(ListenerId listener);

  // ---- Establishment ----
  /// Sends REQ. ENOMEM: too many connections.
  wire::Result<ConnectionId, int> connect(const Connect& connect);
  /// After kRequest: sends REP.
  int accept(ConnectionId id, const Accept& accept);
  /// After kReply: sends RTU. At most 224 bytes of private data.
  int ready(ConnectionId id, std::span<const uint8_t> private_data = {});
  /// After kRequest or kReply, and until the peer's RTU comes: sends REJ.
  int reject(ConnectionId id, const Reject& reject = {});
  /// After kRequest or kReply: sends MRA, the answer may take 4.096 us * 2^service_timeout.
  int delay(ConnectionId id, uint8_t service_timeout, std::span<const uint8_t> private_data = {});
  /// A message came over the QP before RTU did (IBV_EVENT_COMM_EST): as if RTU had come. EISCONN
  /// when it has.
  int notify_established(ConnectionId id);

  // ---- Release ----
  /// Sends DREQ. EINVAL unless established. At most 220 bytes of private data.
  int disconnect(ConnectionId id, std::span<const uint8_t> private_data = {});
  /// After kDisconnectRequest: sends DREP. At most 224 bytes of private data.
  int answer_disconnect(ConnectionId id, std::span<const uint8_t> private_data = {});
  void destroy(ConnectionId id);

  // ---- Service ID resolution ----
  /// Sends SIDR_REQ.
  wire::Result<ConnectionId, int> resolve(const Resolve& resolve);
  /// After kResolveRequest: sends SIDR_REP; the ID is gone.
  int answer_resolve(ConnectionId id, const Resolved& resolved);

  // ---- What is known of a connection ----
  /// From the next event on. The context of a connection that came with kRequest is 0 until then.
  int set_context(ConnectionId id, Context context);
  bool exists(ConnectionId id) const;
  /// Connections and resolutions, with those that only wait for their time to be over.
  size_t size() const { return table_.size(); }
  /// What the QP of this connection needs to go to `to` (INIT, RTR or RTS), as the messages agreed:
  /// INIT any time, RTR and RTS after kReply or kRequest. On the passive side accept() may change
  /// the starting PSN and the numbers of READs and atomics.
  wire::Result<QpAttributes, int> qp_attributes(ConnectionId id, abi::QpState to) const;

  /// The oldest event not taken yet.
  std::optional<Event> next_event();

  // ---- For the fabric ----
  /// A packet for QP 1 of the device.
  void receive(DeviceIndex device, const wire::Packet& packet);
  std::optional<Instant> next_deadline();
  /// Of any message of ours.
  bool awaits_answer() const;
  void expire_timers();
  /// The device is gone, and with it all that it has, without a message or an event.
  void forget(DeviceIndex device);

 private:
  struct Listener {
    ListenerId id;
    Listen options;
  };
  /// A message and what it came with.
  struct Arrival {
    DeviceIndex device;
    Route back;  // to where it came from
    uint64_t transaction_id;
  };

  // ---- connection_manager.cc: what all parts share ----
  /// Of the layer above; nullptr if there is none, or it is not in that state.
  Connection* find(ConnectionId id);
  Connection* find(ConnectionId id, State state);
  void tell(Connection& connection, EventKind kind,
            const std::optional<wire::CmMessage>& message = std::nullopt);
  void send(const Route& route, const wire::CmMad& mad);
  void send(Connection& connection, uint64_t transaction_id, const wire::CmMessage& message);
  /// The latest message once more.
  void repeat(Connection& connection);
  /// The latest message is repeated until something stops it or there were enough.
  void expect_answer(Connection& connection);
  void stop_waiting(Connection& connection) { table_.set_deadline(connection, std::nullopt); }
  void on_timer(Connection& connection);
  void give_up(Connection& connection);
  /// It never was established, or not for the peer.
  void close(Connection& connection);
  void drop(DeviceIndex device);
  const Listener* listener_for(uint64_t service_id, DeviceIndex device,
                               const wire::IpAddress& address) const;

  // ---- establishment.cc ----
  void on_message(const Arrival& from, const wire::CmReq& req);
  void on_message(const Arrival& from, const wire::CmRep& rep);
  void on_message(const Arrival& from, const wire::CmRtu& rtu);
  void on_message(const Arrival& from, const wire::CmMra& mra);
  void on_repeated_request(Connection& connection, const Arrival& from, const wire::CmReq& req);
  void on_first_reply(Connection& connection, const Arrival& from, const wire::CmRep& rep);
  /// The connection of our own request to which this one of a peer is the counterpart.
  Connection* peer_of(const Arrival& from, const wire::CmReq& req);
  std::optional<Reject> reason_to_refuse(const Arrival& from, const wire::CmReq& req) const;
  void become_passive(Connection& connection, const Arrival& from, const wire::CmReq& req);
  void establish(Connection& connection, const std::optional<wire::CmMessage>& message);

  // ---- rejection.cc ----
  void on_message(const Arrival& from, const wire::CmRej& rej);
  void send_reject(Connection& connection, const Reject& reject);
  void reject_request(const Arrival& from, const wire::CmReq& req, const Reject& reject);
  void reject_unknown(const Arrival& from, uint32_t our_id, uint32_t their_id,
                      wire::CmRejected message);
  Connection* rejected_by(const wire::CmRej& rej);

  // ---- release.cc ----
  void on_message(const Arrival& from, const wire::CmDreq& dreq);
  void on_message(const Arrival& from, const wire::CmDrep& drep);
  void on_message(const Arrival& from, const wire::CmLap& lap);
  void on_message(const Arrival& from, const wire::CmApr& apr);
  void send_disconnect(Connection& connection, const wire::CmDreq& dreq);
  void send_disconnect_reply(Connection& connection, const wire::CmDrep& drep);
  void enter_timewait(Connection& connection);
  /// IBTA vol 1, 12.9.8.3.1: the peer shows that it does not know of this connection any more.
  void on_stale(Connection& connection);

  // ---- resolution.cc ----
  void on_message(const Arrival& from, const wire::CmSidrReq& req);
  void on_message(const Arrival& from, const wire::CmSidrRep& rep);
  void send_resolved(Connection& connection, const wire::CmSidrRep& rep);

  Fabric& fabric_;
  GeneralServices general_services_;
  ConnectionTable table_;
  std::map<ListenerId, uint64_t> listeners_;  // by the service ID they are for
  std::map<uint64_t, std::vector<Listener>> services_;
  uint32_t last_listener_ = 0;
  std::set<ConnectionId> peers_;  // peer to peer, while they may still become passive
  std::deque<Event> events_;
};

}  // namespace rocemu::engine::cm
