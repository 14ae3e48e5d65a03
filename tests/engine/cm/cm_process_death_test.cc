// Tests the death of a process in each state of a connection: which events its peer gets, and that
// nothing of the process remains. For the engine, a death is the end of the process's event
// channel.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using abi::ucma::Command;
using abi::ucma::EventType;
using abi::ucma::PortSpace;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;
constexpr uint16_t kPort = 7471;
constexpr uint32_t kRejConsumer = 28;  // IBTA vol 1, 12.6.7.2: consumer reject
constexpr uint32_t kRejNoService = 8;  // invalid service ID
constexpr uint32_t kSidrRejected = 2;

class ProcessDeath : public testing::Test {
 protected:
  void SetUp() override { listen(PortSpace::kTcp); }
  /// Checks, whichever side died, that the other side's port serves the next connection, and that
  /// the dead program can start again.
  void TearDown() override {
    bench.run_for(std::chrono::minutes(5));
    EventChannel next(bench, 8), heir(bench, 9);
    const uint32_t heirs = heir.create_id(kUid);
    ASSERT_EQ(heir.bind(heirs, ip("127.0.0.2", kPort + 1)), 0);
    ASSERT_EQ(heir.listen(heirs), 0);
    const uint32_t id = request(next, PortSpace::kTcp, kPort + 1);
    const uint32_t accepted = event_of(heir, EventType::kConnectRequest).id;
    ASSERT_EQ(heir.accept(accepted, kUid, parameters()), 0);
    event_of(next, EventType::kConnectResponse);
    EXPECT_EQ(next.establish(id), 0);
    event_of(heir, EventType::kEstablished);
  }

  void listen(PortSpace space) {
    listener = passive.create_id(kUid, space);
    ASSERT_EQ(passive.bind(listener, ip("127.0.0.2", kPort)), 0);
    ASSERT_EQ(passive.listen(listener), 0);
  }
  uint32_t resolved(EventChannel& channel, PortSpace space, uint16_t port) {
    const uint32_t id = channel.create_id(kUid, space);
    EXPECT_EQ(channel.resolve(id, ip("127.0.0.2", port)), 0);
    event_of(channel, EventType::kAddrResolved);
    EXPECT_EQ(channel.resolve_route(id), 0);
    event_of(channel, EventType::kRouteResolved);
    return id;
  }
  uint32_t request(EventChannel& channel, PortSpace space, uint16_t port) {
    const uint32_t id = resolved(channel, space, port);
    EXPECT_EQ(channel.connect(id, parameters()), 0);
    return id;
  }
  void connect(PortSpace space = PortSpace::kTcp) { client = request(active, space, kPort); }
  void read_request() { server = event_of(passive, EventType::kConnectRequest).id; }
  void accept() {
    ASSERT_EQ(passive.accept(server, kUid, parameters()), 0);
    event_of(active, EventType::kConnectResponse);
  }
  void establish() {
    connect();
    read_request();
    ASSERT_NO_FATAL_FAILURE(accept());
    ASSERT_EQ(active.establish(client), 0);
    event_of(passive, EventType::kEstablished);
  }
  EventChannel::Event event_of(EventChannel& channel, EventType type, uint32_t status = 0) {
    const auto event = channel.next_event();
    EXPECT_NE(event.id, 0u) << "no event";
    EXPECT_EQ(event.event, type);
    EXPECT_EQ(event.status, status);
    return event;
  }
  void disconnect(EventChannel& channel, uint32_t id) {
    ASSERT_EQ(channel.ask(Command::kDisconnect, abi::ucma::Disconnect{id}), 0);
  }
  /// Checks that there are no further events, now or later.
  void expect_silence(EventChannel& channel) {
    bench.run_for(std::chrono::minutes(5));
    EXPECT_EQ(channel.next_event().id, 0u);
  }
  abi::ucma::ConnParam parameters() {
    abi::ucma::ConnParam param{};
    param.qp_num = ++last_qpn_;  // a QP has one connection at a time (IBTA vol 1, 12.9.8.3.1)
    return param;
  }

  CmBench bench;
  EventChannel active{bench, 1}, passive{bench, 2};
  uint32_t listener = 0, client = 0, server = 0;

 private:
  uint32_t last_qpn_ = 16;
};

// ---- The active side dies ---------------------------------------------------------------------

