// Tests the text that a timeline has for each fact that the engine can record about a frame.
#include "emulator/timeline/reading/frame_facts.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rocemu::timeline {
namespace {

using namespace std::chrono_literals;
using engine::FrameChange;
using engine::FrameMarks;
using engine::Resent;

class Facts : public testing::Test {
 protected:
  /// Draws a frame from lane 0 to lane 1, and returns it.
  Happening& draw(const FrameMarks& marks, bool asks = false, const std::string& reason = "") {
    Happening& frame = timeline_.happenings.emplace_back();
    frame.kind = Kind::kFrame;
    frame.to = 1;
    frame.reason = reason;
    facts_.drawn(marks, timeline_.happenings.size() - 1, asks);
    return timeline_.happenings.back();
  }
  void fire(const char* rule, uint64_t frame, FrameChange change, engine::Duration delay = {}) {
    facts_.fired(
        {.at = engine::Instant(7us),
         .rule = rule,
         .subject = "a frame",
         .fault = {.number = frame, .changes = static_cast<uint32_t>(change), .delay = delay},
         .lane = [] { return 0u; }});
  }

  Timeline timeline_;
  FrameFacts facts_{timeline_};
};

TEST_F(Facts, SayNothingAboutAFrameThatWasSentOnce) {
  const Happening& frame = draw({.number = 1});
  EXPECT_EQ(frame.reason, "");
  EXPECT_EQ(frame.tone, Tone::kPlain);
  EXPECT_FALSE(frame.lost);
}

TEST_F(Facts, GiveEachReasonToSendAgainItsWords) {
  const auto reason = [&](Resent why, engine::Duration waited = {}, bool asks = false) {
    const FrameMarks marks = {.number = 1,
                              .resend = {.why = why, .begins = true, .waited = waited}};
    const Happening& frame = draw(marks, asks);
    EXPECT_EQ(frame.tone, Tone::kAgain);
    EXPECT_EQ(frame.topic, "retransmission");
    return frame.reason;
  };
  EXPECT_EQ(reason(Resent::kAckTimeout, 67'108'864ns), "retransmission: no ACK within 67.109 ms");
  EXPECT_EQ(reason(Resent::kAckTimeout, 67'108'864ns, true),
            "retransmission: no response within 67.109 ms");
  EXPECT_EQ(reason(Resent::kSequenceNak), "retransmission after NAK PSN sequence error");
  EXPECT_EQ(reason(Resent::kRnrNak, 640us), "retransmission after RNR NAK, timer 640 us");
  EXPECT_EQ(
      reason(Resent::kImpliedNak),
      "retransmission after an implied NAK: a later response arrived, but this request's did not");
  EXPECT_EQ(reason(Resent::kNoMemory), "retransmission: there was no memory for the response");
  EXPECT_EQ(reason(Resent::kNoReply, 6'442'450'944ns),
            "retransmission: no answer within 6.442451 s");
  EXPECT_EQ(reason(Resent::kDuplicate), "answers a duplicate");
}

TEST_F(Facts, GiveTheReasonOnceForAllThatIsSentAgainWithIt) {
  const Happening& frame =
      draw({.number = 1, .resend = {.why = Resent::kAckTimeout, .waited = 1ms}});
  EXPECT_EQ(frame.reason, "retransmission");
}

TEST_F(Facts, NameTheRulesEffectFirst) {
  fire("lost", 1, FrameChange::kDropped);
  const Happening& frame = draw({.number = 1, .lost = true}, false, "rejected: no QP (1)");
  EXPECT_EQ(frame.reason, "dropped by rule 'lost'; rejected: no QP (1)");
  EXPECT_TRUE(frame.lost);
  EXPECT_EQ(frame.tone, Tone::kFault);
}

TEST_F(Facts, BelongToTheFrameWithTheNumberAndNotToTheNextOne) {
  fire("slow", 2, FrameChange::kDelayed, 50us);
  EXPECT_EQ(draw({.number = 1}).reason, "");
  EXPECT_EQ(draw({.number = 3}).reason, "");
  EXPECT_EQ(draw({.number = 2, .held = 50us}).reason,
            "delayed by 50 us by rule 'slow'; overtaken by 1 frame");
}

TEST_F(Facts, CountOvertakersOfTheSameTwoQpsOnly) {
  draw({.number = 5});
  draw({.number = 6});
  Happening& other = timeline_.happenings.emplace_back();
  other.lane = 1;
  other.to = 0;
  facts_.drawn({.number = 2}, timeline_.happenings.size() - 1, false);
  EXPECT_EQ(timeline_.happenings.back().reason, "");
  EXPECT_EQ(draw({.number = 3}).reason, "overtaken by 2 frames");
}

TEST_F(Facts, NameTheRuleThatMadeUpAFrame) {
  fire("ghosts", 1, FrameChange::kInjected);
  EXPECT_EQ(draw({.number = 2, .made_up_with = 1}).reason,
            "forged by rule 'ghosts': no device sent it");
  EXPECT_EQ(draw({.number = 1}).reason, "rule 'ghosts' acts here");
}

TEST_F(Facts, OfARejectionInThePeersPlace) {
  fire("refused", 1, FrameChange::kRejected);
  EXPECT_EQ(draw({.number = 2, .made_up_with = 1}).reason,
            "forged by rule 'refused': no device sent it");
  const Happening& frame = draw({.number = 1, .lost = true});
  EXPECT_EQ(frame.reason, "rejected on behalf of the peer by rule 'refused'");
}

TEST_F(Facts, AreShownSeparatelyIfTheirFrameNeverContinued) {
  for (const auto at : {5us, 7us, 9us}) {
    draw({.number = static_cast<uint64_t>(at.count())}).at = engine::Instant(at);
  }
  fire("slow", 6, FrameChange::kDelayed, 1s);
  facts_.add_undrawn();
  ASSERT_EQ(timeline_.happenings.size(), 4u);
  const Happening& fault = timeline_.happenings[2];
  EXPECT_EQ(fault.at, engine::Instant(7us));
  EXPECT_EQ(fault.text, "rule 'slow'");
  EXPECT_EQ(fault.reason, "acted on a frame, which was not sent on before the recording ended");
}

TEST_F(Facts, ReachAFrameThatIsDrawnAlready) {
  draw({.number = 1});  // a datagram to a group, of which one receiver's copy is lost
  fire("lost", 1, FrameChange::kDropped);
  EXPECT_EQ(timeline_.happenings[0].reason, "on the way to one receiver dropped by rule 'lost'");
  EXPECT_FALSE(timeline_.happenings[0].lost);
}

}  // namespace
}  // namespace rocemu::timeline
