// Tests the rules about the size and the events of CQs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CqRules : public RuleTest {};

// ---- cq-too-small ----

TEST_F(CqRules, MoreOutstandingWorkThanTheCqHasPlacesIsReportedOnce) {
  program.cq(1).capacity = 3;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2, .is_signaled = false}, {.wr_id = 3}});
  program.post_receive(1, {.wr_id = 4});
  EXPECT_THAT(program.reports(), IsEmpty());  // the unsignaled send has no completion
  program.post_receive(1, {.wr_id = 5});
  program.post_receive(1, {.wr_id = 6});
  EXPECT_THAT(
      program.reports(),
      ElementsAre("cq-too-small: posted receive 2 on QP 1: 4 completions can arrive at CQ 1 "
                  "before the next poll, but it has room for only 3"));
}

TEST_F(CqRules, APolledCompletionMakesRoomInTheCq) {
  program.cq(1).capacity = 1;
  for (uint64_t i = 1; i <= 3; ++i) {
    program.post(1, {{.wr_id = i}});
    program.complete(1, i);
  }
  program.post(1, {{.wr_id = 4}});
  program.change(1, abi::QpState::kReset);
  program.post(1, {{.wr_id = 5}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- Events of CQs ----

class EventRules : public RuleTest {
 protected:
  /// Calls ibv_req_notify_cq() when the CQ has had `produced` completions since its creation.
  void arm(uint32_t produced) {
    Cq& cq = program.cq(1);
    cq.is_armed = true;
    cq.armed = {"ibv_req_notify_cq", 1, 1};
    cq.polls_at_arm = cq.polls;
    cq.produced_at_arm = produced;
    cq.could_complete_at_arm = true;
  }
  void wait(uint32_t taken) {
    program.cq(1).taken = taken;
    const Cq* const cqs[] = {&program.cq(1)};
    program.sanitizer().tell(EventWait{cqs, 1, {}});
  }
  void have_event() {
    program.sanitizer().tell(EventWaitEnd{1});
    program.cq(1).is_armed = false;
  }
};

TEST_F(EventRules, ArmPollWaitIsRight) {
  for (uint32_t i = 0; i < 3; ++i) {
    arm(i);
    program.poll(1);
    wait(i);
    have_event();
  }
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(EventRules, AWaitWithoutARequestSinceTheLatestEventNeverEnds) {
  arm(0);
  program.poll(1);
  wait(0);
  have_event();
  wait(1);
  EXPECT_THAT(program.reports(),
              ElementsAre("event-without-rearm: waits for a completion event, and CQ 1 is not "
                          "armed since its latest event"));
}

TEST_F(EventRules, AnotherThreadMayArmTheCq) {
  program.has_other_threads = true;
  wait(0);
  have_event();
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(EventRules, ACompletionFromBeforeTheRequestGivesNoEvent) {
  program.poll(1);
  arm(3);
  program.poll(1);
  wait(2);
  EXPECT_THAT(
      program.reports(),
      ElementsAre("lost-wakeup: waits for a completion event although 1 completion lies in CQ 1, "
                  "which was armed after it had arrived"));
}

TEST_F(EventRules, AThreadThatPollsTheCqMayTakeTheCompletion) {
  program.has_other_threads = true;
  program.poll(1, /*thread=*/2);
  arm(3);
  program.poll(1, /*thread=*/2);
  wait(2);
  have_event();
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(EventRules, AWaitWithoutAPollSinceTheRequestMayBeTooLate) {
  arm(0);
  wait(0);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("not-polled-after-arm: ")));
}

// In the example of ibv_get_cq_event(3), the first request comes before anything is posted, so it
// needs no poll.
TEST_F(EventRules, TheFirstRequestNeedsNoPoll) {
  arm(0);
  program.cq(1).could_complete_at_arm = false;
  wait(0);
  EXPECT_THAT(program.reports(), IsEmpty());
}

}  // namespace
}  // namespace rocemu::sanitizer
