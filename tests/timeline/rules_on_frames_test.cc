// Tests how a timeline of a recording shows what rules do to frames: at the frame on which the rule
// acted, and nowhere else.
#include <gmock/gmock.h>

#include "tests/engine/faults/rules.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "tests/timeline/recorder.h"

namespace rocemu::test {
namespace {

using abi::WrOpcode;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using timeline::Happening;
using timeline::Tone;

constexpr uint32_t kAll = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                          abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

class RulesOnFrames : public testing::Test {
 protected:
  static PairOptions options(BenchObserver* observer) {
    PairOptions options;
    for (EndpointOptions* side : {&options.left, &options.right}) {
      side->connection.access = kAll;
      side->connection.max_rd_atomic = 4;
      side->connection.mtu = abi::Mtu::k256;
      side->recv_access = kAll;
    }
    options.trace_frames = true;
    options.link_latency = 1us;
    options.observer = observer;
    return options;
  }
  void rule(const std::string& text) { add_rules(pair_.bench, text); }
  void post_receives(int count) {
    for (int i = 0; i < count; ++i)
      pair_.right.post_recv({.wr_id = 100, .sges = {pair_.right.recv_sge(4096)}});
  }
  void send(uint32_t length = 8) {
    pair_.left.post_send({.wr_id = 1, .sges = {pair_.left.send_sge(length)}});
  }
  /// Sends messages without waiting for completions in between.
  void send_at_once(uint32_t count) {
    const SendWr wr = {.wr_id = 1, .sges = {pair_.left.send_sge(8)}};
    pair_.left.client.post_sends(pair_.left.qpn, std::vector<SendWr>(count, wr));
  }
  void ask(WrOpcode opcode, uint32_t length) {
    pair_.left.post_send({.wr_id = 1,
                          .opcode = opcode,
                          .sges = {pair_.left.recv_sge(length)},
                          .remote_address = Endpoint::kRecvBuffer,
                          .rkey = pair_.right.recv_mr.rkey});
  }
  void until(engine::Duration time) { pair_.bench.advance_to(time); }
  timeline::Timeline timeline() { return recorder_.timeline(); }
  std::vector<std::string> reasons() { return reasons_of(timeline()); }