TEST_F(ProcessDeath, AfterAResolutionOnlyCausesNoEvent) {
  resolved(active, PortSpace::kTcp, kPort);
  const uint32_t unfinished = active.create_id(kUid);
  EXPECT_EQ(active.resolve(unfinished, ip("10.0.0.77")), 0);
  active.close();
  expect_silence(passive);
  expect_silence(active);
}

TEST_F(ProcessDeath, OfTheRequesterMakesAcceptFail) {
  connect();
  active.close();
  read_request();  // the event was queued before the client died
  EXPECT_EQ(passive.accept(server, kUid, parameters()), EINVAL);
  EXPECT_EQ(passive.destroy_id(server), 0);
  expect_silence(passive);
}

// IBTA vol 1, 12.6.7: REJ "indicates that the sender will not continue through the communication
// establishment sequence".
TEST_F(ProcessDeath, OfTheRequesterAfterTheReplyIsARejection) {
  connect();
  read_request();
  accept();
  active.close();
  event_of(passive, EventType::kRejected, kRejConsumer);
  expect_silence(passive);
}

TEST_F(ProcessDeath, OfTheActiveSideOfAConnectionIsADisconnection) {
  establish();
  active.close();
  event_of(passive, EventType::kDisconnected);
  disconnect(passive, server);
  EXPECT_EQ(passive.destroy_id(server), 0);
}

TEST_F(ProcessDeath, OfTheServiceRequesterCausesNoEvent) {
  EXPECT_EQ(passive.destroy_id(listener), 0);
  listen(PortSpace::kUdp);
  connect(PortSpace::kUdp);
  active.close();
  read_request();
  EXPECT_EQ(passive.accept(server, kUid, parameters()), 0);
  expect_silence(passive);
}

// ---- The passive side dies --------------------------------------------------------------------

TEST_F(ProcessDeath, OfAListenerRejectsUnreadRequests) {
  connect();
  passive.close();
  event_of(active, EventType::kRejected, kRejConsumer);
  connect();
  event_of(active, EventType::kRejected, kRejNoService);
}

TEST_F(ProcessDeath, AfterTheRequestWasReadIsARejection) {
  connect();
  read_request();
  passive.close();
  event_of(active, EventType::kRejected, kRejConsumer);
  expect_silence(active);
}

TEST_F(ProcessDeath, AfterItsReplyIsARejection) {
  connect();
  read_request();
  accept();
  passive.close();
  event_of(active, EventType::kRejected, kRejConsumer);
  EXPECT_EQ(active.establish(client), EINVAL);
}

TEST_F(ProcessDeath, OfThePassiveSideOfAConnectionIsADisconnection) {
  establish();
  passive.close();
  event_of(active, EventType::kDisconnected);
}

TEST_F(ProcessDeath, OfTheServiceProviderIsARefusal) {
  EXPECT_EQ(passive.destroy_id(listener), 0);
  listen(PortSpace::kUdp);
  connect(PortSpace::kUdp);
  read_request();
  passive.close();
  event_of(active, EventType::kUnreachable, kSidrRejected);
  expect_silence(active);
}

// ---- Either dies while the connection ends ----------------------------------------------------

TEST_F(ProcessDeath, AfterAPeersDisconnectAnswersIt) {
  establish();
  disconnect(active, client);
  event_of(passive, EventType::kDisconnected);
  passive.close();
  event_of(active, EventType::kDisconnected);
}

TEST_F(ProcessDeath, OfTheDisconnectingSideLetsThePeerFinish) {
  establish();
  disconnect(active, client);
  active.close();
  event_of(passive, EventType::kDisconnected);
  disconnect(passive, server);
  EXPECT_EQ(passive.destroy_id(server), 0);
  expect_silence(passive);
}

TEST_F(ProcessDeath, InTimewaitCausesNoEvent) {
  establish();
  disconnect(active, client);
  event_of(passive, EventType::kDisconnected);
  disconnect(passive, server);
  event_of(active, EventType::kDisconnected);
  active.close();
  bench.run_for(std::chrono::minutes(5));
  event_of(passive, EventType::kTimewaitExit);
  expect_silence(passive);
}

TEST_F(ProcessDeath, OfBothLeavesNothing) {
  establish();
  active.close();
  passive.close();
  expect_silence(active);
}

}  // namespace
}  // namespace rocemu::test
