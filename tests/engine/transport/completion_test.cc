// Tests completions, completion events and overruns in the engine's outputs (ibv_poll_cq(3),
// ibv_get_cq_event(3), ibv_get_async_event(3)).
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::QpState;
using abi::WcStatus;
using engine::Counter;

ScriptOptions with_channel() {
  ScriptOptions options;
  options.channel = 4711;
  return options;
}

const Expected kSendEvent = completion_event(Endpoint::kSendCqHandle);
const Expected kRecvEvent = completion_event(Endpoint::kRecvCqHandle);

// ---- Events -----------------------------------------------------------------------------------

TEST(CompletionEvents, FollowTheCompletionThatCausesThem) {
  Script s(with_channel());
  s.at(0ms);
  s.client().arm(s.app().recv_cq, 0);
  s.app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), kRecvEvent, ack(psn(0))});
  s.wire_delivers(send_only(psn(1))).expect({received(2), ack(psn(1))});
}

TEST(CompletionEvents, NameTheChannelOfTheCq) {
  Script s(with_channel());
  s.at(0ms);
  s.client().arm(s.app().send_cq, 0);
  s.app_posts_send(1).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0)));
  const auto& got = std::get<engine::CompletionEvent>(s.bench().log.at(1).output);
  EXPECT_EQ(got.channel.value, 4711u);
  EXPECT_EQ(got.cq.value, s.app().send_cq);
  s.expect({completion(1), kSendEvent});
}

// ibv_req_notify_cq(3): the solicited completions are those of receives whose message has the SE
// bit, and all failures. The completion of a successful send is not solicited.
TEST(CompletionEvents, ComeForTheSolicitedBitOfAReceivedMessage) {
  Script s(with_channel());
  s.at(0ms);
  s.client().arm(s.app().recv_cq, 0, true);
  s.app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1)).solicited()).expect({received(2), kRecvEvent, ack(psn(1))});
}

TEST(CompletionEvents, DoNotComeForASuccessfulSendWhenOnlySolicitedOnesWereAskedFor) {
  Script s(with_channel());
  s.at(0ms);
  s.client().arm(s.app().send_cq, 0, true);
  s.app_posts({.wr_id = 1, .flags = abi::kSendSignaled | abi::kSendSolicited})
      .expect({send_only(psn(0)).solicited()});
  s.wire_delivers(ack(psn(0))).expect({completion(1)});
  s.app_sets_state(QpState::kErr).app_posts_send(2).expect({flushed(2), kSendEvent});
}

TEST(CompletionEvents, ComeOnceForAFlushOfMany) {
  Script s(with_channel());
  s.at(0ms);
  s.client().arm(s.app().recv_cq, 0, true);
  s.app_posts_recv(1).app_posts_recv(2);
  s.app_sets_state(QpState::kErr).expect({flushed(1), kRecvEvent, flushed(2)});
}

TEST(CompletionEvents, ComeAtOnceWhenTheArmWasTooLate) {
  Script s(with_channel());
  s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.client().arm(s.app().recv_cq, 0);
  s.expect({kRecvEvent});
  s.client().arm(s.app().recv_cq, 1);
  s.expect_silence();
}

TEST(CompletionEvents, DoNotComeForACqWithoutAChannel) {
  Script s;
  s.at(0ms);
  s.client().arm(s.app().recv_cq, 0);
  s.app_posts_recv(1).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.client().arm(s.app().recv_cq, 0);
  s.expect_silence();
}

TEST(CompletionEvents, AnArmFromTheFutureIsAViolation) {
  Script s;
  s.at(0ms);
  s.client().arm(s.app().recv_cq, 1);
  s.expect({violation()});
}

TEST(Completions, CarryTheDevicesTime) {
  Script s;
  s.at(1234us).app_posts_recv(1).wire_delivers(send_only(psn(0)));
  EXPECT_EQ(std::get<engine::Completion>(s.bench().log.at(0).output).cqe.timestamp_ns, 1'234'000u);
  s.expect({received(1), ack(psn(0))});
}

// ---- Overrun ----------------------------------------------------------------------------------

// ibv_poll_cq(3): "CQ overrun ... IBV_EVENT_CQ_ERR will be triggered, and the CQ cannot be used".
// IBTA vol 1, 10.2.6: the QPs that use the CQ go to the error state (IBV_EVENT_QP_FATAL).
TEST(CqOverrun, FailsTheCqAndItsQpOnce) {
  ScriptOptions options = with_channel();
  options.cq_capacity = 2;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3).app_posts_recv(4);
  s.app_posts_send(5).expect({send_only(psn(0))});
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1))).expect({received(2), ack(psn(1))});
  s.wire_delivers(send_only(psn(2)))
      .expect({cq_failed(), event(EventType::kCqErr, Endpoint::kRecvCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle), flushed(5)})
      .expect_state(QpState::kErr)
      .expect_counter(Counter::kCqOverruns, 1);
  // The CQ cannot be used any more: further messages cause no completion, and requests for
  // notification cause no event.
  s.app_posts_recv(6).expect_silence();
  s.client().arm(s.app().recv_cq, 0);
  s.bench().log.clear();
  s.app_posts_recv(7).expect_silence();
  EXPECT_EQ(s.client().destroy_cq(s.app().recv_cq), EBUSY);
  EXPECT_EQ(s.client().destroy_qp(s.qpn()), 0);
  EXPECT_EQ(s.client().destroy_cq(s.app().recv_cq), 0);
}