  Recorder recorder_;
  Pair pair_{options(&recorder_)};
};

bool is_named(const Happening& frame, const std::string& text) {
  return frame.reason.find(text) != std::string::npos;
}

// ---- Which frame is marked ---------------------------------------------------------------------

TEST_F(RulesOnFrames, ARewrittenFrameThatIsDelayedIsTheOneWhoseFieldChanged) {
  rule("{name: late, on: frame, opcode: SEND, nth: 2, do: {rewrite: {solicited: 1}, delay: 50us}}");
  post_receives(8);
  send_at_once(4);
  until(10ms);
  int rewritten = 0;
  for (const Happening& frame : frames_of(timeline())) {
    EXPECT_EQ(packet_of(frame).bth.solicited, is_named(frame, "rewritten")) << frame.text;
    if (!is_named(frame, "rewritten")) continue;
    ++rewritten;
    EXPECT_EQ(frame.psn, 1);
    EXPECT_THAT(frame.reason, HasSubstr("rewritten and delayed by 50 us by rule 'late'"));
    EXPECT_EQ(frame.held, 50us);
    EXPECT_EQ(frame.at, engine::Instant(50us));
    EXPECT_EQ(frame.tone, Tone::kFault);
  }
  EXPECT_EQ(rewritten, 1);
}

TEST_F(RulesOnFrames, ACorruptedFrameThatIsDelayedIsTheOneWithTheWrongIcrc) {
  rule("{name: late, on: frame, opcode: SEND, nth: 2, do: {corrupt: icrc, delay: 50us}}");
  post_receives(8);
  send_at_once(4);
  until(10ms);
  int corrupted = 0;
  for (const Happening& frame : frames_of(timeline())) {
    EXPECT_EQ(wire::check_icrc(frame.bytes), !is_named(frame, "corrupted")) << frame.text;
    if (!is_named(frame, "corrupted")) continue;
    ++corrupted;
    EXPECT_EQ(frame.psn, 1);
    EXPECT_THAT(frame.reason, HasSubstr("corrupted and delayed by 50 us by rule 'late'"));
  }
  EXPECT_EQ(corrupted, 1);
}

// IBTA vol 1, 9.7.6.1.3: the ACK timeout is 4.096 us * 2^14, or 67.108864 ms.
TEST_F(RulesOnFrames, AFrameDelayedBeyondTheAckTimeoutComesAfterItsRetransmission) {
  rule("{name: slow, on: frame, opcode: SEND, nth: 1, do: {delay: 100ms}}");
  post_receives(1);
  send();
  until(200ms);
  const timeline::Timeline timeline = recorder_.timeline();
  const auto frames = frames_of(timeline);
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(frames[0].at, engine::Instant(67'108'864ns));
  EXPECT_EQ(frames[0].reason, "retransmission: no ACK within 67.109 ms");
  EXPECT_EQ(frames[0].tone, Tone::kAgain);
  EXPECT_EQ(frames[1].reason, "");  // the ACK
  EXPECT_EQ(frames[2].at, engine::Instant(100ms));
  EXPECT_EQ(frames[2].reason, "delayed by 100 ms by rule 'slow'; overtaken by 1 frame");
  EXPECT_EQ(frames[2].held, 100ms);
  EXPECT_EQ(frames[3].reason, "answers a duplicate");
}

TEST_F(RulesOnFrames, ARuleWithNthActsOnThatFrameOfEachQp) {
  Endpoint left(pair_.bench, engine::ClientId{3}, engine::DeviceIndex{0}, {});
  Endpoint right(pair_.bench, engine::ClientId{4}, engine::DeviceIndex{1}, {});
  ASSERT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 0, 0, 2)), right.qpn));
  ASSERT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 0, 0, 1)), left.qpn));
  rule("{name: lost, on: frame, opcode: SEND, nth: 2, do: drop}");
  post_receives(4);
  for (int i = 0; i < 4; ++i) right.post_recv({.wr_id = 1, .sges = {right.recv_sge(64)}});
  for (int i = 0; i < 3; ++i) {
    send();
    left.post_send({.wr_id = 1, .sges = {left.send_sge(8)}});
  }
  until(1s);
  const timeline::Timeline timeline = recorder_.timeline();
  std::vector<std::pair<uint32_t, int>> lost;  // (QPN of the receiver, PSN)
  for (const Happening& frame : frames_of(timeline)) {
    EXPECT_EQ(frame.lost, is_named(frame, "dropped by rule 'lost'"));
    if (frame.lost) lost.emplace_back(timeline.lanes[frame.to].qpn, frame.psn.value());
  }
  EXPECT_THAT(lost, ElementsAre(std::pair(pair_.right.qpn, 1), std::pair(right.qpn, 1)));
}

TEST_F(RulesOnFrames, AFrameWithTheSameBytesAsAnotherIsNotConfusedWithIt) {
  rule("{name: seen, on: frame, opcode: SEND, nth: 3, do: log}");
  rule("{name: lost, on: frame, opcode: ACK, do: drop}");
  post_receives(1);
  send();
  until(200ms);  // two timeouts pass, so three frames have the same bytes
  EXPECT_THAT(reasons(),
              ElementsAre("ACK psn +0: dropped by rule 'lost'",
                          "psn +0: retransmission: no ACK within 67.109 ms",
                          "ACK psn +0: dropped by rule 'lost'; answers a duplicate",
                          "psn +0: rule 'seen' acts here; retransmission: no ACK within 67.109 ms",
                          "ACK psn +0: dropped by rule 'lost'; answers a duplicate"));
}

// ---- Each effect -------------------------------------------------------------------------------

TEST_F(RulesOnFrames, CopiesAreCalledCopiesOfTheRule) {
  rule("{name: twice, on: frame, opcode: SEND, nth: 2, do: {duplicate: 2}}");
  post_receives(4);
  for (int i = 0; i < 3; ++i) send();
  until(10ms);
  EXPECT_THAT(reasons(),
              ElementsAre("psn +1: duplicated by rule 'twice'", "psn +1: copy made by rule 'twice'",
                          "psn +1: copy made by rule 'twice'", "ACK psn +1: answers a duplicate",
                          "ACK psn +1: answers a duplicate"));
}

