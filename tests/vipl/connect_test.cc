// Tests VipConnectWait, VipConnectAccept, VipConnectReject, VipConnectRequest and VipDisconnect.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

class Connect : public PairTest {
 protected:
  VIP_RETURN wait(const std::string& discriminator, VIP_ULONG timeout = kPatienceMs) {
    Address local = server.address(discriminator);
    return VipConnectWait(server.nic, local.get(), timeout, from.get(), &theirs, &connection);
  }
  VIP_RETURN ask(VIP_VI_HANDLE vi, const std::string& discriminator,
                 VIP_ULONG timeout = kPatienceMs) {
    Address local = node.address("me"), remote = server.address(discriminator);
    return VipConnectRequest(vi, local.get(), remote.get(), timeout, &servers);
  }

  Node server{"rocemu1"};
  Address from;
  VIP_VI_ATTRIBUTES theirs{}, servers{};
  VIP_CONN_HANDLE connection = nullptr;
};

TEST_F(Connect, EachSideGetsAddressAndAttributesOfTheOther) {
  a = node.vi();
  b = server.vi();
  std::thread client([&] {
    EXPECT_EQ(request(a, node.address("me"), server.address("chess"), &servers), VIP_SUCCESS);
  });
  EXPECT_EQ(wait("chess"), VIP_SUCCESS);
  EXPECT_EQ(from.host(), node.host);
  EXPECT_EQ(from.discriminator(), "me");
  EXPECT_EQ(theirs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
  EXPECT_EQ(theirs.MaxTransferSize, kMaxTransfer);
  EXPECT_TRUE(theirs.EnableRdmaRead);
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECT_PENDING);
  EXPECT_EQ(VipConnectAccept(connection, b), VIP_SUCCESS);
  client.join();
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state_of(b), VIP_STATE_CONNECTED);
  EXPECT_EQ(servers.MaxTransferSize, kMaxTransfer);
  EXPECT_TRUE(servers.EnableRdmaWrite);
  // a connection can be accepted only once
  EXPECT_EQ(VipConnectAccept(connection, b), VIP_INVALID_PARAMETER);
}

TEST_F(Connect, ARequestWithoutAServerFindsNoMatch) {
  a = node.vi();
  EXPECT_EQ(ask(a, "nobody"), VIP_NO_MATCH);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
  EXPECT_EQ(wait("nobody", 1), VIP_TIMEOUT);
  EXPECT_EQ(ask(a, "nobody"), VIP_NO_MATCH);
}

TEST_F(Connect, ARequestIsForTheDiscriminatorOnly) {
  a = node.vi();
  b = server.vi();
  std::thread waiting([&] { EXPECT_EQ(wait("right"), VIP_SUCCESS); });
  EXPECT_EQ(ask(a, "wrong"), VIP_NO_MATCH);
  EXPECT_EQ(ask(a, ""), VIP_NO_MATCH);
  std::thread client(
      [&] { EXPECT_EQ(request(a, node.address(), server.address("right")), VIP_SUCCESS); });
  waiting.join();
  EXPECT_EQ(VipConnectAccept(connection, b), VIP_SUCCESS);
  client.join();
}

TEST_F(Connect, ARejectedClientIsIdleAndCanAskAgain) {
  a = node.vi();
  b = server.vi();
  for (const bool accept : {false, true}) {
    std::thread client([&] {
      EXPECT_EQ(request(a, node.address(), server.address("x")), accept ? VIP_SUCCESS : VIP_REJECT);
    });
    EXPECT_EQ(wait("x"), VIP_SUCCESS);
    EXPECT_EQ(accept ? VipConnectAccept(connection, b) : VipConnectReject(connection), VIP_SUCCESS);
    client.join();
    EXPECT_EQ(state_of(a), accept ? VIP_STATE_CONNECTED : VIP_STATE_IDLE);
  }
  EXPECT_EQ(VipConnectReject(connection), VIP_INVALID_PARAMETER);
}

TEST_F(Connect, AClientThatIsNotAnsweredGivesUpAfterItsTimeout) {
  a = node.vi();
  b = server.vi();
  EXPECT_EQ(wait("slow", 0), VIP_TIMEOUT);  // this server only checks for requests now and then
  EXPECT_EQ(ask(a, "slow", 50), VIP_TIMEOUT);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
  // When the server checks again, the first request does not exist any more.
  std::thread client([&] { EXPECT_EQ(ask(a, "slow"), VIP_SUCCESS); });
  ASSERT_TRUE(eventually([&] {
    if (wait("slow", 0) != VIP_SUCCESS) return false;
    // fails if the connection is that of the request that timed out
    return VipConnectAccept(connection, b) == VIP_SUCCESS;
  }));
  client.join();
}

