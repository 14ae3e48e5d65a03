// Tests the rules about the destruction of objects that are still in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DestructionRules : public RuleTest {};

// ---- destroy-failed ----

// The objects of a removed device do not exist any more, whatever the calls that destroy them
// return.
TEST_F(DestructionRules, ADestructionFailsForAUserOfTheObjectAndNotForADeviceThatIsGone) {
  Sanitizer& sanitizer = program.sanitizer();
  sanitizer.tell(FailedDestruction{sanitizer.objects(), program.cq(1), {}, EIO});
  EXPECT_THAT(program.reports(), IsEmpty());
  sanitizer.tell(FailedDestruction{sanitizer.objects(), program.cq(1), {}, EBUSY});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("ibv_destroy_cq failed with EBUSY")));
}

// ---- qp-destroyed-in-use ----

TEST_F(DestructionRules, ASignaledSendIsLostWithItsQp) {
  program.post(1, {{.wr_id = 1, .is_signaled = false}, {.wr_id = 2}, {.wr_id = 3}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(),
              ElementsAre("qp-destroyed-in-use: destroyed QP 1 with 2 signaled sends whose "
                          "completion it has not polled"));
}

TEST_F(DestructionRules, ReceivesAndUnsignaledSendsMayBeLeft) {
  program.post_receive(1, {.wr_id = 1});
  program.post(1, {{.wr_id = 2, .is_signaled = false}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(DestructionRules, AProgramMayGiveUpWorkByMovingTheQpToErr) {
  program.post(1, {{.wr_id = 1}});
  program.change(1, abi::QpState::kErr);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), Not(Contains(HasSubstr("qp-destroyed-in-use"))));
}

// ---- events-unacknowledged ----

TEST_F(DestructionRules, TheOnlyThreadWaitsForAcknowledgementsInVain) {
  program.sanitizer().tell(AcknowledgementWait{program.cq(1), 2, 1, {}});
  EXPECT_THAT(program.reports(),
              ElementsAre("events-unacknowledged: waits in ibv_destroy_cq forever: 2 completion "
                          "events and 1 async event of CQ 1 were not acknowledged"));
}

// ibv_ack_cq_events(3): the wait ends if the number of acknowledged events is that of the received
// events (ibv_cmd_destroy_cq() in libibverbs), and the number of acknowledged events never
// decreases.
TEST_F(DestructionRules, NoThreadCanTakeBackTooManyAcknowledgements) {
  program.has_other_threads = true;
  program.sanitizer().tell(AcknowledgementWait{program.cq(1), -1, 0, {}});
  program.sanitizer().tell(AcknowledgementWait{program.qp(1), 0, -2, {}});
  EXPECT_THAT(program.reports(),
              ElementsAre("events-unacknowledged: waits in ibv_destroy_cq forever: the program "
                          "acknowledged 1 more completion event of CQ 1 than it received",
                          "events-unacknowledged: waits in ibv_destroy_qp forever: the program "
                          "acknowledged 2 more async events of QP 1 than it received"));
}

TEST_F(DestructionRules, AnotherThreadMayAcknowledge) {
  program.has_other_threads = true;
  program.sanitizer().tell(AcknowledgementWait{program.cq(1), 1, 0, {}});
  program.sanitizer().tell(AcknowledgementsComplete{program.cq(1)});
  EXPECT_THAT(program.reports(), IsEmpty());
}

}  // namespace
}  // namespace rocemu::sanitizer
