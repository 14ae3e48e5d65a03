// Tests RDMA WRITE, RDMA READ and atomics on both sides, over a link with faults and without.
#include <gtest/gtest.h>

#include <bit>

#include "emulator/engine/base/random.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcOpcode;
using abi::WcStatus;
using abi::WrOpcode;
using wire::Opcode;

constexpr uint32_t kAll = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                          abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

EndpointOptions open_to_all() {
  EndpointOptions options;
  options.connection.access = kAll;
  options.connection.max_rd_atomic = 4;
  options.connection.mtu = abi::Mtu::k256;
  options.recv_access = kAll;
  return options;
}

/// Returns a request for the peer's receive buffer, `offset` bytes from its start.
SendWr rdma(const Endpoint& peer, WrOpcode opcode, uint64_t offset, abi::Sge local,
            uint64_t wr_id = 1) {
  return {.wr_id = wr_id,
          .opcode = opcode,
          .sges = {local},
          .remote_address = Endpoint::kRecvBuffer + offset,
          .rkey = peer.recv_mr.rkey};
}

PairOptions both(const EndpointOptions& options) {
  PairOptions pair;
  pair.left = pair.right = options;
  return pair;
}

TEST(RdmaWrite, PlacesEverySizeAndCompletesOnlyAtTheWriter) {
  for (const uint32_t size : {0u, 1u, 255u, 256u, 257u, 5000u, 60000u}) {
    SCOPED_TRACE(size);
    Pair pair(both(open_to_all()));
    pair.left.fill_send_buffer(pattern(size));
    pair.left.post_send(rdma(pair.right, WrOpcode::kRdmaWrite, 100, pair.left.send_sge(size)));
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kSuccess));
    EXPECT_EQ(done[0].opcode, static_cast<uint32_t>(WcOpcode::kRdmaWrite));
    EXPECT_TRUE(pair.take_right().empty());
    EXPECT_EQ(pair.right.recv_bytes(size, 100), pattern(size));
  }
}

TEST(RdmaWrite, WithImmediateTakesAReceive) {
  Pair pair(both(open_to_all()));
  pair.left.fill_send_buffer(pattern(600));
  SendWr wr = rdma(pair.right, WrOpcode::kRdmaWriteWithImm, 0, pair.left.send_sge(600));
  wr.imm = 0x01020304;
  // the receive needs no buffer, since the data goes to the address in the request
  pair.right.post_recv({.wr_id = 9});
  pair.left.post_send(wr);
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 9u);
  EXPECT_EQ(done[0].opcode, static_cast<uint32_t>(WcOpcode::kRecvRdmaWithImm));
  EXPECT_EQ(done[0].byte_len, 600u);
  EXPECT_EQ(done[0].imm_data, 0x01020304u);
  EXPECT_EQ(pair.right.recv_bytes(600), pattern(600));
}

TEST(RdmaWrite, WithImmediateWaitsForAReceive) {
  Pair pair(both(open_to_all()));
  pair.left.post_send(rdma(pair.right, WrOpcode::kRdmaWriteWithImm, 0, pair.left.send_sge(8)));
  EXPECT_TRUE(pair.take_left().empty());
  pair.right.post_recv({.wr_id = 9});
  pair.bench.advance_to(1s);
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.take_right().size(), 1u);
}

std::vector<WcStatus> statuses_of(const std::vector<abi::Cqe>& done) {
  std::vector<WcStatus> out;
  for (const abi::Cqe& cqe : done) out.push_back(static_cast<WcStatus>(cqe.status));
  return out;
}

// A WRITE with immediate takes a receive of its target, and by that receive's completion the target
// learns of the wrong R_Key (IBTA vol 1, 9.9.3, class C, and 11.6.2, "local access error").
TEST(RdmaWrite, WithImmediateAndABadKeyFailsTheReceiveThatItTakes) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "SRQ" : "its own queue");
    PairOptions options = both(open_to_all());
    if (shared) options.right.srq_wr = 4;
    Pair pair(options);
    pair.right.post_recv({.wr_id = 9});
    pair.right.post_recv({.wr_id = 10});
    SendWr wr = rdma(pair.right, WrOpcode::kRdmaWriteWithImm, 0, pair.left.send_sge(8));
    wr.rkey ^= 0x100;
    pair.bench.log.clear();
    pair.left.post_send(wr);
    for (const Timed& entry : pair.bench.log) {
      const auto* event = std::get_if<engine::AsyncEvent>(&entry.output);
      if (event == nullptr) continue;
      EXPECT_EQ(event->type, abi::EventType::kQpLastWqeReached) << "the receive tells of it";
    }
    const auto done = pair.take_right();
    ASSERT_EQ(done.size(), shared ? 1u : 2u);
    EXPECT_EQ(done[0].wr_id, 9u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocAccessErr));
    if (!shared) {
      EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kWrFlushErr));
    }
    EXPECT_EQ(statuses_of(pair.take_left()), std::vector{WcStatus::kRemAccessErr});
    EXPECT_EQ(pair.right.state(), QpState::kErr);
  }
}

