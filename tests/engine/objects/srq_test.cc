// Tests shared receive queues (IBTA vol 1, 10.2.9; ibv_create_srq(3), ibv_modify_srq(3)).
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

constexpr uint64_t kSrq = Endpoint::kSrqHandle;
constexpr uint64_t kQp = Endpoint::kQpHandle;

EndpointOptions with_srq(uint32_t max_wr = 4) {
  EndpointOptions options;
  options.srq_wr = max_wr;
  return options;
}

CompletionSpec from_srq(uint64_t wr_id) {
  return CompletionSpec(wr_id).on(abi::WorkQueue::kSrq);
}

RecvWr buffer(const Endpoint& endpoint, uint64_t wr_id, uint64_t offset = 0) {
  return {.wr_id = wr_id, .sges = {endpoint.recv_sge(1024, offset)}};
}

SendWr message(const Endpoint& endpoint, uint64_t wr_id, uint32_t length = 8) {
  return {.wr_id = wr_id, .sges = {endpoint.send_sge(length)}};
}

/// Three QPs on the right side that use one SRQ, each with a peer on the left side.
struct Fan {
  explicit Fan(uint32_t max_wr = 4) : pair({.left = {}, .right = with_srq(max_wr)}) {
    Connection connection;
    for (int i = 0; i < 2; ++i) {
      const uint32_t left = pair.left.client.create_qp({.pd = pair.left.pd,
                                                        .send_cq = pair.left.send_cq,
                                                        .recv_cq = pair.left.recv_cq,
                                                        .cap = EndpointOptions{}.cap});
      const uint32_t right = pair.right.client.create_qp({.pd = pair.right.pd,
                                                          .send_cq = pair.right.send_cq,
                                                          .recv_cq = pair.right.recv_cq,
                                                          .srq = pair.right.srq,
                                                          .cap = EndpointOptions{}.cap});
      EXPECT_TRUE(bring_up(pair.left.client, left, abi::QpState::kRts, connection,
                           address_vector(wire::IpAddress::from_v4(10, 0, 0, 2)), right));
      EXPECT_TRUE(bring_up(pair.right.client, right, abi::QpState::kRts, connection,
                           address_vector(wire::IpAddress::from_v4(10, 0, 0, 1)), left));
      lefts.push_back(left);
      rights.push_back(right);
    }
    lefts.push_back(pair.left.qpn);
    rights.push_back(pair.right.qpn);
  }

  Pair pair;
  std::vector<uint32_t> lefts, rights;
};

TEST(SharedReceiveQueue, GivesItsOldestWqeToWhicheverQpNeedsOne) {
  Fan fan;
  for (uint64_t i = 0; i < 3; ++i) {
    fan.pair.right.post_recv(buffer(fan.pair.right, 10 + i, i * 1024));
  }
  for (const uint32_t qpn : {fan.lefts[2], fan.lefts[0], fan.lefts[1]}) {
    fan.pair.left.client.post_send(qpn, message(fan.pair.left, qpn));
  }
  const auto done = fan.pair.take_right();
  ASSERT_EQ(done.size(), 3u);
  const std::vector<uint32_t> order = {fan.rights[2], fan.rights[0], fan.rights[1]};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].wr_id, 10 + i);
    EXPECT_EQ(done[i].qp_num, order[i]);
    EXPECT_EQ(done[i].queue, abi::WorkQueue::kSrq);
    EXPECT_EQ(done[i].wqe_count, fan.pair.right.srq);
    EXPECT_EQ(done[i].byte_len, 8u);
  }
}

TEST(SharedReceiveQueue, WithoutAWqeTheQpAnswersReceiverNotReady) {
  Script s({with_srq()});
  s.at(0ms).wire_delivers(send_only(psn(0))).expect({rnr_nak(psn(0), 12)});
  s.at(1ms).app_posts_recv(1).expect_silence();
  s.at(2ms).wire_delivers(send_only(psn(0)).with({1, 2, 3})).expect({from_srq(1), ack(psn(0))});
  s.expect_received({1, 2, 3});
}