TEST_F(RulesOnFrames, AFrameThatOthersOvertakeIsNoRetransmission) {
  rule("{name: overtaken, on: frame, opcode: SEND, nth: 2, do: reorder}");
  post_receives(4);
  send_at_once(3);
  until(10ms);
  const auto all = reasons();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0], "psn +1: reordered by rule 'overtaken'; overtaken by 1 frame");
  // IBTA vol 1, 9.7.5.1.2: the responder requests the late frame again.
  EXPECT_THAT(all, Not(Contains(HasSubstr("no ACK within"))));
}

TEST_F(RulesOnFrames, TheDelayOfALinkIsOfTheLinkAndOvertakingIsCounted) {
  rule("{name: varying, on: link, do: {latency: 20us, jitter: 200us}}");
  post_receives(20);
  send_at_once(12);
  until(1s);
  const auto frames = frames_of(timeline());
  std::map<uint32_t, std::vector<int>> psns;  // PSNs of first transmissions, by lane
  for (size_t i = 0; i < frames.size(); ++i) {
    const Happening& frame = frames[i];
    EXPECT_GE(frame.held, 20us);
    EXPECT_LE(frame.held, 220us);
    EXPECT_THAT(frame.reason,
                HasSubstr("delayed by " + timeline::duration_text(frame.held) + " on the link"));
    EXPECT_THAT(frame.reason, Not(HasSubstr("no ACK within")));
    if (!frame.is_request || is_named(frame, "retransmission")) continue;
    size_t later = 0;
    for (size_t before = 0; before < i; ++before) {
      const Happening& other = frames[before];
      if (other.lane != frame.lane) continue;
      later += other.at - other.held > frame.at - frame.held ||
               (other.at - other.held == frame.at - frame.held && other.psn > frame.psn);
    }
    const std::string count =
        "overtaken by " + std::to_string(later) + " frame" + (later == 1 ? "" : "s");
    EXPECT_EQ(is_named(frame, count), later != 0) << frame.text << ": " << frame.reason;
  }
}

TEST_F(RulesOnFrames, AFrameThatALinkLosesIsLost) {
  rule("{name: bad, on: link, do: {loss: 100%}}");
  post_receives(1);
  send();
  EXPECT_THAT(reasons(), ElementsAre("psn +0: dropped by rule 'bad'"));
}

TEST_F(RulesOnFrames, AMadeUpFrameIsSaidToBeMadeUp) {
  rule(
      "{name: ghosts, on: frame, opcode: SEND, nth: 1, "
      "do: {inject: [{to: sender, opcode: ACK, syndrome: ACK, psn: +1000}]}}");
  post_receives(1);
  send();
  until(10ms);
  EXPECT_THAT(reasons(), ElementsAre("ACK psn +1000: forged by rule 'ghosts': no device sent it",
                                     "psn +0: rule 'ghosts' acts here"));
}

TEST_F(RulesOnFrames, ARewriteThatChangesNothingIsNotCalledOne) {
  rule("{name: quiet, on: frame, opcode: SEND, nth: 1, do: {rewrite: {solicited: 0}}}");
  post_receives(1);
  send();
  EXPECT_THAT(reasons(), ElementsAre("psn +0: rule 'quiet' acts here"));
}

TEST_F(RulesOnFrames, SeveralRulesOnOneFrameAreAllNamed) {
  rule("{name: marked, on: frame, opcode: SEND, nth: 1, do: {rewrite: {solicited: 1}}}");
  rule("{name: slow, on: frame, opcode: SEND, nth: 1, do: {delay: 50us}}");
  rule("{name: slower, on: frame, opcode: SEND, nth: 1, do: {delay: 30us}}");
  rule("{name: twice, on: frame, opcode: SEND, nth: 1, do: duplicate}");
  post_receives(1);
  send();
  until(1ms);
  const timeline::Timeline timeline = recorder_.timeline();
  const auto frames = frames_of(timeline);
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(frames[0].reason,
            "rewritten by rule 'marked'; delayed by 50 us by rule 'slow'; delayed by 30 us by rule "
            "'slower'; duplicated by rule 'twice'");
  EXPECT_EQ(frames[1].reason,
            "copy made by rule 'twice'; rewritten by rule 'marked'; delayed by 50 us by rule "
            "'slow'; delayed by 30 us by rule 'slower'");
  EXPECT_EQ(frames[0].held, 80us);
  EXPECT_EQ(frames[1].held, 80us);
}