// In a message of several packets, only the last one has the immediate data. Before that packet,
// the responder cannot know that the message takes a receive.
TEST(RdmaWrite, WithImmediateTakesItsReceiveWithTheLastPacket) {
  Pair pair(both(open_to_all()));
  pair.right.post_recv({.wr_id = 9});
  SendWr wr = rdma(pair.right, WrOpcode::kRdmaWriteWithImm, 0, pair.left.send_sge(600));
  wr.rkey ^= 0x100;
  pair.left.post_send(wr);
  EXPECT_EQ(statuses_of(pair.take_right()), std::vector{WcStatus::kWrFlushErr});

  ScriptOptions options = {open_to_all()};
  Script s(options);
  const auto write = [&](Opcode opcode, uint32_t number, uint32_t length) {
    PacketSpec spec = packet(opcode, psn(number)).of_length(length);
    spec.packet.reth = {
        .va = Endpoint::kRecvBuffer, .rkey = s.app().recv_mr.rkey, .dma_length = 600};
    return spec;
  };
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(write(Opcode::kRcWriteFirst, 0, 256)).expect_silence();
  s.wire_delivers(write(Opcode::kRcWriteMiddle, 1, 256)).expect_silence();
  EXPECT_EQ(s.client().dereg_mr(s.app().recv_mr.handle), 0);
  s.wire_delivers(write(Opcode::kRcWriteLastImm, 2, 88))
      .expect({nak(psn(2), wire::NakCode::kRemoteAccessError), failed(1, WcStatus::kLocAccessErr),
               flushed(2)});
}

// ibv_post_send(3), IBV_SEND_SOLICITED: "Valid only for Send and RDMA Write with immediate". IBTA
// vol 1, 9.2.3: no other request has the SE bit.
TEST(RdmaWrite, HasTheSolicitedEventBitOnlyWithImmediate) {
  for (const auto type : {abi::QpType::kRc, abi::QpType::kUc}) {
    const bool uc = type == abi::QpType::kUc;
    ScriptOptions options;
    options.connection.type = type;
    options.connection.mtu = abi::Mtu::k256;
    const auto sent = [&](const PacketSpec& spec) {
      return uc ? spec.over(wire::Transport::kUc).ack_req(false) : spec;
    };
    Script s(options);
    SendWr wr{.wr_id = 1,
              .opcode = WrOpcode::kRdmaWrite,
              .flags = abi::kSendSolicited,
              .sges = {s.app().send_sge(8)}};
    s.at(0ms).app_posts(wr).expect({sent(packet(Opcode::kRcWriteOnly, psn(0)).of_length(8))});
    wr.sges = {s.app().send_sge(300)};
    s.app_posts(wr).expect(
        {sent(packet(Opcode::kRcWriteFirst, psn(1)).of_length(256)).ack_req(false),
         sent(packet(Opcode::kRcWriteLast, psn(2)).of_length(44))});
    wr.opcode = WrOpcode::kRdmaWriteWithImm;
    s.app_posts(wr).expect(
        {sent(packet(Opcode::kRcWriteFirst, psn(3)).of_length(256)).ack_req(false),
         sent(packet(Opcode::kRcWriteLastImm, psn(4)).of_length(44)).solicited()});
    wr.opcode = WrOpcode::kSend;
    wr.sges = {s.app().send_sge(8)};
    s.app_posts(wr).expect({sent(send_only(psn(5)).of_length(8)).solicited()});
  }
}

