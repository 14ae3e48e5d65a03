// Tests the effects of rules on requests, completions, events and calls.
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/scenario/scenario.h"
#include "tests/engine/faults/rules.h"
#include "tests/support/event_channel.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "wire/identification.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::QpState;
using abi::WcStatus;
using engine::VendorError;
using wire::NakCode;

uint32_t status(WcStatus value) {
  return static_cast<uint32_t>(value);
}

// ---- The responder ------------------------------------------------------------------------------

TEST(RequestFault, RnrEndsAfterTheGivenCount) {
  Script s;
  add_rules(s.bench(), "{on: request, opcode: SEND, count: 2, do: {rnr: 12}}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired(), rnr_nak(psn(0), 12)});
  s.at(2ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired(), rnr_nak(psn(0), 12)});
  s.at(3ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({received(1), ack(psn(0)).with_msn(1)});
}

TEST(RequestFault, AFatalNakFailsBothSides) {
  Script s;
  add_rules(s.bench(), "{on: request, do: {nak: remote_operational_error}}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({fired(), nak(psn(0), NakCode::kRemoteOperationalError),
               event(EventType::kQpAccessErr, Endpoint::kQpHandle),
               received(1).status(WcStatus::kWrFlushErr)});
  s.expect_state(QpState::kErr);
}

TEST(RequestFault, SilentSendsNoAnswer) {
  Script s;
  add_rules(s.bench(), "{on: request, message: 1, count: 1, do: silent}");
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(send_only(psn(0)).of_length(8)).expect({fired()});
  s.at(2ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({received(1), ack(psn(0)).with_msn(1)});
}

// ---- Work requests and completions --------------------------------------------------------------

TEST(WorkRequestFault, FailsWithoutHavingBeenSent) {
  Script s;
  add_rules(s.bench(), "{on: work_request, wr_id: 2, do: {status: LOC_PROT_ERR, vendor_err: 77}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), fired()});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1),
               completion(2).status(WcStatus::kLocProtErr).vendor(static_cast<VendorError>(77)),
               completion(3).status(WcStatus::kWrFlushErr)});
  s.expect_state(QpState::kErr);
}

// A rule sees each work request once, even if the requests before it are sent again.
TEST(WorkRequestFault, OutlastsARetransmission) {
  Script s;
  add_rules(s.bench(), "{on: work_request, nth: 2, do: {status: FATAL_ERR}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), fired()});
  s.at(kAckTimeout).expect({send_only(psn(0))});
  s.at(kAckTimeout + 1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1), completion(2).status(WcStatus::kFatalErr)});
}

TEST(CompletionFault, CanHaveEveryStatus) {
  for (uint32_t value = 1; value <= status(WcStatus::kTmRndvIncomplete); ++value) {
    SCOPED_TRACE(to_string(static_cast<WcStatus>(value)));
    engine::faults::RuleSet set = *scenario::parse_rule(
        "{on: completion, queue: send, do: {status: GENERAL_ERR, vendor_err: 5}}");
    set.rules[0].effects.status = static_cast<WcStatus>(value);
    Script s;
    s.bench().step(engine::AddRules{std::make_shared<const engine::faults::RuleSet>(set)});
    s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
    s.at(1ms)
        .wire_delivers(ack(psn(1)))
        .expect({fired(), completion(1).status(static_cast<WcStatus>(value)),
                 completion(2).status(WcStatus::kWrFlushErr)});
    s.expect_state(QpState::kErr);
  }
}

// IBTA vol 1, 10.3.1.5: in the error state, work requests complete as flushed in error. The rule
// caused these completions by its failure, so it neither changes nor counts them.
TEST(CompletionFault, WithAStatusLeavesTheFlushThatFollowsAlone) {
  for (const char* when : {"", "every: 1, ", "nth: 1-, ", "probability: 1, ", "total: 9, "}) {
    SCOPED_TRACE(when);
    Script s;
    add_rules(s.bench(), std::string("{name: r, on: completion, ") + when +
                             "do: {status: REM_ABORT_ERR, vendor_err: 5}}");
    s.at(0ms).app_posts_recv(7).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
        {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
    s.at(1ms)
        .wire_delivers(ack(psn(1)))
        .expect({fired(), completion(1).status(WcStatus::kRemAbortErr),
                 completion(2).status(WcStatus::kWrFlushErr),
                 completion(3).status(WcStatus::kWrFlushErr),
                 received(7).status(WcStatus::kWrFlushErr)});
    EXPECT_EQ(s.bench().engine().rule_reports()[0].matched, 1u);
  }
}

TEST(CompletionFault, WithWrFlushErrActsOnFlushedRequests) {
  Script s;
  add_rules(s.bench(), "{on: completion, status: WR_FLUSH_ERR, nth: 2, do: {status: GENERAL_ERR}}");
  add_rules(s.bench(), "{name: f, on: completion, do: {status: REM_ABORT_ERR}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), completion(1).status(WcStatus::kRemAbortErr),
               completion(2).status(WcStatus::kWrFlushErr), fired(),
               completion(3).status(WcStatus::kGeneralErr)});
}