// IBTA vol 1, 9.9.3, class G: the responder does not answer a message whose completion finds the CQ
// full, whether it is a SEND or a WRITE. Its sender gives up after its retries, as with Linux rxe.
TEST(CqOverrun, LeavesItsMessageUnacknowledgedWhateverItWas) {
  for (const bool shared : {false, true}) {
    for (const bool write : {false, true}) {
      ScriptOptions options;
      options.cq_capacity = 1;
      options.srq_wr = shared ? 4 : 0;
      options.connection.access = abi::kAccessRemoteWrite;
      Script s(options);
      s.at(0ms).app_posts_recv(1).app_posts_recv(2);
      s.wire_delivers(send_only(psn(0))).expect({CompletionSpec(1), ack(psn(0)).with_msn(1)});
      const PacketSpec request =
          write ? packet(wire::Opcode::kRcWriteOnlyImm, psn(1)).of_length(0) : send_only(psn(1));
      s.wire_delivers(request);
      std::vector<Expected> expected = {cq_failed(),
                                        event(EventType::kCqErr, Endpoint::kRecvCqHandle),
                                        event(EventType::kQpFatal, Endpoint::kQpHandle)};
      if (shared) {
        expected.push_back(event(EventType::kQpLastWqeReached, Endpoint::kQpHandle));
      }
      s.expect_list(expected).expect_state(QpState::kErr);
      s.at(1ms).wire_delivers(request).expect_silence();
    }
  }
}

TEST(CqOverrun, DoesNotHappenAtCapacity) {
  ScriptOptions options;
  options.cq_capacity = 1;
  Script s(options);
  for (uint32_t i = 0; i < 20; ++i) {
    s.at(i * 1ms).app_posts_recv(i);
    s.wire_delivers(send_only(psn(i))).expect({received(i), ack(psn(i))});
    s.client().consume(s.app().recv_cq, i + 1);
  }
}

// The client writes the consumer index, so the engine does not trust it. It checks the index when
// the CQ is full.
TEST(CqOverrun, AClientThatTookMoreThanThereWasIsAViolation) {
  for (const uint32_t taken : {2u, 1000u, 0xffffffffu}) {
    ScriptOptions options;
    options.cq_capacity = 1;
    Script s(options);
    s.at(0ms).app_posts_recv(1).app_posts_recv(2);
    s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
    s.client().consume(s.app().recv_cq, taken);
    s.wire_delivers(send_only(psn(1))).expect({violation(), ack(psn(1))});
  }
}

TEST(CqOverrun, ByFlushesRaisesNoQpFatalForAQpThatFailedAlready) {
  ScriptOptions options;
  options.cq_capacity = 2;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.app_sets_state(QpState::kErr)
      .expect(
          {flushed(1), flushed(2), cq_failed(), event(EventType::kCqErr, Endpoint::kRecvCqHandle)});
}

TEST(CqOverrun, FailsEveryQpOfTheCqAndNoOther) {
  Bench bench(engine::default_fabric(1));
  Client client(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  const uint32_t pd = client.alloc_pd();
  const uint32_t small = client.create_cq(1, 31);
  const uint32_t large = client.create_cq(100, 32);
  const abi::QpCap cap = {.max_send_wr = 4,
                          .max_recv_wr = 4,
                          .max_send_sge = 1,
                          .max_recv_sge = 1,
                          .max_inline_data = 0};
  const uint32_t sends_there = client.create_qp(pd, small, large, cap, false, 41);
  const uint32_t receives_there = client.create_qp(pd, large, small, cap, false, 42);
  const uint32_t elsewhere = client.create_qp(pd, large, large, cap, false, 43);
  const uint32_t in_reset = client.create_qp(pd, small, small, cap, false, 44);
  const uint32_t broken = client.create_qp(pd, small, large, cap, false, 45);
  for (const uint32_t qpn : {sends_there, receives_there, elsewhere, broken}) {
    ASSERT_TRUE(bring_up(client, qpn, QpState::kRts, {},
                         address_vector(wire::IpAddress::from_v4(10, 0, 0, 2)), 99));
  }
  EXPECT_EQ(client.set_state(broken, QpState::kErr), 0);
  client.post_send(broken, {.wr_id = 1});
  EXPECT_EQ(bench.log.size(), 1u);
  bench.log.clear();
  client.post_send(broken, {.wr_id = 2});

  std::vector<std::string> got;
  for (const Timed& entry : bench.log) got.push_back(to_string(entry.output));
  EXPECT_EQ(got,
            (std::vector<std::string>{
                "CQ failed (client 1, CQ 1)", "async event (client 1) CQ_ERR of 31",
                "async event (client 1) QP_FATAL of 41", "async event (client 1) QP_FATAL of 42"}));
  EXPECT_EQ(client.state(sends_there), QpState::kErr);
  EXPECT_EQ(client.state(receives_there), QpState::kErr);
  EXPECT_EQ(client.state(elsewhere), QpState::kRts);
  EXPECT_EQ(client.state(in_reset), QpState::kReset);
}

// The overrun of the first CQ makes the QP fail. The flushed requests of the QP then overrun its
// other CQ.
TEST(CqOverrun, CanCauseAnother) {
  ScriptOptions options;
  options.cq_capacity = 1;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_send(3).app_posts_send(4).expect(
      {send_only(psn(0)), send_only(psn(1))});
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(1)))
      .expect({cq_failed(), event(EventType::kCqErr, Endpoint::kRecvCqHandle),
               event(EventType::kQpFatal, Endpoint::kQpHandle), flushed(3), cq_failed(),
               event(EventType::kCqErr, Endpoint::kSendCqHandle)});
}

}  // namespace
}  // namespace rocemu::test