TEST(RdmaRead, FetchesEverySize) {
  for (const uint32_t size : {0u, 1u, 256u, 257u, 5000u, 60000u}) {
    SCOPED_TRACE(size);
    Pair pair(both(open_to_all()));
    const auto source = pair.right.memory().at(pair.right.client.id(), Endpoint::kRecvBuffer, size);
    const auto bytes = pattern(size);
    std::copy(bytes.begin(), bytes.end(), source.begin());
    pair.left.post_send(rdma(pair.right, WrOpcode::kRdmaRead, 0, pair.left.recv_sge(size)));
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kSuccess));
    EXPECT_EQ(done[0].opcode, static_cast<uint32_t>(WcOpcode::kRdmaRead));
    EXPECT_EQ(done[0].byte_len, size);
    EXPECT_EQ(pair.left.recv_bytes(size), pattern(size));
  }
}

TEST(Atomics, AddOrSwapAndReturnTheOldValue) {
  Pair pair(both(open_to_all()));
  const auto word = [&](Endpoint& side, uint64_t offset) {
    std::array<uint8_t, 8> bytes{};
    const auto read = side.recv_bytes(8, offset);
    std::copy(read.begin(), read.end(), bytes.begin());
    return std::bit_cast<uint64_t>(bytes);
  };
  SendWr add = rdma(pair.right, WrOpcode::kAtomicFetchAndAdd, 64, pair.left.recv_sge(8, 8));
  add.compare_add = 5;
  pair.left.post_send(add);
  pair.left.post_send(add);
  EXPECT_EQ(word(pair.right, 64), 10u);
  EXPECT_EQ(word(pair.left, 8), 5u);
  SendWr swap = rdma(pair.right, WrOpcode::kAtomicCmpAndSwp, 64, pair.left.recv_sge(8, 16));
  swap.compare_add = 11;
  swap.swap = 99;
  pair.left.post_send(swap);
  EXPECT_EQ(word(pair.right, 64), 10u) << "compared unequal";
  EXPECT_EQ(word(pair.left, 16), 10u);
  swap.compare_add = 10;
  pair.left.post_send(swap);
  EXPECT_EQ(word(pair.right, 64), 99u);
  EXPECT_EQ(pair.take_left().size(), 4u);
}

struct Unplaceable {
  const char* name;
  abi::Sge (*sge)(Endpoint&);
  engine::VendorError vendor;
};

class UnplaceableAnswer : public testing::TestWithParam<Unplaceable> {};

// IBTA vol 1, 11.6.2, "local protection error": the memory for a response is checked when the
// response arrives, as NICs and Linux rxe do. By then the request has been executed.
TEST_P(UnplaceableAnswer, IsALocalProtectionErrorAfterTheRequestWasCarriedOut) {
  for (const uint32_t size : {8u, 2000u}) {
    Pair pair(both(open_to_all()));
    abi::Sge sge = GetParam().sge(pair.left);
    sge.length = size;
    pair.left.post_send(rdma(pair.right, WrOpcode::kRdmaRead, 0, sge, 1));
    pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(8)}});
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].wr_id, 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocProtErr));
    EXPECT_EQ(done[0].vendor_err, static_cast<uint32_t>(GetParam().vendor));
    EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kWrFlushErr));
    EXPECT_EQ(pair.left.state(), QpState::kErr);
    EXPECT_EQ(pair.right.state(), QpState::kRts) << "nothing is wrong there";
  }
  Pair pair(both(open_to_all()));
  abi::Sge sge = GetParam().sge(pair.left);
  sge.length = 8;
  SendWr add = rdma(pair.right, WrOpcode::kAtomicFetchAndAdd, 64, sge);
  add.compare_add = 5;
  pair.left.post_send(add);
  EXPECT_EQ(statuses_of(pair.take_left()), std::vector{WcStatus::kLocProtErr});
  EXPECT_EQ(pair.right.recv_bytes(1, 64), std::vector<uint8_t>{5}) << "it was added";
}