TEST(CompletionFault, ThatRaisesAnEventThatFailsTheQpDoesSoOnce) {
  Script s;
  add_rules(s.bench(), "{on: completion, do: {raise: QP_FATAL}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), event(EventType::kQpFatal, Endpoint::kQpHandle), completion(1),
               completion(2).status(WcStatus::kWrFlushErr)});
}

TEST(CompletionFault, AReceiveFailsWithItsQp) {
  Script s;
  add_rules(s.bench(), "{on: completion, queue: recv, nth: 1, do: {status: LOC_LEN_ERR}}");
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).of_length(8))
      .expect({fired(), received(1).status(WcStatus::kLocLenErr),
               received(2).status(WcStatus::kWrFlushErr), ack(psn(0)).with_msn(1)});
  s.expect_state(QpState::kErr);
}

TEST(CompletionFault, AnUnsignaledSuccessCanFail) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {status: REM_ABORT_ERR}}");
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = 0, .sges = {s.app().send_sge(8)}})
      .expect({send_only(psn(0))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({fired(), completion(1).status(WcStatus::kRemAbortErr)});
}

// A test's pool of frames is destroyed last, after the delayed frames.
TEST(FrameFault, ANicMayEndWhileFramesAreDelayed) {
  Script s;
  add_rules(s.bench(), "{on: frame, opcode: SEND, do: {delay: 1s}}");
  s.at(0ms).app_posts_send(1, 4096).app_posts_send(2, 4096);
  s.bench().log.clear();
}

TEST(CompletionFault, DelayKeepsTheOrderOfTheCq) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {delay: 4ms}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({fired()});
  s.at(5ms).expect({completion(1), completion(2)});
}

TEST(CompletionFault, HoldReleasesTheCompletionsAtTheGivenNumber) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 1, do: {hold: 3}}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({fired()});
  s.at(9ms).wire_delivers(ack(psn(2))).expect({completion(1), completion(2), completion(3)});
}

TEST(CompletionFault, OverrunFailsTheCqAndItsQps) {
  Script s;
  add_rules(s.bench(), "{on: completion, nth: 2, do: overrun}");
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms)
      .wire_delivers(ack(psn(1)))
      .expect({completion(1), fired(), cq_failed(),
               event(EventType::kCqErr, Endpoint::kSendCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle)});
  s.expect_state(QpState::kErr);
}

// As with a full CQ, the program has not received the message, so the message is not acknowledged.
TEST(CompletionFault, AnOverrunLeavesItsMessageUnacknowledged) {
  Script s;
  add_rules(s.bench(), "{on: completion, queue: recv, nth: 2, do: overrun}");
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1)))
      .expect({fired(), cq_failed(), event(EventType::kCqErr, Endpoint::kRecvCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle)});
  s.expect_state(QpState::kErr);
}

// ---- Events, calls, and other occurrences ------------------------------------------------------

TEST(EventFault, EveryEventCanBeRaisedAtOnce) {
  for (uint32_t value = 0; value <= static_cast<uint32_t>(EventType::kDeviceSpeedChange); ++value) {
    SCOPED_TRACE(to_string(static_cast<EventType>(value)));
    engine::faults::RuleSet set =
        *scenario::parse_rule("{on: now, device: dut, do: {raise: COMM_EST}}");
    set.rules[0].effects.raise = static_cast<EventType>(value);
    ScriptOptions options;
    options.srq_wr = 4;
    Script s(options);
    const size_t before = s.bench().log.size();
    s.bench().step(engine::AddRules{std::make_shared<const engine::faults::RuleSet>(set)});
    bool raised = false;
    for (size_t i = before; i < s.bench().log.size(); ++i) {
      const auto* event = std::get_if<engine::AsyncEvent>(&s.bench().log[i].output);
      raised |= event != nullptr && static_cast<uint32_t>(event->type) == value;
    }
    EXPECT_TRUE(raised);
    s.bench().log.clear();
  }
}

TEST(EventFault, AnEventCanBecomeAnotherOrNone) {
  for (const char* what : {"{on: event, event: PORT_ERR, do: {event: LID_CHANGE}}",
                           "{on: event, event: PORT_ERR, do: drop}"}) {
    Script s;
    add_rules(s.bench(), what);
    s.bench().step(engine::SetPort{engine::DeviceIndex{0}, false});
    const bool lost = std::string(what).ends_with("drop}");
    s.expect_list(lost ? std::vector<Expected>{fired()}
                       : std::vector<Expected>{fired(), event(EventType::kLidChange, 1)});
  }
}

