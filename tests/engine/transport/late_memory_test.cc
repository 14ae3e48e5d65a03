// Tests how requester and responder wait for memory that is not available yet
// (MemoryResult::kNotYet).
#include <gtest/gtest.h>

#include <algorithm>

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
constexpr uint8_t kRnrTimer = 12;  // 0.64 ms

EndpointOptions open_to_all(abi::QpType type = abi::QpType::kRc) {
  EndpointOptions options;
  options.connection.type = type;
  options.connection.access = kAll;
  options.connection.max_rd_atomic = 4;
  options.connection.min_rnr_timer = kRnrTimer;
  options.recv_access = kAll;
  return options;
}

/// A script whose device has memory that can be late.
class LateScript : public Script {
 public:
  explicit LateScript(const EndpointOptions& options = open_to_all()) : Script({options}) {}

  LateScript& memory_is_late() {
    app().memory().not_yet.insert(client().id());
    return *this;
  }
  LateScript& memory_is_there() {
    app().memory().not_yet.clear();
    bench().step(engine::MemoryReady{});
    return *this;
  }
};

PacketSpec to_memory(LateScript& s, PacketSpec spec, uint32_t length) {
  spec.packet.reth = {
      .va = Endpoint::kRecvBuffer, .rkey = s.app().recv_mr.rkey, .dma_length = length};
  return spec;
}

PacketSpec answer(Opcode opcode, uint32_t number, uint32_t length) {
  PacketSpec spec = packet(opcode, psn(number)).of_length(length);
  spec.packet.aeth.syndrome = wire::ack_syndrome();
  return spec;
}

// ---- Requester --------------------------------------------------------------------------------

TEST(LateMemory, ARequestIsSentWhenItsPayloadIsThere) {
  LateScript s;
  s.at(0ms);
  s.memory_is_late().app_posts_send(1).app_posts_send(2).expect_silence();
  s.at(10000ms).expect_silence();  // nothing was sent, and no timer runs
  s.memory_is_there().expect({send_only(psn(0)), send_only(psn(1))});
  s.wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

TEST(LateMemory, ALongMessageContinuesWhereItStopped) {
  LateScript s;
  s.at(0ms).app_posts_send(1, 2500).expect(
      {send_first(psn(0)), send_middle(psn(1)), send_last(psn(2))});
  s.memory_is_late().wire_delivers(sequence_nak(psn(1))).expect_silence();
  s.memory_is_there().expect({send_middle(psn(1)), send_last(psn(2))});
  s.wire_delivers(ack(psn(2))).expect({completion(1)});
}

// A response that arrives while the memory for its data is not available is discarded. It is
// requested again when the memory is available.
TEST(LateMemory, AnAnswerWithoutAPlaceIsAskedForAgainWhenThereIsOne) {
  LateScript s;
  s.at(0ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(8)}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  s.memory_is_late().wire_delivers(answer(Opcode::kRcReadResponseOnly, 0, 8)).expect_silence();
  s.memory_is_there().expect({packet(Opcode::kRcReadRequest, psn(0))});
  s.wire_delivers(answer(Opcode::kRcReadResponseOnly, 0, 8))
      .expect({completion(1).opcode(WcOpcode::kRdmaRead)});
}

TEST(LateMemory, AnErrorStateEndsAWait) {
  LateScript s;
  s.at(0ms);
  s.memory_is_late().app_posts_send(1).expect_silence();
  s.app_sets_state(QpState::kErr).expect({completion(1).status(WcStatus::kWrFlushErr)});
  s.memory_is_there().expect_silence();
}

// ---- Responder --------------------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.8: "the responder is temporarily unable to accept the request".
TEST(LateMemory, ASendIsAnsweredByRnrNakAndTakesNoReceive) {
  LateScript s;
  s.at(0ms).app_posts_recv(5);
  s.memory_is_late();
  s.wire_delivers(send_only(psn(0)).with({1, 2})).expect({rnr_nak(psn(0), kRnrTimer)});
  // 9.7.5.1.1: the packet is dropped because it follows a packet that was refused
  s.wire_delivers(send_only(psn(1)).with({3})).expect_silence();
  s.memory_is_there().expect_silence();
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).with({1, 2}))
      .expect({received(5).bytes(2), ack(psn(0)).with_msn(1)})
      .expect_received({1, 2});
}

TEST(LateMemory, AWriteIsAnsweredByRnrNak) {
  LateScript s;
  s.at(0ms);
  const auto write = to_memory(s, packet(Opcode::kRcWriteOnly, psn(0)).with({7, 8}), 2);
  s.memory_is_late().wire_delivers(write).expect({rnr_nak(psn(0), kRnrTimer)});
  s.memory_is_there();
  s.wire_delivers(write).expect({ack(psn(0)).with_msn(1)}).expect_received({7, 8});
}

