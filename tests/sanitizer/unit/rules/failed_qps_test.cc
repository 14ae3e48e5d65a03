// Tests the rules about QPs in the ERR and SQE states: that posts to them are flushed, and that the
// flushed completions must be polled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FailedQpRules : public RuleTest {};

// ---- posted-after-error ----

TEST_F(FailedQpRules, APostAfterAPolledErrorIsFlushed) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("posted-after-error: posted send 2 on QP 1")));
}

// A program that polled several completions at once may post after it has handled the first one,
// and before it has read the error in the last one.
TEST_F(FailedQpRules, APostBeforeTheNextPollMayNotKnowOfTheError) {
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.complete(1, 1);
  program.complete_queue(program.qp(1).sends, 2, kRemoteAccessError);
  program.post(1, {{.wr_id = 3}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(FailedQpRules, AnotherThreadMayNotKnowOfTheError) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError, /*thread=*/2);
  program.poll(1, /*thread=*/2);
  program.post(1, {{.wr_id = 2}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(FailedQpRules, OnceAPostHasComeBackFlushedAnyThreadKnows) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError, /*thread=*/2);
  program.post(1, {{.wr_id = 2}}, nullptr, /*thread=*/1);
  program.complete(1, 2, kFlushed, /*thread=*/2);
  program.post(1, {{.wr_id = 3}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("posted send 3")));
}

TEST_F(FailedQpRules, AMarkerIsRightOnceTheProgramHasMovedTheQpToErr) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.change(1, abi::QpState::kErr);
  program.post(1, {{.wr_id = 2}});
  program.complete(1, 2, kFlushed);
  program.poll(1);
  program.post(1, {{.wr_id = 3}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(FailedQpRules, AQpThatWasResetIsANewOne) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.change(1, abi::QpState::kReset);
  program.change(1, abi::QpState::kRts);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(FailedQpRules, AnErrorIsOfOneQp) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(2, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// IBTA vol 1, 10.3.1.6: an error stops the send queue of an unreliable QP, and the program may
// restart it.
TEST_F(FailedQpRules, AUdQpIsNotLostByAnError) {
  program.qp(1).type = abi::QpType::kUd;
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post_receive(1, {.wr_id = 2});
  EXPECT_THAT(program.reports(), IsEmpty());
  program.change(1, abi::QpState::kRts);
  program.post(1, {{.wr_id = 3}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// IBTA vol 1, 10.3.1.6: sends posted in the SQE state are flushed.
TEST_F(FailedQpRules, ASendOfAUdQpAfterAFailedSendIsFlushed) {
  program.qp(1).type = abi::QpType::kUd;
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("posted send 2 on QP 1 after it had polled an error completion "
                                    "of that QP, which flushes all sends")));
}

TEST_F(FailedQpRules, AReceiveOfAnSrqThatFailedIsAnErrorOfItsQp) {
  program.fail_receive_of_srq(1);
  program.poll(1);
  program.post(1, {{.wr_id = 1}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("posted-after-error: posted send 1")));
}

// ---- qp-never-error-drained ----

TEST_F(FailedQpRules, AFailedQpIsDrainedBeforeItGoes) {
  program.post_receive(1, {.wr_id = 1});
  program.change(1, abi::QpState::kErr);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("qp-never-error-drained: destroyed QP 1")));
  program.complete_queue(program.qp(1).receives, 1, kFlushed);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// IBTA vol 1, 10.3.1: a send of a UD QP that fails moves the QP to SQE, in which it flushes sends
// and still executes receives. From there the program moves it to RTS.
TEST_F(FailedQpRules, AQpInSqeFlushesOnlySends) {
  program.qp(1).type = abi::QpType::kUd;
  program.post_receive(1, {.wr_id = 1});
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
  program.post(1, {{.wr_id = 2, .is_signaled = false}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(),
              ElementsAre("qp-never-error-drained: destroyed QP 1, which is in SQE, without having "
                          "polled the flushed completions of 1 send"));
}

TEST_F(FailedQpRules, AQpThatFailedWithAReceiveFlushesSendsAndReceives) {
  program.qp(1).type = abi::QpType::kUd;
  program.post(1, {{.wr_id = 1}});
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.complete_queue(program.qp(1).receives, 1, kFlushed);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("completions of 1 send and 1 receive")));
}

// ibv_post_send(3): a request without IBV_SEND_SIGNALED has no completion if it is executed.
TEST_F(FailedQpRules, AnUnsignaledSendMayHaveNothingToPoll) {
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.change(1, abi::QpState::kErr);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
  program.post(1, {{.wr_id = 2}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("flushed completions of 1 send")));
}

// ---- UD QPs that return from SQE to RTS ----

class RecoveredQp : public FailedQpRules {
 protected:
  void SetUp() override {
    program.qp(1).type = abi::QpType::kUd;
    program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
    program.complete(1, 1, kRemoteAccessError);
    program.change(1, abi::QpState::kRts);
  }
};

TEST_F(RecoveredQp, IsInRts) {
  program.complete(1, 2, kFlushed);
  program.post(1, {{.wr_id = 3}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(),
              ElementsAre("qp-destroyed-in-use: destroyed QP 1 with 1 signaled send whose "
                          "completion it has not polled"));
}

TEST_F(RecoveredQp, MayPostBeforeItHasPolledTheFlushedSends) {
  program.complete(1, 2, kFlushed);
  program.poll(1);
  program.post(1, {{.wr_id = 3}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RecoveredQp, FailsAgainWithALaterSend) {
  program.complete(1, 2, kFlushed);
  program.post(1, {{.wr_id = 3}});
  program.complete(1, 3, kRemoteAccessError);
  program.poll(1);
  program.post(1, {{.wr_id = 4}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("posted-after-error: posted send 4")));
}

TEST_F(RecoveredQp, FillsUpWithUnsignaledSends) {
  for (uint64_t i = 3; i <= 6; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), IsEmpty());  // the flushed send frees an entry
  program.complete(1, 2, kFlushed);
  for (uint64_t i = 6; i <= 7; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("send-queue-never-signaled: ")));
}

TEST_F(RecoveredQp, ReadsTheBytesOfItsSends) {
  program.bytes = 1;
  program.complete(1, 2, kFlushed);
  program.post(1, {{.wr_id = 3}});
  program.bytes = 2;
  program.sanitizer().tell(ProgramEnd{program.sanitizer().objects()});
  EXPECT_THAT(program.reports(), Contains(HasSubstr("changed the bytes of send 3 on QP 1")));
}

}  // namespace
}  // namespace rocemu::sanitizer