INSTANTIATE_TEST_SUITE_P(
    For, UnplaceableAnswer,
    testing::Values(Unplaceable{"AnUnknownKey",
                                [](Endpoint& app) {
                                  abi::Sge sge = app.recv_sge(8);
                                  sge.lkey ^= 0x5500;
                                  return sge;
                                },
                                engine::VendorError::kBadSendLKey},
                    Unplaceable{"ARegionWithoutLocalWrite",
                                [](Endpoint& app) { return app.send_sge(8); },
                                engine::VendorError::kBadSendLKey},
                    Unplaceable{"ARangeBehindTheRegion",
                                [](Endpoint& app) { return app.recv_sge(8, (1 << 16) - 7); },
                                engine::VendorError::kBadSendLKey},
                    Unplaceable{"UnmappedMemory",
                                [](Endpoint& app) {
                                  app.memory().map(app.client.id(), 0x7000, 4096);
                                  const Mr mr = app.client.reg_mr(app.pd, 0x7000, 4096);
                                  app.memory().unmap(app.client.id(), 0x7000);
                                  return abi::Sge{0x7000, 8, mr.lkey};
                                },
                                engine::VendorError::kResponseMemoryUnwritable}),
    [](const testing::TestParamInfo<Unplaceable>& one) { return one.param.name; });