TEST_F(Connect, AServerThatPollsLosesNoRequest) {
  a = node.vi();
  b = server.vi();
  EXPECT_EQ(wait("polled", 0), VIP_TIMEOUT);
  std::thread client([&] { EXPECT_EQ(ask(a, "polled"), VIP_SUCCESS); });
  ASSERT_TRUE(eventually([&] { return wait("polled", 0) == VIP_SUCCESS; }));
  EXPECT_EQ(VipConnectAccept(connection, b), VIP_SUCCESS);
  client.join();
}

TEST_F(Connect, VisThatDifferCannotBeConnectedAndTheRequestStays) {
  a = node.vi();
  std::thread client(
      [&] { EXPECT_EQ(request(a, node.address(), server.address("x")), VIP_SUCCESS); });
  EXPECT_EQ(wait("x"), VIP_SUCCESS);
  VIP_VI_HANDLE other_level = server.vi(VIP_SERVICE_UNRELIABLE);
  VIP_VI_ATTRIBUTES attributes = server.attributes();
  attributes.MaxTransferSize = 100;
  VIP_VI_HANDLE other_size = nullptr;
  ASSERT_EQ(VipCreateVi(server.nic, &attributes, nullptr, nullptr, &other_size), VIP_SUCCESS);
  EXPECT_EQ(VipConnectAccept(connection, other_level), VIP_INVALID_RELIABILITY_LEVEL);
  EXPECT_EQ(VipConnectAccept(connection, other_size), VIP_INVALID_MTU);
  EXPECT_EQ(VipConnectAccept(connection, a), VIP_INVALID_PARAMETER);  // a VI of another NIC
  EXPECT_EQ(VipConnectAccept(connection, server.vi()), VIP_SUCCESS);
  client.join();
}

TEST_F(Connect, ReceivesMayBePostedBeforeAndSendsAreFlushed) {
  a = node.vi();
  b = server.vi();
  VIP_DESCRIPTOR* early = server.descriptor(0);
  ASSERT_EQ(VipPostRecv(b, early, server.memory), VIP_SUCCESS);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR));
  connect(node, a, server, b);
  send = node.descriptor(1);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(received(b, early), success(VIP_STATUS_OP_RECEIVE));
}

TEST_F(Connect, DisconnectingFlushesAndThePeerIsInError) {
  a = node.vi();
  b = server.vi();
  Errors errors(server.nic);
  connect(node, a, server, b);
  VIP_DESCRIPTOR* mine = node.descriptor(0);
  VIP_DESCRIPTOR* its = server.descriptor(0);
  post_recv(a, mine);
  ASSERT_EQ(VipPostRecv(b, its, server.memory), VIP_SUCCESS);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
  EXPECT_EQ(received(a, mine), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR));
  EXPECT_EQ(received(b, its), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR));
  EXPECT_EQ(state_of(b), VIP_STATE_ERROR);
  const VIP_ERROR_DESCRIPTOR error = errors.wait_for(VIP_ERROR_CONN_LOST);
  EXPECT_EQ(error.ViHandle, b);
  EXPECT_EQ(error.NicHandle, server.nic);
  EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_VI);
  // A VI in the error state completes descriptors of both queues at once, as flushed.
  ASSERT_EQ(VipPostRecv(b, its, server.memory), VIP_SUCCESS);
  EXPECT_EQ(received(b, its), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR));
  ASSERT_EQ(VipPostSend(b, its, server.memory), VIP_SUCCESS);
  EXPECT_EQ(sent(b, its), failure(VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR));
  EXPECT_EQ(VipDestroyVi(b), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDisconnect(b), VIP_SUCCESS);
  EXPECT_EQ(state_of(b), VIP_STATE_IDLE);
}

TEST_F(Connect, AVisNextConnectionIsAsGoodAsItsFirst) {
  a = node.vi();
  b = server.vi();
  for (int round = 0; round < 5; ++round) {
    connect(node, a, server, b);
    VIP_DESCRIPTOR* recv = server.descriptor(0);
    ASSERT_EQ(VipPostRecv(b, recv, server.memory), VIP_SUCCESS);
    VIP_DESCRIPTOR* send = node.descriptor(0);
    post_send(a, send);
    EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
    EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
    EXPECT_EQ(VipDisconnect(round % 2 == 0 ? a : b), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(round % 2 == 0 ? b : a), VIP_SUCCESS);
  }
}