// 9.7.5.2.8: the requester repeats the message from the packet that an RNR NAK names, even in the
// middle of the message.
TEST(LateMemory, AMessageContinuesAtTheRefusedPacket) {
  LateScript s;
  s.at(0ms).app_posts_recv(5);
  const auto bytes = pattern(2048);
  const std::vector<uint8_t> front(bytes.begin(), bytes.begin() + 1024);
  const std::vector<uint8_t> back(bytes.begin() + 1024, bytes.end());
  s.wire_delivers(send_first(psn(0)).with(front)).expect_silence();
  s.memory_is_late().wire_delivers(send_last(psn(1)).with(back));
  s.expect({rnr_nak(psn(1), kRnrTimer)});
  s.memory_is_there();
  s.wire_delivers(send_last(psn(1)).with(back))
      .expect({received(5).bytes(2048), ack(psn(1)).with_msn(1)})
      .expect_received(bytes);
}

TEST(LateMemory, AReadIsAnsweredWhenItIsThere) {
  LateScript s;
  s.at(0ms);
  const auto read = to_memory(s, packet(Opcode::kRcReadRequest, psn(0)), 1500);
  s.memory_is_late().wire_delivers(read).expect_silence();
  // the peer's timer expired: this is a repeated request, not a second one
  s.wire_delivers(read).expect_silence();
  s.memory_is_there().expect({answer(Opcode::kRcReadResponseFirst, 0, 1024).with_msn(1),
                              answer(Opcode::kRcReadResponseLast, 1, 476).with_msn(1)});
}

// IBTA vol 1, 9.7.5.2.3: the responder finds the error after it has accepted the READ, so the MSN
// already counts the READ.
TEST(LateMemory, AReadOfMemoryThatWasUnmappedMeanwhileIsRefused) {
  LateScript s;
  s.at(0ms);
  s.memory_is_late();
  s.wire_delivers(to_memory(s, packet(Opcode::kRcReadRequest, psn(0)), 8)).expect_silence();
  s.app().memory().unmap(s.client().id(), Endpoint::kRecvBuffer);
  s.memory_is_there()
      .expect({nak(psn(0), wire::NakCode::kRemoteOperationalError).with_msn(1),
               event(abi::EventType::kQpAccessErr, Endpoint::kQpHandle)})
      .expect_state(QpState::kErr);
}

TEST(LateMemory, AReadOfAProcessThatDiedMeanwhileIsNotAnswered) {
  LateScript s;
  s.at(0ms);
  s.memory_is_late();
  s.wire_delivers(to_memory(s, packet(Opcode::kRcReadRequest, psn(0)), 8)).expect_silence();
  s.app().memory().gone.insert(s.client().id());
  s.memory_is_there().expect_silence().expect_state(QpState::kRts);
}

// The responder has resources for only four READs (IBTA vol 1, 9.7.4.1.5). While repeated READs
// wait, the requester, which has received the first answer, may send a new READ. The new READ takes
// the resources of the oldest READ.
TEST(LateMemory, ANewReadTakesTheResourcesOfTheOldestThatIsRepeated) {
  LateScript s;
  s.at(0ms);
  const auto read = [&](uint32_t number) {
    return to_memory(s, packet(Opcode::kRcReadRequest, psn(number)), 64);
  };
  const auto answered = [](uint32_t number, uint32_t msn) {
    return answer(Opcode::kRcReadResponseOnly, number, 64).with_msn(msn);
  };
  for (uint32_t n = 0; n < 4; ++n) s.wire_delivers(read(n)).expect({answered(n, n + 1)});
  s.memory_is_late();
  for (uint32_t n = 0; n < 5; ++n) s.wire_delivers(read(n)).expect_silence();
  s.memory_is_there().expect({answered(1, 4), answered(2, 4), answered(3, 4), answered(4, 5)});
}

// READs that wait for their data count as outstanding: with one more READ, the peer exceeds the
// number of READs that it may have outstanding.
TEST(LateMemory, ANewReadBesideAsManyThatWaitIsRefused) {
  LateScript s;
  s.memory_is_late().at(0ms);
  const auto read = [&](uint32_t number) {
    return to_memory(s, packet(Opcode::kRcReadRequest, psn(number)), 64);
  };
  const auto answered = [](uint32_t number, uint32_t msn) {
    return answer(Opcode::kRcReadResponseOnly, number, 64).with_msn(msn);
  };
  for (uint32_t n = 0; n < 4; ++n) s.wire_delivers(read(n)).expect_silence();
  s.wire_delivers(read(1)).expect_silence();  // a repeated READ takes the place of the original
  // the NAK for this READ is sent after the answers to the READs before it
  s.wire_delivers(read(4)).expect_silence();
  s.memory_is_there()
      .expect({answered(0, 1), answered(1, 4), answered(2, 3), answered(3, 4),
               nak(psn(4), wire::NakCode::kInvalidRequest).with_msn(4),
               event(abi::EventType::kQpReqErr, Endpoint::kQpHandle)})
      .expect_state(QpState::kErr);
}