TEST(RdmaRead, FailsIfItsRegionIsGoneWhenTheAnswerComes) {
  ScriptOptions options = {open_to_all()};
  Script s(options);
  const Mr mr = s.client().reg_mr(s.app().pd, Endpoint::kRecvBuffer, 4096);
  s.at(0ms)
      .app_posts({.wr_id = 1,
                  .opcode = WrOpcode::kRdmaRead,
                  .sges = {{Endpoint::kRecvBuffer, 8, mr.lkey}}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  EXPECT_EQ(s.client().dereg_mr(mr.handle), 0);
  PacketSpec answer = packet(Opcode::kRcReadResponseOnly, psn(0)).of_length(8);
  answer.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(answer)
      .expect({failed(1, WcStatus::kLocProtErr).vendor(engine::VendorError::kBadSendLKey)})
      .expect_state(QpState::kErr);
}

struct Refused {
  const char* name;
  WcStatus status;
  void (*spoil)(EndpointOptions&, SendWr&);
  WrOpcode opcode;
};

class RdmaRefusal : public testing::TestWithParam<Refused> {};

TEST_P(RdmaRefusal, FailsTheWriterWithItsCause) {
  EndpointOptions right = open_to_all();
  SendWr changes;
  GetParam().spoil(right, changes);
  PairOptions options;
  options.left = open_to_all();
  options.right = right;
  Pair pair(options);
  SendWr wr = rdma(pair.right, GetParam().opcode, 0, pair.left.recv_sge(8));
  wr.remote_address += changes.remote_address;
  wr.rkey += changes.rkey;
  pair.left.post_send(wr);
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(GetParam().status));
  EXPECT_EQ(pair.left.state(), QpState::kErr);
  EXPECT_EQ(pair.right.state(), QpState::kErr);
}

INSTANTIATE_TEST_SUITE_P(
    Of, RdmaRefusal,
    testing::Values(
        Refused{"WrongKey", WcStatus::kRemAccessErr,
                [](EndpointOptions&, SendWr& wr) { wr.rkey = 1; }, WrOpcode::kRdmaWrite},
        Refused{"OneByteTooFar", WcStatus::kRemAccessErr,
                [](EndpointOptions&, SendWr& wr) { wr.remote_address = (1 << 16) - 7; },
                WrOpcode::kRdmaRead},
        Refused{"MisalignedAtomic", WcStatus::kRemInvReqErr,
                [](EndpointOptions&, SendWr& wr) { wr.remote_address = 4; },
                WrOpcode::kAtomicFetchAndAdd},
        Refused{"RegionWithoutRemoteRead", WcStatus::kRemAccessErr,
                [](EndpointOptions& right, SendWr&) { right.recv_access = abi::kAccessLocalWrite; },
                WrOpcode::kRdmaRead},
        Refused{"QpWithoutRemoteWrite", WcStatus::kRemInvReqErr,
                [](EndpointOptions& right, SendWr&) { right.connection.access = 0; },
                WrOpcode::kRdmaWrite}),
    [](const testing::TestParamInfo<Refused>& one) { return one.param.name; });

// A READ is executed again for a repeated request, and only the missing part is requested again.
TEST(RdmaRead, RequestsLostResponsesAgain) {
  ScriptOptions options;
  options.connection = open_to_all().connection;
  Script s(options);
  s.at(0ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(700)}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  PacketSpec first = packet(Opcode::kRcReadResponseFirst, psn(0)).of_length(256);
  first.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(first).expect_silence();
  PacketSpec last = packet(Opcode::kRcReadResponseLast, psn(2)).of_length(188);
  last.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(last).expect({packet(Opcode::kRcReadRequest, psn(1))});
  PacketSpec again = packet(Opcode::kRcReadResponseFirst, psn(1)).of_length(256);
  again.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(again).expect_silence();
  s.wire_delivers(last).expect({completion(1).opcode(WcOpcode::kRdmaRead)});
}

// 9.7.5.1.2: all packets that were in flight after a lost response show the same loss, so the
// response is requested again only once. If the repeated response is also lost, the timer notices
// it.
TEST(RdmaRead, OneLostAnswerIsOneRetryHoweverMuchComesBehindIt) {
  ScriptOptions options;
  options.connection = open_to_all().connection;
  options.connection.retry_cnt = 2;
  Script s(options);
  s.at(0ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(2000)}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  const auto answer = [](Opcode opcode, uint32_t number, uint32_t length) {
    PacketSpec spec = packet(opcode, psn(number)).of_length(length);
    spec.packet.aeth.syndrome = wire::ack_syndrome();
    return spec;
  };
  s.wire_delivers(answer(Opcode::kRcReadResponseFirst, 0, 256)).expect_silence();
  s.wire_delivers(answer(Opcode::kRcReadResponseMiddle, 2, 256))
      .expect({packet(Opcode::kRcReadRequest, psn(1))});
  for (uint32_t number = 3; number < 7; ++number) {
    s.wire_delivers(answer(Opcode::kRcReadResponseMiddle, number, 256)).expect_silence();
  }
  s.wire_delivers(answer(Opcode::kRcReadResponseFirst, 1, 256)).expect_silence();
  s.wire_delivers(answer(Opcode::kRcReadResponseMiddle, 3, 256))
      .expect({packet(Opcode::kRcReadRequest, psn(2))});
  s.at(ack_timeout(14)).expect({packet(Opcode::kRcReadRequest, psn(2))});
}

// 9.7.7.1: the MSN of a response is the current number of completed messages, even if the response
// is repeated.
TEST(Atomics, RepeatedResponsesHaveTheCurrentMsn) {
  ScriptOptions options = {open_to_all()};
  Script s(options);
  const auto add = [&s](uint32_t number) {
    PacketSpec spec = packet(Opcode::kRcFetchAdd, psn(number));
    spec.packet.atomic = {
        .va = Endpoint::kRecvBuffer, .rkey = s.app().recv_mr.rkey, .swap_add = 1, .compare = 0};
    return spec;
  };
  const auto answer = [](uint32_t number, uint32_t msn) {
    PacketSpec spec = packet(Opcode::kRcAtomicAck, psn(number));
    spec.packet.aeth = {.syndrome = wire::ack_syndrome(), .msn = msn};
    return spec;
  };
  s.at(0ms).wire_delivers(add(0)).expect({answer(0, 1)});
  s.wire_delivers(add(1)).expect({answer(1, 2)});
  s.wire_delivers(add(0)).expect({answer(0, 2)});
}

TEST(RdmaRead, MoreThanTheResponderHasRoomForWait) {
  ScriptOptions options;
  options.connection = open_to_all().connection;
  options.connection.max_rd_atomic = 2;
  Script s(options);
  const SendWr read{.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(8)}};
  s.at(0ms).app_posts(read).app_posts(read).app_posts(read).expect(
      {packet(Opcode::kRcReadRequest, psn(0)), packet(Opcode::kRcReadRequest, psn(1))});
  PacketSpec answer = packet(Opcode::kRcReadResponseOnly, psn(0)).of_length(8);
  answer.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(answer).expect(
      {completion(1).opcode(WcOpcode::kRdmaRead), packet(Opcode::kRcReadRequest, psn(2))});
}

