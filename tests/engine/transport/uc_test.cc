// Tests unreliable connections (IBTA vol 1, 9.8.2): nothing is acknowledged, and each message
// arrives completely or not at all.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;
using abi::WrOpcode;
using engine::Counter;

constexpr wire::Transport kUc = wire::Transport::kUc;

ScriptOptions uc(uint32_t access = 0, uint32_t srq_wr = 0) {
  ScriptOptions options;
  options.connection.type = abi::QpType::kUc;
  options.connection.access = access;
  options.recv_access = abi::kAccessLocalWrite | abi::kAccessRemoteWrite;
  options.srq_wr = srq_wr;
  return options;
}

/// Returns the packet as a UC requester sends it: it requests no acknowledgement.
PacketSpec sent(const PacketSpec& spec) {
  return spec.over(kUc).ack_req(false);
}

PacketSpec write_packet(wire::Opcode opcode, wire::Psn n, uint64_t address, uint32_t rkey,
                        uint32_t length) {
  PacketSpec spec = packet(opcode, n).over(kUc);
  spec.packet.reth = {.va = address, .rkey = rkey, .dma_length = length};
  return spec;
}

TEST(UcRequester, CompletesAWqeWhenItsLastPacketIsSent) {
  Script s(uc());
  s.at(0ms).app_posts_send(7, 8).expect({sent(send_only(psn(0))), completion(7).bytes(8)});
  s.at(1ms).app_posts_send(8, 2500).expect({sent(send_first(psn(1))), sent(send_middle(psn(2))),
                                            sent(send_last(psn(3))), completion(8)});
  s.at(10000ms).expect_silence();  // no timer runs
}

TEST(UcRequester, SendsLongMessagesInSeveralTurns) {
  Script s(uc());
  s.at(0ms);
  s.app().post_send({.wr_id = 1, .sges = {s.app().send_sge(40 * 1024)}});
  size_t frames = 0;
  for (const Timed& got : s.bench().log) {
    if (std::holds_alternative<engine::TransmitFrame>(got.output)) ++frames;
  }
  EXPECT_EQ(frames, 40u);
  ASSERT_TRUE(std::holds_alternative<engine::Completion>(s.bench().log.back().output));
  s.bench().log.clear();
}

TEST(UcRequester, SendsImmediateDataAndWrites) {
  Script s(uc());
  PacketSpec write_with_imm = packet(wire::Opcode::kRcWriteOnlyImm, psn(3));
  write_with_imm.packet.imm.value = 6;
  s.at(0ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kSendWithImm, .imm = 5})
      .expect({sent(send_only_imm(psn(0), 5)), completion(1)});
  s.at(1ms)
      .app_posts({.wr_id = 2,
                  .opcode = WrOpcode::kRdmaWrite,
                  .sges = {s.app().send_sge(2000)},
                  .remote_address = 0x1000,
                  .rkey = 9})
      .expect({sent(packet(wire::Opcode::kRcWriteFirst, psn(1))),
               sent(packet(wire::Opcode::kRcWriteLast, psn(2))),
               completion(2).opcode(abi::WcOpcode::kRdmaWrite)});
  s.at(2ms)
      .app_posts({.wr_id = 3,
                  .opcode = WrOpcode::kRdmaWriteWithImm,
                  .imm = 6,
                  .sges = {s.app().send_sge(20)},
                  .remote_address = 0x1000,
                  .rkey = 9})
      .expect({sent(write_with_imm), completion(3).opcode(abi::WcOpcode::kRdmaWrite)});
}

// ibv_post_send(3): RDMA READ and atomics are for RC and XRC only. 10.3.1.6: the error stops the
// send queue (SQE), flushes the requests after it, and does not affect the receive queue.
TEST(UcRequester, AnErrorStopsTheSendQueueOnlyUntilItIsSetToRtsAgain) {
  Script s(uc());
  s.at(0ms).app_posts_recv(100);
  s.at(1ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().send_sge(8)}})
      .expect({failed(1, WcStatus::kLocQpOpErr).vendor(engine::VendorError::kOpcodeNotSupported)});
  s.expect_state(abi::QpState::kSqe);
  s.at(2ms).app_posts_send(2).expect({flushed(2)});
  s.at(3ms).wire_delivers(send_only(psn(0)).over(kUc)).expect({received(100)});
  s.at(4ms).app_sets_state(abi::QpState::kRts).expect_silence();
  s.at(5ms).app_posts_send(3).expect({sent(send_only(psn(0))), completion(3)});
}

TEST(UcRequester, AnErrorFlushesWhatWaitsBehindIt) {
  Script s(uc());
  s.at(0ms).app_sets_state(abi::QpState::kSqd).expect_silence();
  s.app_posts({.wr_id = 1, .sges = {{Endpoint::kSendBuffer, 8, 12345}}}).app_posts_send(2);
  s.at(1ms)
      .app_sets_state(abi::QpState::kRts)
      .expect({failed(1, WcStatus::kLocProtErr), flushed(2)});
  s.expect_state(abi::QpState::kSqe);
}

