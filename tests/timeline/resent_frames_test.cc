// Tests how a timeline of a recording explains frames that are sent again. The times are those of
// IBTA vol 1: the ACK timeout of 9.7.6.1.3, 4.096 us * 2^timeout, and the RNR timers of table 45.
#include <gmock/gmock.h>

#include "tests/engine/faults/rules.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "tests/timeline/recorder.h"

namespace rocemu::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using timeline::Happening;

class ResentFrames : public testing::Test {
 protected:
  static ScriptOptions options(BenchObserver* observer) {
    ScriptOptions options;
    options.trace_frames = true;
    options.observer = observer;
    return options;
  }
  void deliver(const PacketSpec& spec) {
    script_.wire_delivers(spec);
    script_.bench().log.clear();
  }
  void send() {
    script_.app_posts_send(1);
    script_.bench().log.clear();
  }
  void at(engine::Duration time) {
    script_.bench().advance_to(time);
    script_.bench().log.clear();
  }
  std::vector<std::string> reasons() { return reasons_of(recorder_.timeline()); }

  Recorder recorder_;
  Script script_{options(&recorder_)};  // timeout 14
};

TEST_F(ResentFrames, NameTheAckTimeoutThatExpired) {
  send();
  at(70ms);
  at(140ms);
  EXPECT_THAT(reasons(), ElementsAre("psn +0: retransmission: no ACK within 67.109 ms",
                                     "psn +0: retransmission: no ACK within 67.109 ms"));
}

// The timer restarts when an ACK arrives, so the reason names the time of the timer, not the time
// since the packet was sent.
TEST_F(ResentFrames, NameTheTimerAndNotTheTimeSinceTheFrameWasSent) {
  send();
  send();
  at(50ms);
  deliver(ack(psn(0)));
  at(117ms);
  at(118ms);
  const timeline::Timeline timeline = recorder_.timeline();
  EXPECT_THAT(reasons_of(timeline), ElementsAre("psn +1: retransmission: no ACK within 67.109 ms"));
  EXPECT_EQ(frames_of(timeline).back().at, engine::Instant(50ms + 67'108'864ns));
}

TEST_F(ResentFrames, WaitLongerForAPeerOutsideTheFabric) {
  Recorder recorder;
  ScriptOptions options = ResentFrames::options(&recorder);
  options.outside = true;
  Script script(options);
  script.app_posts_send(1);
  script.bench().advance_to(1s);
  script.bench().log.clear();
  // docs/design/engine.md: consecutive timeouts are T, 2 T and then 4 T, which 9.7.6.1.3 allows.
  EXPECT_THAT(reasons_of(recorder.timeline()),
              ElementsAre("psn +0: retransmission: no ACK within 67.109 ms",
                          "psn +0: retransmission: no ACK within 134.218 ms",
                          "psn +0: retransmission: no ACK within 268.435 ms",
                          "psn +0: retransmission: no ACK within 268.435 ms"));
}

TEST_F(ResentFrames, FollowTheOneThatTheNakNames) {
  send();
  send();
  send();
  deliver(sequence_nak(psn(1)));
  EXPECT_THAT(
      reasons(),
      ElementsAre("NAK PSN sequence error psn +1: the responder expects psn +1 (1): the "
                  "requester must go back",
                  "psn +1: retransmission after NAK PSN sequence error", "psn +2: retransmission"));
}

TEST_F(ResentFrames, WaitForTheTimerOfAnRnrNak) {
  for (const auto& [code, time, text] : {std::tuple(1, engine::Duration(10us), "10 us"),
                                         std::tuple(12, engine::Duration(640us), "640 us"),
                                         std::tuple(0, engine::Duration(655'360us), "655.36 ms")}) {
    Recorder recorder;
    Script script(options(&recorder));
    script.app_posts_send(1);
    script.wire_delivers(rnr_nak(psn(0), static_cast<uint8_t>(code)));
    script.bench().advance_to(time);
    script.bench().log.clear();
    const timeline::Timeline timeline = recorder.timeline();
    EXPECT_THAT(reasons_of(timeline),
                Contains(std::string("psn +0: retransmission after RNR NAK, timer ") + text));
    EXPECT_EQ(frames_of(timeline).back().at, engine::Instant(time));
  }
}

TEST_F(ResentFrames, BeginAnewWithEachReason) {
  send();
  deliver(sequence_nak(psn(0)));
  at(68ms);
  EXPECT_THAT(reasons(),
              ElementsAre("NAK PSN sequence error psn +0: the responder expects psn +0 (0): the "
                          "requester must go back",
                          "psn +0: retransmission after NAK PSN sequence error",
                          "psn +0: retransmission: no ACK within 67.109 ms"));
}

TEST_F(ResentFrames, AreNoneWhenAnAckIsLateButInTime) {
  send();
  at(67ms);
  deliver(ack(psn(0)));
  at(1s);
  EXPECT_THAT(reasons(), IsEmpty());
}

TEST_F(ResentFrames, AreNoneAmongPacketsThatAreNew) {
  send();
  at(68ms);  // goes back
  send();    // this frame is sent for the first time
  EXPECT_THAT(reasons(), ElementsAre("psn +0: retransmission: no ACK within 67.109 ms"));
}

}  // namespace
}  // namespace rocemu::test