// ibv_post_send(3), IBV_SEND_FENCE: the request is processed only after all earlier READs and
// atomics.
TEST(Fence, HoldsASendBackUntilTheAnswersAreThere) {
  ScriptOptions options;
  options.connection = open_to_all().connection;
  Script s(options);
  s.at(0ms).app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(8)}});
  s.app_posts(
       {.wr_id = 2, .flags = abi::kSendSignaled | abi::kSendFence, .sges = {s.app().send_sge(8)}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  PacketSpec answer = packet(Opcode::kRcReadResponseOnly, psn(0)).of_length(8);
  answer.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(answer).expect({completion(1).opcode(WcOpcode::kRdmaRead), send_only(psn(1))});
}

// A response of a wrong type or length fails its request with IBV_WC_BAD_RESP_ERR.
TEST(Answers, OfTheWrongKindOrLengthFailTheRequest) {
  for (const auto& [opcode, length] : {std::pair{Opcode::kRcReadResponseOnly, 7u},
                                       {Opcode::kRcReadResponseFirst, 256u},
                                       {Opcode::kRcAtomicAck, 0u}}) {
    ScriptOptions options;
    options.connection = open_to_all().connection;
    Script s(options);
    s.at(0ms)
        .app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(8)}})
        .expect({packet(Opcode::kRcReadRequest, psn(0))});
    PacketSpec answer = packet(opcode, psn(0)).of_length(length);
    answer.packet.aeth.syndrome = wire::ack_syndrome();
    s.wire_delivers(answer).expect({failed(1, WcStatus::kBadRespErr)}).expect_state(QpState::kErr);
  }
}

// Whichever frames the link loses or duplicates, every operation takes effect exactly once, in
// order.
TEST(Rdma, OverALinkThatLosesAndDoublesFramesEqualsAModel) {
  constexpr uint32_t kSpace = 16384;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    engine::Random random(seed);
    EndpointOptions options = open_to_all();
    options.connection.timeout = 8;
    JoinedPair pair(options, options);
    pair.copies = [&](std::span<const uint8_t>) {
      const uint64_t chance = random.next() % 20;
      return chance == 0 ? 0 : chance == 1 ? 2 : 1;
    };
    std::vector<uint8_t> remote(kSpace), local(kSpace);  // the model: both receive buffers
    uint64_t completed = 0;
    for (uint64_t i = 0; i < 40; ++i) {
      const auto length = static_cast<uint32_t>(random.next() % 1500);
      const uint64_t there = random.next() % (kSpace - 1500) / 8 * 8;
      const uint64_t here = random.next() % (kSpace - 1500) / 8 * 8;
      const auto bytes = pattern(length, static_cast<uint32_t>(i));
      switch (random.next() % 4) {
        case 0: {
          pair.left.fill_send_buffer(bytes);
          std::copy(bytes.begin(), bytes.end(), remote.begin() + static_cast<ptrdiff_t>(there));
          pair.left.post_send(
              rdma(pair.right, WrOpcode::kRdmaWrite, there, pair.left.send_sge(length)));
          break;
        }
        case 1:
          std::copy_n(remote.begin() + static_cast<ptrdiff_t>(there), length,
                      local.begin() + static_cast<ptrdiff_t>(here));
          pair.left.post_send(
              rdma(pair.right, WrOpcode::kRdmaRead, there, pair.left.recv_sge(length, here)));
          break;
        case 2: {
          SendWr add =
              rdma(pair.right, WrOpcode::kAtomicFetchAndAdd, there, pair.left.recv_sge(8, here));
          add.compare_add = random.next();
          uint64_t value;
          std::memcpy(&value, &remote[there], sizeof value);
          std::memcpy(&local[here], &value, sizeof value);
          value += add.compare_add;
          std::memcpy(&remote[there], &value, sizeof value);
          pair.left.post_send(add);
          break;
        }
        default:
          pair.left.fill_send_buffer(bytes);
          std::copy(bytes.begin(), bytes.end(), remote.begin() + static_cast<ptrdiff_t>(there));
          pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(length, there)}});
          pair.left.post_send({.wr_id = i, .sges = {pair.left.send_sge(length)}});
      }
      // Operations run one at a time, so that they take effect in the order of the model.
      pair.run_until(engine::Duration(10s) * static_cast<int64_t>(i + 1));
      for (const abi::Cqe& cqe : pair.take_left()) {
        ASSERT_EQ(cqe.status, static_cast<uint32_t>(WcStatus::kSuccess)) << "operation " << i;
        ++completed;
      }
      ASSERT_EQ(completed, i + 1);
      ASSERT_EQ(pair.right.recv_bytes(kSpace), remote) << "operation " << i;
      ASSERT_EQ(pair.left.recv_bytes(kSpace), local) << "operation " << i;
    }
  }
}

}  // namespace
}  // namespace rocemu::test