TEST(UcResponder, ExecutesSendsInSequenceAndAnswersNothing) {
  Script s(uc());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).over(kUc).with({1, 2, 3}))
      .expect({received(1).bytes(3)});
  s.at(2ms).wire_delivers(send_first(psn(1)).over(kUc).of_length(1024)).expect_silence();
  s.at(3ms)
      .wire_delivers(send_last_imm(psn(2), 9).over(kUc).of_length(6))
      .expect({received(2).bytes(1030).imm(9)});
}

// 9.8.2.2.1: if a packet is missing, its message is dropped. The next First or Only is accepted
// with any PSN.
TEST(UcResponder, AGapDropsTheMessageAndTheNextFirstResynchronizes) {
  Script s(uc());
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1024)).expect_silence();
  s.at(2ms).wire_delivers(send_middle(psn(2)).over(kUc).of_length(1024)).expect_silence();
  s.at(3ms).wire_delivers(send_last(psn(3)).over(kUc).of_length(8)).expect_silence();
  s.expect_counter(Counter::kOutOfSequence, 1);
  s.expect_counter(Counter::kDroppedNoMessage, 2);
  // The next message uses the receive WQE of the lost message.
  s.at(4ms).wire_delivers(send_only(psn(9)).over(kUc).with({7})).expect({received(1).bytes(1)});
  s.expect_received({7});
}

TEST(UcResponder, AMessageThatBeginsWithinAnotherReplacesIt) {
  Script s(uc());
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1024)).expect_silence();
  s.at(2ms).wire_delivers(send_only(psn(1)).over(kUc).with({4})).expect({received(1).bytes(1)});
}

TEST(UcResponder, WithoutAReceiveWqeTheMessageIsDroppedSilently) {
  Script s(uc());
  s.at(0ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1024)).expect_silence();
  s.at(1ms).app_posts_recv(1);
  s.at(2ms).wire_delivers(send_last(psn(1)).over(kUc).of_length(8)).expect_silence();
  s.at(3ms).wire_delivers(send_only(psn(2)).over(kUc)).expect({received(1)});
  s.expect_counter(Counter::kDroppedNoReceive, 1);
}

TEST(UcResponder, AnAbandonedMessageGivesItsWqeBackToTheSrq) {
  Script s(uc(0, 2));
  s.at(0ms).app_posts_recv(1, 2048);
  s.at(1ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1024)).expect_silence();
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 0u);
  s.at(2ms).wire_delivers(send_last(psn(5)).over(kUc).of_length(8)).expect_silence();
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 1u);
}

TEST(UcResponder, WritesWhereItMayAndDropsTheRest) {
  Script s(uc(abi::kAccessRemoteWrite));
  const uint32_t rkey = s.app().recv_mr.rkey;
  const uint64_t base = Endpoint::kRecvBuffer;
  s.at(0ms)
      .wire_delivers(
          write_packet(wire::Opcode::kRcWriteOnly, psn(0), base + 8, rkey, 3).with({1, 2, 3}))
      .expect_silence();
  s.expect_received({1, 2, 3}, 8);
  // An R_Key violation drops the message without a report (9.9.3).
  s.at(1ms)
      .wire_delivers(
          write_packet(wire::Opcode::kRcWriteOnly, psn(1), base, rkey + 1, 3).with({9, 9, 9}))
      .expect_silence();
  s.expect_received({0, 0, 0}).expect_state(abi::QpState::kRts);
  // A length that differs from the RETH's drops the message, too.
  s.at(2ms)
      .wire_delivers(
          write_packet(wire::Opcode::kRcWriteOnly, psn(2), base, rkey, 4).with({9, 9, 9}))
      .expect_silence();
  s.expect_counter(Counter::kDroppedInvalidRequest, 2);
  s.at(3ms).app_posts_recv(5);
  PacketSpec with_imm =
      write_packet(wire::Opcode::kRcWriteOnlyImm, psn(3), base, rkey, 1).with({6});
  with_imm.packet.imm.value = 44;
  s.at(4ms).wire_delivers(with_imm).expect(
      {CompletionSpec(5).opcode(abi::WcOpcode::kRecvRdmaWithImm).imm(44).bytes(1)});
}

TEST(UcResponder, WithoutRemoteWriteAccessAWriteIsDropped) {
  Script s(uc());
  s.at(0ms)
      .wire_delivers(write_packet(wire::Opcode::kRcWriteOnly, psn(0), Endpoint::kRecvBuffer,
                                  s.app().recv_mr.rkey, 1)
                         .with({1}))
      .expect_silence();
  s.expect_counter(Counter::kDroppedInvalidRequest, 1).expect_state(abi::QpState::kRts);
}

