// Tests rdma_notify(3), rdma_connect(3), rdma_accept(3), rdma_reject(3), rdma_disconnect(3),
// rdma_establish(3), rdma_listen(3), rdma_destroy_id(3) and rdma_migrate_id(3).
#include <vector>

#include "tests/system/rdmacm_fixture.h"

namespace rocemu::system_test {
namespace {

// ---- rdma_notify(3) ---------------------------------------------------------------------------

class RdmaNotify : public RdmaCmTest {};

// "This routine forces the connection into an established state", "Calling this routine ensures the
// delivery of the RDMA_CM_EVENT_ESTABLISHED event to the application."
TEST_F(RdmaNotify, ForcesTheConnectionIntoAnEstablishedState) {
  request_connection();
  accept();
  ASSERT_TRUE(passive.is_empty()) << "the client has not said that it is ready";
  ASSERT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), 0) << std::strerror(errno);
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  // "...in the rare situation where the connection never forms on its own": here the client is only
  // late.
  ASSERT_EQ(rdma_establish(client), 0);
  EXPECT_EQ(rdma_disconnect(client), 0);
  passive.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(RdmaNotify, OfAConnectionThatIsEstablishedSaysSo) {
  establish();
  EXPECT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), -1);
  EXPECT_EQ(errno, EISCONN);
  EXPECT_TRUE(passive.is_empty());
}