TEST(LateMemory, AnAtomicIsExecutedOnce) {
  Pair pair({.left = open_to_all(), .right = open_to_all()});
  auto& late = pair.bench.memory.not_yet;
  late.insert(pair.right.client.id());
  pair.left.post_send({.wr_id = 1,
                       .opcode = WrOpcode::kAtomicFetchAndAdd,
                       .sges = {pair.left.recv_sge(8)},
                       .remote_address = Endpoint::kRecvBuffer,
                       .rkey = pair.right.recv_mr.rkey,
                       .compare_add = 1});
  for (int i = 1; i <= 20; ++i) pair.bench.advance_to(i * 1ms);
  EXPECT_TRUE(pair.take_left().empty());
  late.clear();
  pair.bench.step(engine::MemoryReady{});
  pair.bench.advance_to(1s);
  ASSERT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.right.recv_bytes(8), (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 0}));
}

// A UC message is not repeated. It must not be received in part.
TEST(LateMemory, AUcMessageIsDroppedAndTakesNoReceive) {
  LateScript s(open_to_all(abi::QpType::kUc));
  const auto message = send_only(psn(0)).over(wire::Transport::kUc).ack_req(false).with({1});
  s.at(0ms).app_posts_recv(5);
  s.memory_is_late().wire_delivers(message).expect_silence();
  s.memory_is_there().expect_silence();
  PacketSpec next = message;
  next.packet.bth.psn = psn(1);
  s.wire_delivers(next).expect({received(5)});
}

// ---- Both sides, over a link -------------------------------------------------------------------

// If the memory of either side is unavailable, but for less time than the peer retries, everything
// arrives.
TEST(LateMemory, PipelinedWorkOfEveryKindArrivesWhicheverSideIsLate) {
  for (const bool right : {false, true}) {
    for (const WrOpcode opcode : {WrOpcode::kSend, WrOpcode::kRdmaWrite, WrOpcode::kRdmaRead}) {
      SCOPED_TRACE(testing::Message() << (right ? "right " : "left ") << static_cast<int>(opcode));
      EndpointOptions options = open_to_all();
      options.connection.rnr_retry = 7;  // no limit
      options.connection.mtu = abi::Mtu::k256;
      Pair pair({.left = options, .right = options});
      const bool reads = opcode == WrOpcode::kRdmaRead;
      const auto bytes = pattern(16000);
      pair.left.fill_send_buffer(bytes);
      std::ranges::copy(
          bytes, pair.bench.memory.at(pair.right.client.id(), Endpoint::kRecvBuffer, bytes.size())
                     .begin());
      auto& late = pair.bench.memory.not_yet;
      const auto id = (right ? pair.right : pair.left).client.id();
      late.insert(id);
      for (uint64_t i = 0; i < 16; ++i) {
        const auto length = 1000u;
        const uint64_t offset = i * length;
        if (opcode == WrOpcode::kSend) {
          pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(length, offset)}});
        }
        pair.left.post_send({.wr_id = i,
                             .opcode = opcode,
                             .sges = {reads ? pair.left.recv_sge(length, offset)
                                            : pair.left.send_sge(length, offset)},
                             .remote_address = Endpoint::kRecvBuffer + offset,
                             .rkey = pair.right.recv_mr.rkey});
      }
      // The memory becomes unavailable and available again, twenty times.
      for (int i = 1; i <= 40; ++i) {
        pair.bench.advance_to(i * 3ms);
        if (i % 2 == 0) {
          late.insert(id);
        } else {
          late.clear();
          pair.bench.step(engine::MemoryReady{});
        }
      }
      late.clear();
      pair.bench.step(engine::MemoryReady{});
      pair.bench.advance_to(10s);
      const auto done = pair.take_left();
      ASSERT_EQ(done.size(), 16u);
      for (const abi::Cqe& cqe : done) EXPECT_EQ(cqe.status, 0u);
      Endpoint& to = reads ? pair.left : pair.right;
      EXPECT_EQ(to.recv_bytes(bytes.size()), bytes);
    }
  }
}

}  // namespace
}  // namespace rocemu::test