// IBTA vol 1, 9.9.3, class D: the message is dropped, and the next one uses its WQE. Linux rxe does
// the same.
TEST(UcResponder, AMessageTooLongForTheReceiveIsDroppedAndTheReceiveStays) {
  for (const uint32_t srq_wr : {0u, 4u}) {
    Script s(uc(0, srq_wr));
    s.at(0ms).app_posts_recv(1, 4).app_posts_recv(2);
    s.at(1ms).wire_delivers(send_only(psn(0)).over(kUc).of_length(5)).expect_silence();
    s.expect_state(abi::QpState::kRts).expect_counter(Counter::kDroppedReceiveTooSmall, 1);
    s.at(2ms)
        .wire_delivers(send_only(psn(1)).over(kUc).of_length(4))
        .expect({CompletionSpec(1).bytes(4)});
    s.at(3ms)
        .wire_delivers(send_only(psn(2)).over(kUc).of_length(5))
        .expect({CompletionSpec(2).bytes(5)});
  }
}

TEST(UcResponder, FindsAReceiveTooSmallOnTheWayAndDropsTheRest) {
  Script s(uc());
  s.at(0ms).app_posts_recv(1, 1500);
  s.at(1ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1024)).expect_silence();
  s.at(2ms).wire_delivers(send_middle(psn(1)).over(kUc).of_length(1024)).expect_silence();
  s.at(3ms).wire_delivers(send_last(psn(2)).over(kUc).of_length(8)).expect_silence();
  s.expect_state(abi::QpState::kRts)
      .expect_counter(Counter::kDroppedReceiveTooSmall, 1)
      .expect_counter(Counter::kDroppedNoMessage, 1);
  s.at(4ms).wire_delivers(send_only(psn(3)).over(kUc).of_length(8)).expect({received(1).bytes(8)});
}

// An error in the responder's own WQE still makes the QP fail (class A).
TEST(UcResponder, ABadLKeyFailsTheQp) {
  Script s(uc());
  s.at(0ms).app_posts_recv_list({.wr_id = 1, .sges = {{Endpoint::kRecvBuffer, 8, 12345}}});
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).over(kUc).of_length(8))
      .expect({failed(1, WcStatus::kLocProtErr)});
  s.expect_state(abi::QpState::kErr);
}

TEST(UcResponder, DropsPacketsOfWrongLengthAndOtherTransports) {
  Script s(uc());
  s.at(0ms).app_posts_recv(1, 8192);
  s.at(1ms).wire_delivers(send_first(psn(0)).over(kUc).of_length(1000)).expect_silence();
  s.at(2ms).wire_delivers(send_only(psn(1)).over(kUc).of_length(1025)).expect_silence();
  s.expect_counter(Counter::kDroppedInvalidRequest, 2);
  s.at(3ms).wire_delivers(send_only(psn(2))).expect_silence();
  s.expect_counter(Counter::kDroppedWrongTransport, 1);
  s.at(4ms).wire_delivers(send_only(psn(2)).over(kUc)).expect({received(1)});
}

TEST(UcPair, CarriesMessagesBothWays) {
  PairOptions options;
  options.left = uc();
  options.right = uc();
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(8192)}});
  pair.left.fill_send_buffer({1, 2, 3, 4});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(5000)}});
  ASSERT_EQ(pair.take_left().size(), 1u);
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].byte_len, 5000u);
  EXPECT_EQ(pair.right.recv_bytes(4), (std::vector<uint8_t>{1, 2, 3, 4}));
}

// Consecutive packets are written together. A message that does not fit is still dropped.
TEST(UcPair, AMessageTooLongForTheReceiveDoesNotStopThoseBehindIt) {
  PairOptions options;
  options.left = options.right = uc();
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(2500)}});
  pair.right.post_recv({.wr_id = 2, .sges = {pair.right.recv_sge(8192)}});
  pair.left.client.post_sends(pair.left.qpn, {{.wr_id = 1, .sges = {pair.left.send_sge(8000)}},
                                              {.wr_id = 2, .sges = {pair.left.send_sge(2500)}},
                                              {.wr_id = 3, .sges = {pair.left.send_sge(8000)}}});
  EXPECT_EQ(pair.take_left().size(), 3u);
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].byte_len, 2500u);
  EXPECT_EQ(done[1].byte_len, 8000u);
}

TEST(UcJoinedPair, ALostPacketLosesItsMessageOnly) {
  JoinedPair pair(uc(), uc());
  for (uint64_t i = 0; i < 3; ++i) {
    pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(4096)}});
  }
  pair.left.post_send({.wr_id = 1, .sges = {pair.left.send_sge(3000)}});
  pair.drop_next(FrameKind::kRequest);
  pair.settle();
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(100)}});
  pair.settle();
  EXPECT_EQ(pair.take_left().size(), 2u);
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].byte_len, 100u);
}

}  // namespace
}  // namespace rocemu::test