TEST_F(Connect, DisconnectingEndsARequestThatIsUnderWay) {
  a = node.vi();
  EXPECT_EQ(wait("slow", 0), VIP_TIMEOUT);
  std::thread client([&] { EXPECT_EQ(ask(a, "slow", VIP_INFINITE), VIP_ERROR_RESOURCE); });
  EXPECT_TRUE(eventually([&] { return state_of(a) == VIP_STATE_CONNECT_PENDING; }));
  EXPECT_EQ(VipDestroyVi(a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ask(a, "slow"), VIP_INVALID_STATE);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
  client.join();
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
}

TEST_F(Connect, AnUnusedAddressIsNotReachable) {
  a = node.vi();
  Address local = node.address(), remote(std::string("\xc0\0\2\1", 4), "x");
  EXPECT_EQ(VipConnectRequest(a, local.get(), remote.get(), 10'000, &servers), VIP_NOT_REACHABLE);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
}

TEST_F(Connect, WrongArgumentsAreRefused) {
  a = node.vi();
  Address local = node.address("me"), remote = server.address("x");
  const auto ask_with = [&](VIP_VI_HANDLE vi, VIP_NET_ADDRESS* mine, VIP_NET_ADDRESS* its,
                            VIP_ULONG timeout) {
    return VipConnectRequest(vi, mine, its, timeout, &servers);
  };
  EXPECT_EQ(ask_with(nullptr, local.get(), remote.get(), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, nullptr, remote.get(), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, local.get(), nullptr, 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, local.get(), remote.get(), 0), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, remote.get(), local.get(), 1),
            VIP_INVALID_PARAMETER);  // the first address is not that of the VI
  Address too_long = server.address(std::string(21, 'x')), odd("abcdef", "x");
  EXPECT_EQ(ask_with(a, local.get(), too_long.get(), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, local.get(), odd.get(), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ask_with(a, local.get(), server.address(std::string(20, 'x')).get(), kPatienceMs),
            VIP_NO_MATCH);
  EXPECT_EQ(wait(std::string(21, 'x'), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipConnectWait(node.nic, remote.get(), 1, from.get(), &theirs, &connection),
            VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipConnectWait(node.nic, local.get(), 1, nullptr, &theirs, &connection),
            VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipConnectAccept(nullptr, a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipConnectReject(a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDisconnect(nullptr), VIP_INVALID_PARAMETER);
}

TEST_F(Connect, TwoPeersThatAskEachOtherAreConnected) {
  a = node.vi();
  b = server.vi();
  Address mine = node.address("left"), its = server.address("right");
  EXPECT_EQ(VipConnectPeerDone(a, &theirs), VIP_INVALID_STATE);
  EXPECT_EQ(VipConnectPeerRequest(a, mine.get(), its.get(), kPatienceMs), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerDone(a, &theirs), VIP_NOT_DONE);
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECT_PENDING);
  EXPECT_EQ(VipConnectPeerRequest(a, mine.get(), its.get(), kPatienceMs), VIP_INVALID_STATE);
  EXPECT_EQ(VipConnectPeerRequest(b, its.get(), mine.get(), kPatienceMs), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerWait(a, &theirs), VIP_SUCCESS);
  EXPECT_TRUE(eventually([&] { return VipConnectPeerDone(b, &servers) == VIP_SUCCESS; }));
  EXPECT_EQ(theirs.MaxTransferSize, kMaxTransfer);
  EXPECT_EQ(servers.MaxTransferSize, kMaxTransfer);
  EXPECT_EQ(state_of(b), VIP_STATE_CONNECTED);
  VIP_DESCRIPTOR* recv = server.descriptor(0);
  ASSERT_EQ(VipPostRecv(b, recv, server.memory), VIP_SUCCESS);
  post_send(a, node.descriptor(0));
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
}

TEST_F(Connect, APeerAloneTimesOutOnEitherSide) {
  a = node.vi();
  b = server.vi();
  Address mine = node.address("left"), its = server.address("right");
  for (const bool first : {true, false}) {
    VIP_VI_HANDLE vi = first ? a : b;
    Address& local = first ? mine : its;
    Address& remote = first ? its : mine;
    EXPECT_EQ(VipConnectPeerRequest(vi, local.get(), remote.get(), 40), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(vi, &theirs), VIP_TIMEOUT);
    EXPECT_EQ(state_of(vi), VIP_STATE_IDLE);
  }
}

TEST_F(Connect, PeersThatDifferAreToldSoOnBothSides) {
  a = node.vi(VIP_SERVICE_RELIABLE_DELIVERY);
  b = server.vi(VIP_SERVICE_RELIABLE_RECEPTION);
  Address mine = node.address("left"), its = server.address("right");
  EXPECT_EQ(VipConnectPeerRequest(a, mine.get(), its.get(), kPatienceMs), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerRequest(b, its.get(), mine.get(), kPatienceMs), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerWait(a, &theirs), VIP_INVALID_RELIABILITY_LEVEL);
  EXPECT_EQ(VipConnectPeerWait(b, &theirs), VIP_INVALID_RELIABILITY_LEVEL);
}

TEST_F(Connect, APeersRequestIsCanceledByDisconnectingAndByClosing) {
  a = node.vi();
  b = server.vi();
  Address mine = node.address("left"), its = server.address("right");
  EXPECT_EQ(VipConnectPeerRequest(a, mine.get(), its.get(), VIP_INFINITE), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerRequest(b, its.get(), its.get(), 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyVi(a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerWait(a, &theirs), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipConnectPeerRequest(a, mine.get(), its.get(), VIP_INFINITE), VIP_SUCCESS);
  EXPECT_EQ(VipCloseNic(node.nic), VIP_SUCCESS);
}

}  // namespace
}  // namespace rocemu::vipl_test