TEST(SharedReceiveQueue, AMessageInProgressKeepsItsWqe) {
  Script s({with_srq()});
  s.at(0ms).app_posts_recv(1, 2048, 0).app_posts_recv(2, 2048, 4096);
  s.at(1ms).wire_delivers(send_first(psn(0)).of_length(1024)).expect_silence();
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 1u);
  s.at(2ms)
      .wire_delivers(send_last(psn(1)).of_length(8))
      .expect({from_srq(1).bytes(1032), ack(psn(1))});
  s.at(3ms).wire_delivers(send_only(psn(2))).expect({from_srq(2), ack(psn(2))});
}

TEST(SharedReceiveQueue, AWriteWithImmediateTakesAWqeWhenItEnds) {
  Script s({with_srq()});
  auto write = packet(wire::Opcode::kRcWriteOnlyImm, psn(0));
  write.packet.imm.value = 77;
  abi::QpAttr attr{};
  attr.qp_access_flags = abi::kAccessRemoteWrite;
  s.at(0ms).app_modifies(attr, abi::kAttrAccessFlags).app_posts_recv(1);
  s.at(1ms).wire_delivers(write).expect(
      {from_srq(1).imm(77).opcode(abi::WcOpcode::kRecvRdmaWithImm), ack(psn(0))});
}

// The SRQ gets the WQE back, since its message will never be complete.
TEST(SharedReceiveQueue, GetsTheWqeBackWhenTheQpIsResetInTheMiddleOfAMessage) {
  Script s({with_srq(2)});
  s.at(0ms).app_posts_recv(1, 2048).app_posts_recv(2, 2048);
  s.at(1ms).wire_delivers(send_first(psn(0)).of_length(1024)).expect_silence();
  s.at(2ms).app_sets_state(abi::QpState::kReset).expect_silence();
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 2u);
  s.app_connects(abi::QpState::kRts);
  s.at(3ms).wire_delivers(send_only(psn(0))).expect({from_srq(1), ack(psn(0))});
  s.at(4ms).wire_delivers(send_only(psn(1))).expect({from_srq(2), ack(psn(1))});
}

TEST(SharedReceiveQueue, GetsTheWqeBackWhenTheQpIsDestroyedInTheMiddleOfAMessage) {
  Script s({with_srq(2)});
  s.at(0ms).app_posts_recv(1, 2048).app_posts_recv(2, 2048);
  s.at(1ms).wire_delivers(send_first(psn(0)).of_length(1024)).expect_silence();
  EXPECT_EQ(s.client().destroy_qp(s.qpn()), 0);
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 2u);
  // The SRQ has the returned WQE again, so of its two slots none is free.
  s.client().post_srq_recv(s.app().srq, {.wr_id = 3, .sges = {s.app().recv_sge(8)}});
  s.expect({violation()});
}

// IBTA vol 1, 10.3.1.5: a QP flushes its requests in the error state; 11.6.3.2:
// IBV_EVENT_QP_LAST_WQE_REACHED is reported when it takes no more WQEs from the SRQ.
TEST(SharedReceiveQueue, AQpThatFailsFlushesOnlyTheWqeItHasTakenAndSaysSo) {
  Script s({with_srq()});
  s.at(0ms).app_posts_recv(1, 2048).app_posts_recv(2);
  s.at(1ms).wire_delivers(send_first(psn(0)).of_length(1024)).expect_silence();
  s.at(2ms)
      .app_sets_state(abi::QpState::kErr)
      .expect({CompletionSpec(flushed(1)).on(abi::WorkQueue::kSrq),
               event(abi::EventType::kQpLastWqeReached, kQp)});
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 1u);
  // Only once.
  s.at(3ms).app_sets_state(abi::QpState::kErr).expect_silence();
}

TEST(SharedReceiveQueue, AMessageTooLongForTheWqeCompletesItWithALengthError) {
  Script s({with_srq()});
  s.at(0ms).app_posts_recv(1, 4);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({nak(psn(0), wire::NakCode::kInvalidRequest),
               failed(1, abi::WcStatus::kLocLenErr).on(abi::WorkQueue::kSrq),
               event(abi::EventType::kQpLastWqeReached, kQp)});
}