TEST(VerbFault, TheNthCallFails) {
  Bench bench(engine::default_fabric(1));
  add_rules(bench, "{on: verb, verb: alloc_pd, nth: 2, do: {errno: ENOMEM}}");
  Client client(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  EXPECT_NE(client.alloc_pd(), 0u);
  EXPECT_EQ(client.alloc_pd(), 0u);
  EXPECT_NE(client.alloc_pd(), 0u);
  bench.log.clear();
}

// Each context is a separate flow: nth counts the calls of each context from 1; nth_total counts
// the calls of all contexts together.
TEST(VerbFault, NthOfAllContextsFails) {
  Bench bench(engine::default_fabric(1));
  add_rules(bench, "{on: verb, verb: alloc_pd, nth_total: 3, do: {errno: ENOMEM}}");
  Client one(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  Client other(bench, engine::ClientId{2}, engine::DeviceIndex{0});
  EXPECT_NE(one.alloc_pd(), 0u);
  EXPECT_NE(other.alloc_pd(), 0u);
  EXPECT_EQ(other.alloc_pd(), 0u);
  EXPECT_NE(one.alloc_pd(), 0u);
  bench.log.clear();
}

TEST(VerbFault, OfOneQpFailsNoCallAboutAnother) {
  PairOptions options;
  options.same_device = true;
  Pair pair(options);
  add_rules(pair.bench, "{on: verb, verb: query_qp, qp: 2, do: {errno: EIO}}");
  Client& first = pair.left.client;
  Client& second = pair.right.client;
  first.query_qp(pair.left.qpn);
  EXPECT_EQ(first.error, 0);
  second.query_qp(pair.right.qpn);
  EXPECT_EQ(second.error, EIO) << "the device's second QP";
  pair.bench.log.clear();
}

// The call that opens a channel cannot belong to that channel's flow, so the opening calls of all
// channels are counted together.
TEST(VerbFault, TheNthOpenedEventChannelFailsAndTheNthCallOfEachChannel) {
  using abi::ucma::Command;
  CmBench bench;
  EventChannel first(bench, 1), second(bench, 2), third(bench, 3);
  bench.step(engine::AddRules{scenario::parse_rule(
      "{name: a, on: verb, verb: rdma_create_event_channel, nth: 2, do: {errno: EMFILE}}")});
  bench.step(engine::AddRules{scenario::parse_rule(
      "{name: b, on: verb, verb: rdma_create_id, nth: 2, do: {errno: ENOMEM}}")});
  EXPECT_EQ(first.command(Command::kOpenChannel, {}).error, 0);
  EXPECT_EQ(second.command(Command::kOpenChannel, {}).error, EMFILE);
  EXPECT_EQ(third.command(Command::kOpenChannel, {}).error, 0);
  abi::ucma::CreateId in{};
  in.port_space = abi::ucma::PortSpace::kTcp;
  in.qp_type = static_cast<uint8_t>(abi::QpType::kRc);
  for (EventChannel* channel : {&first, &third}) {
    EXPECT_EQ(channel->ask(Command::kCreateId, in), 0);
    EXPECT_EQ(channel->ask(Command::kCreateId, in), ENOMEM);
    EXPECT_EQ(channel->ask(Command::kCreateId, in), 0);
  }
}

TEST(VerbFault, ClientsAskTheDaemonAboutTheirOwnCallsWhileARuleExists) {
  Bench bench(engine::default_fabric(1));
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  add_rules(bench, "{name: a, on: verb, verb: alloc_pd, do: {errno: ENOMEM}}");
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  add_rules(bench, "{name: b, on: verb, verb: [post_send, poll_cq], nth: 2, do: {errno: EIO}}");
  EXPECT_EQ(bench.engine().asked_for(),
            abi::asked_for_bit(abi::Op::kPostSend) | abi::asked_for_bit(abi::Op::kPollCq));
  add_rules(bench, "{name: c, on: verb, verb: dealloc_pd, nth: 9, do: {errno: EBUSY}}");
  EXPECT_TRUE((bench.engine().asked_for() & abi::asked_for_bit(abi::Op::kDeallocParentDomain)) !=
              0);
  bench.step(engine::RemoveRules{"c"});
  Client client(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  abi::Request::Body body{};
  EXPECT_EQ(client.command(abi::Op::kPostSend, body).error, 0);
  EXPECT_EQ(client.command(abi::Op::kPollCq, body).error, EIO) << "the rule's second call";
  bench.step(engine::RemoveRules{"b"});
  EXPECT_EQ(bench.engine().asked_for(), 0u);
  bench.log.clear();
}

TEST(Port, GoesDownAtAChosenFrame) {
  Script s;
  add_rules(s.bench(), "{on: frame, from: dut, psn: 0, nth: 1, do: {drop: true, port: down}}");
  s.at(0ms).app_posts_send(1);
  s.expect({fired(), event(EventType::kPortErr, 1), Expected("device changed", [](const auto& o) {
              return std::holds_alternative<engine::DeviceChanged>(o) ? "" : "something else";
            })});
}

}  // namespace
}  // namespace rocemu::test
