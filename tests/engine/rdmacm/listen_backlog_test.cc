// Tests rdma_listen(3): "backlog: backlog of incoming connection requests". As in Linux's rdma_ucm,
// a request counts until the program reads its event.
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
constexpr uint32_t kSidrRejected = 2;  // IBTA vol 1, 12.11.2: rejected by service provider

class ListenBacklog : public testing::Test {
 protected:
  uint32_t listen(uint32_t backlog, PortSpace space = PortSpace::kTcp) {
    const uint32_t listener = passive.create_id(kUid, space);
    EXPECT_EQ(passive.bind(listener, ip("127.0.0.2", kPort)), 0);
    EXPECT_EQ(passive.listen(listener, backlog), 0);
    return listener;
  }
  /// Requests a connection to the listener. Returns the requesting id, even if the request was
  /// already refused.
  uint32_t connect(PortSpace space = PortSpace::kTcp) {
    const uint32_t id = active.create_id(kUid, space);
    EXPECT_EQ(active.resolve(id, ip("127.0.0.2", kPort)), 0);
    EXPECT_EQ(active.next_event().event, EventType::kAddrResolved);
    EXPECT_EQ(active.resolve_route(id), 0);
    EXPECT_EQ(active.next_event().event, EventType::kRouteResolved);
    abi::ucma::ConnParam param{};
    param.qp_num = ++last_qpn_;  // a QP has one connection at a time (IBTA vol 1, 12.9.8.3.1)
    EXPECT_EQ(active.connect(id, param), 0);
    return id;
  }
  void expect_rejected(uint32_t id) {
    const auto event = active.next_event();
    EXPECT_EQ(event.event, EventType::kRejected);
    EXPECT_EQ(event.id, id);
    EXPECT_EQ(event.status, kRejConsumer);
  }
  uint32_t read_request() {
    const auto event = passive.next_event();
    EXPECT_EQ(event.event, EventType::kConnectRequest);
    return event.id;
  }

  CmBench bench;
  EventChannel active{bench, 1}, passive{bench, 2};

 private:
  uint32_t last_qpn_ = 16;
};

TEST_F(ListenBacklog, OneRequestTooManyIsRejected) {
  listen(3);
  for (int i = 0; i < 3; ++i) connect();
  EXPECT_EQ(active.next_event().id, 0u) << "these wait";
  expect_rejected(connect());
  for (int i = 0; i < 3; ++i) read_request();
  EXPECT_EQ(passive.next_event().id, 0u) << "of the other the program never hears";
}

TEST_F(ListenBacklog, ARequestThatIsReadMakesRoomForAnother) {
  listen(1);
  for (int i = 0; i < 5; ++i) {
    connect();
    expect_rejected(connect());
    read_request();  // reads the request, but does not accept it
  }
}

TEST_F(ListenBacklog, ReadingTheSameRequestTwiceMakesRoomForOne) {
  listen(2);
  connect();
  const uint32_t server = read_request();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(passive.ask(Command::kGetEvent, abi::ucma::RequestRead{server}), 0);
  }
  connect();
  connect();
  expect_rejected(connect());
}

TEST_F(ListenBacklog, OnlyTheChannelOfARequestReadsIt) {
  listen(1);
  const uint32_t client = connect();
  EventChannel stranger(bench, 3);
  EXPECT_EQ(stranger.ask(Command::kGetEvent, abi::ucma::RequestRead{client + 1}), EINVAL);
  EXPECT_EQ(stranger.ask(Command::kGetEvent, abi::ucma::RequestRead{4711}), ENOENT);
  expect_rejected(connect());
}

TEST_F(ListenBacklog, ARequestThatEndedMeanwhileStillWaitsToBeRead) {
  listen(1);
  EXPECT_EQ(active.destroy_id(connect()), 0);
  expect_rejected(connect());
  read_request();
  connect();
  EXPECT_EQ(active.next_event().id, 0u);
}

// A backlog of 0, or of more than rdma_ucm's own limit (net.rdma_ucm.max_backlog), means that
// limit.
TEST_F(ListenBacklog, OfZeroOrTooManyIsTheLargest) {
  for (const uint32_t asked : {0u, 1025u, ~0u}) {
    const uint32_t listener = listen(asked);
    for (int i = 0; i < 1024; ++i) connect();
    EXPECT_EQ(active.next_event().id, 0u);
    expect_rejected(connect());
    EXPECT_EQ(passive.destroy_id(listener), 0);
    while (active.next_event().id != 0) continue;
  }
}

TEST_F(ListenBacklog, OfAnotherListenerIsItsOwn) {
  const uint32_t first = listen(1);
  connect();
  EXPECT_EQ(passive.destroy_id(first), 0);
  listen(1);
  connect();
  const uint32_t refused = connect();
  uint32_t rejected = 0;
  for (auto event = active.next_event(); event.id != 0; event = active.next_event()) {
    if (event.event == EventType::kRejected) rejected = event.id;
  }
  EXPECT_EQ(rejected, refused);
}

TEST_F(ListenBacklog, CountsServiceResolutionsToo) {
  listen(1, PortSpace::kUdp);
  connect(PortSpace::kUdp);
  const uint32_t refused = connect(PortSpace::kUdp);
  const auto event = active.next_event();
  EXPECT_EQ(event.id, refused);
  EXPECT_EQ(event.event, EventType::kUnreachable);
  EXPECT_EQ(event.status, kSidrRejected);
}

}  // namespace
}  // namespace rocemu::test