// 10.2.9.1: the L_Keys of the SRQ's WQEs must belong to the PD of the SRQ; the QP may have another
// PD.
TEST(SharedReceiveQueue, UsesItsOwnProtectionDomain) {
  Pair pair({.left = {}, .right = with_srq()});
  const uint32_t other = pair.right.client.alloc_pd();
  const uint32_t srq = pair.right.client.create_srq({.pd = other, .user_handle = 9});
  const uint32_t left = pair.left.client.create_qp({.pd = pair.left.pd,
                                                    .send_cq = pair.left.send_cq,
                                                    .recv_cq = pair.left.recv_cq,
                                                    .cap = EndpointOptions{}.cap});
  const uint32_t right = pair.right.client.create_qp({.pd = pair.right.pd,
                                                      .send_cq = pair.right.send_cq,
                                                      .recv_cq = pair.right.recv_cq,
                                                      .srq = srq,
                                                      .cap = EndpointOptions{}.cap});
  ASSERT_TRUE(bring_up(pair.left.client, left, abi::QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 0, 0, 2)), right));
  ASSERT_TRUE(bring_up(pair.right.client, right, abi::QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 0, 0, 1)), left));
  const Mr mr = pair.right.client.reg_mr(other, Endpoint::kRecvBuffer, 4096);
  pair.right.client.post_srq_recv(srq,
                                  {.wr_id = 1, .sges = {{Endpoint::kRecvBuffer, 64, mr.lkey}}});
  pair.right.client.post_srq_recv(srq, {.wr_id = 2, .sges = {pair.right.recv_sge(64)}});
  pair.left.client.post_send(left, message(pair.left, 1));
  pair.left.client.post_send(left, message(pair.left, 2));
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
  EXPECT_EQ(done[1].status, static_cast<uint32_t>(abi::WcStatus::kLocProtErr));
}

TEST(SharedReceiveQueue, ALimitIsReachedOnceWhenFewerWqesAreLeft) {
  Script s({with_srq()});
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  EXPECT_EQ(s.client().modify_srq(s.app().srq, abi::kSrqLimit, 0, 2), 0);
  s.expect_silence();
  EXPECT_EQ(s.client().query_srq(s.app().srq).limit, 2u);
  s.at(1ms).wire_delivers(send_only(psn(0))).expect({from_srq(1), ack(psn(0))});
  s.at(2ms)
      .wire_delivers(send_only(psn(1)))
      .expect({event(abi::EventType::kSrqLimitReached, kSrq), from_srq(2), ack(psn(1))});
  EXPECT_EQ(s.client().query_srq(s.app().srq).limit, 0u);
  s.at(3ms).wire_delivers(send_only(psn(2))).expect({from_srq(3), ack(psn(2))});
}

TEST(SharedReceiveQueue, ALimitThatIsReachedAlreadyIsAnEventAtOnce) {
  Script s({with_srq()});
  s.at(0ms).app_posts_recv(1);
  EXPECT_EQ(s.client().modify_srq(s.app().srq, abi::kSrqLimit, 0, 2), 0);
  s.expect({event(abi::EventType::kSrqLimitReached, kSrq)});
}

TEST(SharedReceiveQueue, IsNotResizedAndTakesNoLimitBeyondItsSize) {
  Script s({with_srq(4)});
  Client& client = s.client();
  const uint32_t srq = s.app().srq;
  EXPECT_EQ(client.modify_srq(srq, abi::kSrqMaxWr, 8, 0), EOPNOTSUPP);
  EXPECT_EQ(client.modify_srq(srq, abi::kSrqLimit, 0, 5), EINVAL);
  EXPECT_EQ(client.modify_srq(srq, abi::kSrqMaxWr | abi::kSrqLimit, 8, 2), EOPNOTSUPP);
  EXPECT_EQ(client.modify_srq(srq, 4, 0, 0), EINVAL);
  EXPECT_EQ(client.modify_srq(srq + 1, abi::kSrqLimit, 0, 1), ENOENT);
  const SrqAttr attr = client.query_srq(srq);
  EXPECT_EQ(attr.max_wr, 4u);
  EXPECT_EQ(attr.max_sge, 4u);
  EXPECT_EQ(attr.limit, 0u);
  EXPECT_EQ(client.modify_srq(srq, 0, 0, 0), 0);
}

TEST(SharedReceiveQueue, IsBusyWhileAQpUsesItAndKeepsItsPdBusy) {
  Script s({with_srq()});
  Client& client = s.client();
  EXPECT_EQ(client.destroy_srq(s.app().srq), EBUSY);
  EXPECT_EQ(client.destroy_qp(s.qpn()), 0);
  EXPECT_EQ(client.dereg_mr(s.app().send_mr.handle), 0);
  EXPECT_EQ(client.dereg_mr(s.app().recv_mr.handle), 0);
  EXPECT_EQ(client.dealloc_pd(s.app().pd), EBUSY);
  EXPECT_EQ(client.destroy_srq(s.app().srq), 0);
  EXPECT_EQ(client.destroy_srq(s.app().srq), ENOENT);
  EXPECT_EQ(client.dealloc_pd(s.app().pd), 0);
}