TEST_F(RulesOnFrames, AFrameThatIsDroppedIsNeitherDelayedNorCopied) {
  rule("{name: slow, on: frame, opcode: SEND, nth: 1, do: {delay: 50us}}");
  rule("{name: lost, on: frame, opcode: SEND, nth: 1, do: drop}");
  post_receives(1);
  send();
  until(1ms);
  EXPECT_THAT(reasons(), ElementsAre("psn +0: rule 'slow' acts here; dropped by rule 'lost'"));
}

TEST_F(RulesOnFrames, ACorruptedFrameThatCannotBeParsedIsStillShown) {
  rule("{name: bent, on: frame, opcode: SEND, nth: 1, do: {corrupt: {bits: [0, 1, 2]}}}");
  post_receives(1);
  send();
  until(1ms);
  const auto frames = frames_of(timeline());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_THAT(frames[0].text, HasSubstr("unknown_opcode"));
  EXPECT_EQ(frames[0].reason, "corrupted by rule 'bent'");
}

// ---- Each kind of frame ------------------------------------------------------------------------

TEST_F(RulesOnFrames, ActOnPacketsOfAMessageOneByOne) {
  rule("{name: lost, on: frame, opcode: SEND, nth: 3, do: drop}");
  post_receives(1);
  send(1000);  // four packets
  until(10ms);
  const auto all = reasons();
  ASSERT_GE(all.size(), 1u);
  EXPECT_EQ(all[0], "SEND Middle psn +2: dropped by rule 'lost'");
  EXPECT_THAT(all, Contains(HasSubstr("SEND Middle psn +2: retransmission after NAK PSN sequence "
                                      "error")));
  EXPECT_THAT(all, Contains("SEND Last psn +3: retransmission"));
}

TEST_F(RulesOnFrames, ActOnReadResponses) {
  rule("{name: lost, on: frame, opcode: READ_RESPONSE, nth: 2, do: drop}");
  ask(WrOpcode::kRdmaRead, 1000);
  until(10ms);
  const auto all = reasons();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0], "RDMA READ Response Middle psn +1: dropped by rule 'lost'");
  // IBTA vol 1, 9.7.5.1.2: the response after the missing one is an implied NAK.
  EXPECT_THAT(all,
              Contains(AllOf(HasSubstr("RDMA READ Request psn +1"), HasSubstr("implied NAK"))));
  EXPECT_THAT(all, Contains(HasSubstr("psn +1: answers a duplicate")));
  EXPECT_THAT(all, Not(Contains(HasSubstr("no response within"))));
}

TEST_F(RulesOnFrames, ActOnReadRequestsWhoseTimeoutIsAResponsesTimeout) {
  rule("{name: lost, on: frame, opcode: READ, nth: 1, do: drop}");
  ask(WrOpcode::kRdmaRead, 100);
  until(100ms);
  EXPECT_THAT(
      reasons(),
      ElementsAre("RDMA READ Request psn +0: dropped by rule 'lost'",
                  "RDMA READ Request psn +0: retransmission: no response within 67.109 ms"));
}

TEST_F(RulesOnFrames, ActOnAcks) {
  rule("{name: slow, on: frame, opcode: ACK, nth: 1, do: {delay: 5us}}");
  post_receives(2);
  send();
  send();
  until(1ms);
  EXPECT_THAT(reasons(),
              ElementsAre("ACK psn +0: delayed by 5 us by rule 'slow'; overtaken by 1 frame"));
}

TEST_F(RulesOnFrames, ActOnAtomicsAndTheirAnswers) {
  rule("{name: lost, on: frame, opcode: ATOMIC_ACK, nth: 1, do: drop}");
  ask(WrOpcode::kAtomicFetchAndAdd, 8);
  until(100ms);
  EXPECT_THAT(reasons(),
              ElementsAre("ATOMIC Acknowledge psn +0: dropped by rule 'lost'",
                          "FetchAdd psn +0: retransmission: no response within 67.109 ms",
                          "ATOMIC Acknowledge psn +0: answers a duplicate"));
}

