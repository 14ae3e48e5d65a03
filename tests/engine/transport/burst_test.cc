// Tests frames that arrive from outside in one burst: one ACK is sent for all requests of a QP in
// the burst (IBTA vol 1, 9.7.5.1.2), or for as many as FabricConfig::ack_coalescing allows.
#include <gtest/gtest.h>

#include "emulator/scenario/scenario.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcStatus;
using engine::Counter;

ScriptOptions outside() {
  ScriptOptions options;
  options.outside = true;
  options.ack_coalescing = 16;
  return options;
}

TEST(Burst, OneAcknowledgementIsForAllRequestsOfAQp) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.expect({received(1), received(2), received(3), ack(psn(2)).with_msn(3)});
}

TEST(Burst, FramesThatComeByThemselvesAreAcknowledgedByThemselves) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1))).expect({received(2), ack(psn(1)).with_msn(2)});
}

// 9.7.5.1.3: at the end of the burst, the ACK names the last packet that requests an
// acknowledgement.
TEST(Burst, AMessageThatRequestsNoAcknowledgementGetsNone) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers_burst({send_only(psn(0)).ack_req(true), send_only(psn(1)).ack_req(true),
                         send_only(psn(2)).ack_req(false)});
  s.expect({received(1), received(2), received(3), ack(psn(1)).with_msn(2)});
}

TEST(Burst, AGapIsANakThatAcknowledgesAllMessagesBeforeIt) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(2)), send_only(psn(3))});
  s.expect({received(1), sequence_nak(psn(1)).with_msn(1)});
}

// 9.7.5.2.8: an RNR NAK acknowledges all packets before the one that it names.
TEST(Burst, AnRnrNakAcknowledgesAllMessagesBeforeIt) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.expect({received(1), rnr_nak(psn(1), 12).with_msn(1)});
}

TEST(Burst, ADuplicateIsNotExecutedAgain) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(0)), send_only(psn(1))});
  s.expect({received(1), received(2), ack(psn(1)).with_msn(2)});
  s.expect_counter(Counter::kDuplicateRequests, 1);
}

TEST(Burst, AnAcknowledgementIsForAsManyMessagesAsTheFabricSays) {
  ScriptOptions options = outside();
  options.ack_coalescing = 2;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.expect(
      {received(1), received(2), ack(psn(1)).with_msn(2), received(3), ack(psn(2)).with_msn(3)});
}

TEST(Burst, EachMessageHasItsOwnAcknowledgementWhereNoneAreCoalesced) {
  ScriptOptions options = outside();
  options.ack_coalescing = 1;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1))});
  s.expect({received(1), ack(psn(0)), received(2), ack(psn(1)).with_msn(2)});
}

TEST(Burst, ARuleForFramesDoesNotChangeItsEffect) {
  Script s(outside());
  s.bench().step(
      engine::AddRules{scenario::parse_rule("{on: frame, opcode: ACK, psn_num: 77, do: drop}")});
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1))});
  s.expect({received(1), received(2), ack(psn(1)).with_msn(2)});
}

// The rule rewrites the first frame, and then has no effect any more. The second frame must still
// stay behind the first.
TEST(Burst, FramesKeepTheirOrderWhenARuleIsUsedUp) {
  Script s(outside());
  s.bench().step(engine::AddRules{scenario::parse_rule(
      "{on: frame, opcode: SEND_ONLY, total: 1, do: {rewrite: {solicited: 1}}}")});
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1))});
  EXPECT_EQ(completions_of(s.bench().log, s.client().id()).size(), 2u);
  s.expect_counter(Counter::kOutOfSequence, 0);
  s.bench().log.clear();
}

TEST(Burst, AMessageIsWrittenInOneCall) {
  Script s(outside());
  const auto message = pattern(5 * 1024);
  const auto part = [&](size_t i) {
    return std::vector<uint8_t>(message.begin() + static_cast<ptrdiff_t>(i * 1024),
                                message.begin() + static_cast<ptrdiff_t>((i + 1) * 1024));
  };
  s.at(0ms).app_posts_recv(1, 8192);
  const uint64_t before = s.bench().memory.writes;
  s.wire_delivers_burst({send_first(psn(0)).with(part(0)), send_middle(psn(1)).with(part(1)),
                         send_middle(psn(2)).with(part(2)), send_middle(psn(3)).with(part(3)),
                         send_last(psn(4)).with(part(4))});
  EXPECT_EQ(s.bench().memory.writes - before, 1u);
  s.expect({received(1).bytes(5 * 1024), ack(psn(4))});
  s.expect_received(message);
}

TEST(Burst, ADamagedFrameIsNotWritten) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1, 8192);
  const std::vector<PacketSpec> specs = {send_first(psn(0)).of_length(1024),
                                         send_middle(psn(1)).of_length(1024),
                                         send_last(psn(2)).of_length(1024)};
  std::vector<std::vector<uint8_t>> frames;
  for (const PacketSpec& spec : specs) frames.push_back(s.frame(spec));
  frames[1][200] ^= 1;
  const std::vector<engine::ReceivedFrame> burst = {{engine::DeviceIndex{0}, frames[0]},
                                                    {engine::DeviceIndex{0}, frames[1]},
                                                    {engine::DeviceIndex{0}, frames[2]}};
  s.bench().step(engine::ReceivedFrames{burst});
  s.expect({sequence_nak(psn(1)).with_msn(0)});
  s.expect_counter(Counter::kDroppedBadIcrc, 1);
}

// If an error ends the QP in the middle of a burst, the rest of the burst is dropped.
TEST(Burst, AnOverrunOfTheCqFailsTheQpAtOnce) {
  ScriptOptions options = outside();
  options.cq_capacity = 1;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers_burst({send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.expect_state(QpState::kErr);
  s.expect_counter(Counter::kDroppedUnknownQp, 1);
  s.bench().log.clear();
}

TEST(Burst, WithoutFramesHasNoEffect) {
  Script s(outside());
  s.at(0ms);
  s.bench().step(engine::ReceivedFrames{});
  s.expect_silence();
}

}  // namespace
}  // namespace rocemu::test