// "Events that should be reported to the CM are: IB_EVENT_COMM_EST."
TEST_F(RdmaNotify, OfAnyOtherEventIsRefused) {
  request_connection();
  accept();
  EXPECT_EQ(rdma_notify(server, IBV_EVENT_SQ_DRAINED), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RdmaNotify, NeedsAConnection) {
  EXPECT_EQ(rdma_notify(listener, IBV_EVENT_COMM_EST), -1);
  EXPECT_EQ(errno, EINVAL);
}

// ---- Connections ------------------------------------------------------------------------------

class RdmaConnect : public RdmaCmTest {};

// rdma_connect(3): "private_data: References a user-controlled data buffer. The contents of the
// buffer are copied and transparently passed to the remote side as part of the communication
// request."
TEST_F(RdmaConnect, PassesPrivateDataOfBothSides) {
  request_connection("from the client");
  EXPECT_EQ(passive.last_private_data.substr(0, 15), "from the client");
  EXPECT_EQ(passive.last_private_data.size(), 56u) << "all that a request has room for";
  accept("from the server");
  EXPECT_EQ(active.last_private_data.substr(0, 15), "from the server");
  EXPECT_EQ(active.last_private_data.size(), 196u);
}

// "private_data_len: Specifies the size of the user-controlled data buffer... may be larger": data
// that does not fit into a request cannot be sent.
TEST_F(RdmaConnect, WithTooMuchPrivateDataIsRefused) {
  const std::string data(57, 'x');
  rdma_conn_param param = parameters(data);
  EXPECT_EQ(rdma_connect(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param.private_data_len = 56;
  EXPECT_EQ(rdma_connect(client, &param), 0) << "and may be tried again";
  server = passive.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
}

// rdma_reject(3): "Called from the listening side to reject a connection". rdma_get_cm_event(3):
// "RDMA_CM_EVENT_REJECTED Indicates that a connection request or response was rejected".
TEST_F(RdmaConnect, IsToldOfARejection) {
  request_connection();
  ASSERT_EQ(rdma_reject(server, "no", 2), 0);
  active.expect(RDMA_CM_EVENT_REJECTED, 28);  // IBTA: consumer reject
  EXPECT_EQ(active.last_private_data.substr(0, 2), "no");
  EXPECT_EQ(active.last_private_data.size(), 148u);
}

TEST_F(RdmaConnect, IsRejectedWhenTheNewIdIsDestroyed) {
  request_connection();
  ASSERT_EQ(rdma_destroy_id(server), 0);
  server = nullptr;
  active.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST_F(RdmaConnect, IsRejectedWhenNobodyListensAnyMore) {
  ASSERT_EQ(rdma_destroy_id(listener), 0);
  listener = nullptr;
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  active.expect(RDMA_CM_EVENT_REJECTED, 8);  // IBTA vol 1, 12.6.7.2: invalid service ID
}

// rdma_disconnect(3): "Disconnects a connection and transitions any associated QP to the error
// state... this call may be made from either the client or server side". rdma_get_cm_event(3): both
// sides get RDMA_CM_EVENT_DISCONNECTED.
TEST_F(RdmaConnect, EndsWithADisconnectionOnBothSides) {
  establish();
  ASSERT_EQ(rdma_disconnect(client), 0);
  passive.expect(RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_EQ(rdma_disconnect(server), 0);
  active.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(RdmaConnect, EndsWithADisconnectionWhenThePeerIsDestroyed) {
  establish();
  ASSERT_EQ(rdma_destroy_id(client), 0);
  client = nullptr;
  passive.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(RdmaConnect, NeedsADeviceToAcceptAndAConnectionToReject) {
  rdma_conn_param param = parameters();
  EXPECT_EQ(rdma_accept(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(client, nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL);
}

// ---- rdma_migrate_id(3) -----------------------------------------------------------------------

class RdmaMigrateId : public RdmaCmTest {};

// "This routine migrates a communication identifier to a different event channel and moves any
// pending events associated with the rdma_cm_id to the new channel."
TEST_F(RdmaMigrateId, MovesPendingEventsToTheNewChannel) {
  request_connection();
  accept();
  ASSERT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), 0);
  EventChannel other;
  ASSERT_EQ(rdma_migrate_id(server, other.get()), 0) << std::strerror(errno);
  EXPECT_TRUE(passive.is_empty());
  other.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_disconnect(server), 0);
  EXPECT_EQ(rdma_destroy_id(server), 0);
  server = nullptr;
}

// ---- rdma_destroy_id(3) -----------------------------------------------------------------------

class RdmaDestroyId : public RdmaCmTest {};

TEST_F(RdmaDestroyId, TakesItsPendingEventsAlong) {
  request_connection();
  accept();
  ASSERT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), 0);
  ASSERT_FALSE(passive.is_empty());
  ASSERT_EQ(rdma_destroy_id(server), 0);
  server = nullptr;
  EXPECT_TRUE(passive.is_empty());
}

TEST_F(RdmaDestroyId, OfAListenerRejectsUnreadRequests) {
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  ASSERT_EQ(rdma_destroy_id(listener), 0);
  listener = nullptr;
  active.expect(RDMA_CM_EVENT_REJECTED, 28);
}

// ---- rdma_listen(3) ---------------------------------------------------------------------------

class RdmaListen : public RdmaCmTest {
 protected:
  static constexpr int kBacklog = 8;  // the fixture's

  void TearDown() override {
    for (rdma_cm_id* id : others) EXPECT_EQ(rdma_destroy_id(id), 0) << std::strerror(errno);
    RdmaCmTest::TearDown();
  }
  /// Returns another id, which has requested a connection.
  rdma_cm_id* ask() {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(active.get(), &id, nullptr, RDMA_PS_TCP), 0);
    others.push_back(id);
    sockaddr_in to = loopback(rdma_get_src_port(listener));
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
    active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id, 2000), 0);
    active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param param = parameters();
    EXPECT_EQ(rdma_connect(id, &param), 0) << std::strerror(errno);
    return id;
  }

  std::vector<rdma_cm_id*> others;
};

// "backlog: backlog of incoming connection requests": the number of requests that the program has
// not read yet.
TEST_F(RdmaListen, RefusesMoreRequestsThanItsBacklogUntilOneIsRead) {
  for (int i = 0; i < kBacklog; ++i) ask();
  EXPECT_TRUE(active.is_empty());
  constexpr int kConsumerReject = 28;  // IBTA vol 1, 12.6.7.2
  rdma_cm_id* refused = ask();
  EXPECT_EQ(active.expect(RDMA_CM_EVENT_REJECTED, kConsumerReject), refused);
  others.push_back(passive.expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  ask();
  EXPECT_TRUE(active.is_empty()) << "there is room again";
  refused = ask();
  EXPECT_EQ(active.expect(RDMA_CM_EVENT_REJECTED, kConsumerReject), refused);
  for (int i = 0; i < kBacklog; ++i) {
    others.push_back(passive.expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  }
  EXPECT_TRUE(passive.is_empty());
}

}  // namespace
}  // namespace rocemu::system_test