TEST(SharedReceiveQueue, IsCreatedWithinTheLimitsOfTheDevice) {
  Script s;
  Client& client = s.client();
  const uint32_t pd = s.app().pd;
  EXPECT_EQ(client.create_srq({.pd = pd + 1}), 0u);
  EXPECT_EQ(client.error, ENOENT);
  const abi::DeviceAttr device = client.command(abi::Op::kQueryDevice, {}).body.device;
  ASSERT_NE(device.max_srq, 0u);
  client.create_srq({.pd = pd, .max_wr = device.max_srq_wr + 1});
  EXPECT_EQ(client.error, EINVAL);
  client.create_srq({.pd = pd, .max_sge = device.max_srq_sge + 1});
  EXPECT_EQ(client.error, EINVAL);
  client.create_srq({.pd = pd, .max_wr = 0});
  EXPECT_EQ(client.error, EINVAL);
  client.create_srq({.pd = pd, .max_wr = device.max_srq_wr, .max_sge = device.max_srq_sge});
  EXPECT_EQ(client.error, 0);
}

// ibv_create_qp(3): max_recv_wr and max_recv_sge "are ignored ... if the QP is to be associated
// with an SRQ".
TEST(SharedReceiveQueue, ItsQpHasNoSeparateReceiveQueue) {
  Script s({with_srq()});
  const abi::QpCap cap = s.client().query_qp(s.qpn()).cap;
  EXPECT_EQ(cap.max_recv_wr, 0u);
  EXPECT_EQ(cap.max_recv_sge, 0u);
  s.at(0ms);
  s.client().post_recv(s.qpn(), {.wr_id = 1});
  s.expect({violation()});
}

TEST(SharedReceiveQueue, APostToOneThatIsNotItsOwnOrIsFullEndsTheClient) {
  Script s({with_srq(1)});
  s.at(0ms).app_posts_recv(1).expect_silence();
  s.at(1ms).app_posts_recv(2).expect({violation()});
  const std::vector<std::byte> wqe(abi::recv_stride(4));
  s.bench().step(engine::PostSrqRecv{s.client().id(), engine::SrqId{99}, wqe});
  s.expect({violation()});
}

TEST(SharedReceiveQueue, AWqeOfTheWrongSizeEndsTheClient) {
  Script s({with_srq(1)});
  const std::vector<std::byte> wqe(abi::recv_stride(4) - 16);
  s.at(0ms);
  s.bench().step(engine::PostSrqRecv{s.client().id(), engine::SrqId{s.app().srq}, wqe});
  s.expect({violation()});
}

TEST(SharedReceiveQueue, AWqeWithMoreSgesThanItHasRoomForFailsTheQpThatTakesIt) {
  Script s({with_srq()});
  std::vector<std::byte> wqe(abi::recv_stride(4));
  const abi::RecvWqe header{.wr_id = 5, .num_sge = 1000, .reserved = 0};
  std::memcpy(wqe.data(), &header, sizeof(header));
  s.at(0ms);
  s.bench().step(engine::PostSrqRecv{s.client().id(), engine::SrqId{s.app().srq}, wqe});
  s.at(1ms)
      .wire_delivers(send_only(psn(0)))
      .expect({nak(psn(0), wire::NakCode::kRemoteOperationalError),
               failed(5, abi::WcStatus::kLocQpOpErr).on(abi::WorkQueue::kSrq),
               event(abi::EventType::kQpLastWqeReached, kQp)});
}

TEST(SharedReceiveQueue, GoesWithItsClient) {
  Pair pair({.left = {}, .right = with_srq()});
  pair.right.post_recv(buffer(pair.right, 1));
  pair.left.post_send(message(pair.left, 1, 2048));
  pair.bench.detach(pair.right.client.id());
  EXPECT_TRUE(pair.bench.engine().snapshot().devices[1].srqs.empty());
}

}  // namespace
}  // namespace rocemu::test