TEST(RulesOnDatagrams, ActOnThemOneByOne) {
  Recorder recorder;
  PairOptions options;
  options.left.connection.type = options.right.connection.type = abi::QpType::kUd;
  options.trace_frames = true;
  options.observer = &recorder;
  Pair pair(options);
  add_rules(pair.bench, "{name: twice, on: frame, opcode: SEND, nth: 2, do: duplicate}");
  const uint32_t ah = pair.left.client.create_ah(
      pair.left.pd, address_vector(wire::IpAddress::from_v4(10, 0, 0, 2)));
  for (int i = 0; i < 2; ++i) {
    pair.left.post_send({.wr_id = 1,
                         .sges = {pair.left.send_sge(8)},
                         .ah = ah,
                         .remote_qpn = pair.right.qpn,
                         .remote_qkey = options.left.connection.qkey});
  }
  pair.bench.advance_to(1ms);
  EXPECT_THAT(reasons_of(recorder.timeline()), ElementsAre("psn +1: duplicated by rule 'twice'",
                                                           "psn +1: copy made by rule 'twice'"));
}

// ---- Frames from outside -----------------------------------------------------------------------

class RulesOnFramesFromOutside : public testing::Test {
 protected:
  static ScriptOptions options(BenchObserver* observer) {
    ScriptOptions options;
    options.outside = true;
    options.trace_frames = true;
    options.observer = observer;
    return options;
  }
  void deliver(uint32_t number) {
    script_.wire_delivers(send_only(psn(number)).of_length(8));
    script_.bench().log.clear();
  }

  Recorder recorder_;
  Script script_{options(&recorder_)};
};

TEST_F(RulesOnFramesFromOutside, AreDrawnAtTheFrameThatCame) {
  add_rules(script_.bench(), "{name: lost, on: frame, opcode: SEND, nth: 2, do: drop}");
  script_.at(0ms).app_posts_recv(1).app_posts_recv(2);
  deliver(0);
  deliver(1);
  deliver(1);
  const auto frames = frames_of(recorder_.timeline());
  std::vector<bool> lost;
  for (const Happening& frame : frames) {
    if (frame.is_request) lost.push_back(frame.lost);
  }
  EXPECT_THAT(lost, ElementsAre(false, true, false));
}

TEST_F(RulesOnFramesFromOutside, ShowTheFrameAsItCame) {
  add_rules(script_.bench(),
            "{name: marked, on: frame, opcode: SEND, nth: 1, do: {rewrite: {solicited: 1}}}");
  script_.at(0ms).app_posts_recv(1);
  deliver(0);
  const auto frames = frames_of(recorder_.timeline());
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames[0].reason, "rewritten by rule 'marked'");
  EXPECT_FALSE(packet_of(frames[0]).bth.solicited);
}

// Without a rule, a duplicate frame has no reason: the network or its sender may have repeated it.
TEST_F(RulesOnFramesFromOutside, AreNotGuessedWithoutARule) {
  script_.at(0ms).app_posts_recv(1);
  deliver(0);
  deliver(0);
  for (const Happening& frame : frames_of(recorder_.timeline())) {
    if (frame.is_request) {
      EXPECT_EQ(frame.reason, "");
    }
  }
}

// ---- Rules for other occurrences than frames ---------------------------------------------------

TEST_F(RulesOnFrames, ARuleForARequestIsInTheLaneOfItsResponder) {
  rule("{name: not-ready, on: request, opcode: SEND, nth: 1, do: {rnr: 12}}");
  post_receives(1);
  send();
  until(10ms);
  const timeline::Timeline timeline = recorder_.timeline();
  const auto rule = std::ranges::find(timeline.happenings, "rule 'not-ready'", &Happening::text);
  ASSERT_NE(rule, timeline.happenings.end());
  EXPECT_EQ(timeline.lanes[rule->lane].qpn, pair_.right.qpn);
  // IBTA vol 1, table 45: timer 12 is 0.64 ms.
  EXPECT_THAT(reasons_of(timeline), Contains("psn +0: retransmission after RNR NAK, timer 640 us"));
}

TEST_F(RulesOnFrames, ARuleForACallIsInTheLaneOfItsProgram) {
  rule("{name: no-memory, on: verb, verb: reg_mr, do: {errno: ENOMEM}}");
  send();  // so that the latest event is not in the lane of the program that calls
  pair_.right.client.reg_mr(pair_.right.pd, Endpoint::kSendBuffer, 64);
  const timeline::Timeline timeline = recorder_.timeline();
  const auto rule = std::ranges::find(timeline.happenings, "rule 'no-memory'", &Happening::text);
  ASSERT_NE(rule, timeline.happenings.end());
  EXPECT_EQ(timeline.lanes[rule->lane].qpn, pair_.right.qpn);
}

}  // namespace
}  // namespace rocemu::test
