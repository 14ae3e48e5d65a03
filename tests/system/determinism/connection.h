// Connections of librdmacm, for the programs of this folder.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <vector>

namespace rocemu::determinism {

/// An event channel. Each wait is for one event, which must be the expected one.
class CmChannel {
 public:
  CmChannel();
  ~CmChannel();
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;

  rdma_event_channel* get() const { return channel_; }
  /// Returns the id that the event names. For a connect request, this is the new id.
  rdma_cm_id* expect(rdma_cm_event_type type);

 private:
  rdma_event_channel* channel_;
};

/// One end of a connection: an id with a QP and a CQ for each of its queues.
class Connection {
 public:
  static constexpr uint32_t kReceives = 4;

  /// Creates the QP, and posts receives.
  explicit Connection(rdma_cm_id* id);
  /// Destroys the id.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  rdma_cm_id* id() const { return id_; }
  /// Sends a message and waits for its completion.
  void send();
  /// Waits for a message, and posts the receive again.
  void receive();

 private:
  rdma_cm_id* id_;
  std::vector<uint8_t> buffer_;
  ibv_mr* mr_ = nullptr;
};

class Listener {
 public:
  /// Listens at a port that the NIC chooses.
  explicit Listener(CmChannel& channel);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;  // the port in network byte order

 private:
  rdma_cm_id* id_ = nullptr;
};

/// Accepts a connect request. When this returns, the connection is accepted, but not yet
/// established.
void accept(Connection& connection);

/// Returns an id whose address and route are resolved.
rdma_cm_id* resolve(CmChannel& channel, uint16_t port);
/// Waits until the connection is established.
void establish(CmChannel& channel, Connection& connection);

}  // namespace rocemu::determinism
