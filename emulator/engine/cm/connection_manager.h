// The connection manager of all devices of a fabric (IBTA vol 1, chapter 12): connections, their
// establishment and release, and service ID resolution, by MADs between the devices' QPs 1.
//
// This class owns the parts and passes calls and messages on to the stage of the protocol that they
// belong to: establishment, rejection, release, resolution. ProtocolContext has the parts that
// these stages share.
//
// The layer above (rdma_cm) calls the functions below and takes the events from next_event() until
// there is none, in every step. Calls return 0 or an errno. EINVAL means that the connection does
// not exist or has the wrong state, or that an argument is out of range or has too much private
// data.
//
// The calls and events during a connection's life:
//
//   active    connect()  kReply            ready()        connected   disconnect()
//   passive   listen()   kRequest          accept()       kEstablished  answer_disconnect()
//
// Until kTimewaitExit, either side may call destroy(). The manager then sends the message that the
// specification requires (REJ, DREQ, DREP, SIDR_REP), and handles retries and timewait without
// further events. If a connection that was never established gets kRejected, kRequestError or
// kReplyError, its ID disappears without a further event, and destroying it has no effect.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/abi/control.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/cm/agreed_attributes.h"
#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection_table.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/cm/event_queue.h"
#include "emulator/engine/cm/general_services.h"
#include "emulator/engine/cm/listeners.h"
#include "emulator/engine/cm/protocol_context.h"
#include "wire/packet.h"
#include "wire/result.h"

namespace rocemu::engine::cm {

class ConnectionManager {
 public:
  /// `seed` determines the communication IDs and starting PSNs.
  ConnectionManager(Environment& environment, uint64_t seed);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  // ---- Listening ----
  /// Adds a listener. Returns EADDRINUSE if a listener has the same service ID, device and address.
  wire::Result<ListenerId, int> listen(const Listen& listen);
  /// Removes the listener. Requests that arrived before the call are not affected.
  void stop_listening(ListenerId listener);

  // ---- Establishment ----
  /// Sends REQ. Returns ENOMEM if there are too many connections.
  wire::Result<ConnectionId, int> connect(const Connect& connect);
  /// Sends REP, after kRequest.
  int accept(ConnectionId id, const Accept& accept);
  /// Sends RTU, after kReply. Takes at most 224 bytes of private data.
  int ready(ConnectionId id, std::span<const uint8_t> private_data = {});
  /// Sends REJ. May be called after kRequest or kReply, until the peer's RTU arrives.
  int reject(ConnectionId id, const Reject& reject = {});
  /// Sends MRA, after kRequest or kReply. The peer then waits 4.096 us * 2^service_timeout longer
  /// for the answer.
  int delay(ConnectionId id, uint8_t service_timeout, std::span<const uint8_t> private_data = {});
  /// Treats the RTU as received, because a message arrived over the QP before the RTU
  /// (IBV_EVENT_COMM_EST). Returns EISCONN if the RTU has been received.
  int notify_established(ConnectionId id);

  // ---- Release ----
  /// Sends DREQ. Returns EINVAL unless the connection is established. Takes at most 220 bytes of
  /// private data.
  int disconnect(ConnectionId id, std::span<const uint8_t> private_data = {});
  /// Sends DREP, after kDisconnectRequest. Takes at most 224 bytes of private data.
  int answer_disconnect(ConnectionId id, std::span<const uint8_t> private_data = {});
  void destroy(ConnectionId id);

  // ---- Service ID resolution ----
  /// Sends SIDR_REQ.
  wire::Result<ConnectionId, int> resolve(const Resolve& resolve);
  /// Sends SIDR_REP, after kResolveRequest. Afterwards the ID no longer exists.
  int answer_resolve(ConnectionId id, const Resolved& resolved);

  // ---- Queries and attributes of a connection ----
  /// Sets the context that later events contain. Until this call, the context is 0 for a connection
  /// that kRequest reported.
  int set_context(ConnectionId id, Context context);
  bool exists(ConnectionId id) const;
  /// Returns the number of connections and resolutions, including those that have ended and are
  /// kept until a timer expires.
  size_t size() const { return table_.size(); }
  /// Returns the attributes that the QP of this connection needs to enter the state `to` (INIT, RTR
  /// or RTS), according to the received messages: INIT is possible at any time, RTR and RTS after
  /// kReply or kRequest. On the passive side, accept() may still change the starting PSN and the
  /// numbers of READs and atomics.
  wire::Result<QpAttributes, int> qp_attributes(ConnectionId id, abi::QpState to) const;

  /// Removes and returns the oldest event.
  std::optional<Event> next_event();

  // ---- Functions that the fabric calls ----
  /// Handles a packet for QP 1 of the device.
  void receive(DeviceIndex device, const wire::Packet& packet);
  std::optional<Instant> next_deadline() const { return table_.next_deadline(); }
  /// Returns whether a message of this side still waits for its answer.
  bool awaits_answer() const;
  void expire_timers();
  /// Removes all connections of a device that was removed, without sending a message or an event.
  void forget(DeviceIndex device);

 private:
  GeneralServices general_services_;
  ConnectionTable table_;
  Listeners listeners_;
  EventQueue events_;
  ProtocolContext context_;
};

}  // namespace rocemu::engine::cm
