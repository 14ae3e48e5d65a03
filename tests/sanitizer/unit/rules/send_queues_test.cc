// Tests the rules about posts to a send queue that is full, or that has room for only a part of the
// list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SendQueueRules : public RuleTest {};

// ---- send-queue-never-signaled, send-queue-overflow ----

TEST_F(SendQueueRules, AFullQueueWithoutASignaledRequestNeverEmpties) {
  for (uint64_t i = 1; i <= 4; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), IsEmpty());  // the queue has room for all of them
  program.post(1, {{.wr_id = 5, .is_signaled = false}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("send-queue-never-signaled: posted to the send queue of "
                                    "QP 1, which is full of 4 requests")));
}

TEST_F(SendQueueRules, OneSignaledRequestOfAllIsEnough) {
  program.post(1, {{.wr_id = 1}});
  for (uint64_t i = 2; i <= 5; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, OneFullQueueIsBackPressure) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  program.complete(1, 1);
  program.post(1, {{.wr_id = 5}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, APostToAQueueThatWasFullWithoutAPollInBetweenIsLost) {
  for (uint64_t i = 1; i <= 6; ++i) program.post(1, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("send-queue-overflow: ")));
}

TEST_F(SendQueueRules, APollInVainIsAPoll) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  program.poll(1);
  program.post(1, {{.wr_id = 5}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, AThreadMayWaitForTheThreadThatPolls) {
  program.has_other_threads = true;
  program.poll(1, /*thread=*/2);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, AThreadMayWaitForAThreadThatHasYetToPoll) {
  program.has_other_threads = true;
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}});
  program.poll(1, /*thread=*/2);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, AThreadThatHasPolledMayWaitForAThreadThatHasYetToPoll) {
  program.has_other_threads = true;
  program.poll(1, /*thread=*/1);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  program.poll(1, /*thread=*/2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ibv_post_send(3): only a polled completion frees an entry of the queue, and no thread polls.
TEST_F(SendQueueRules, APostToAFullQueueThatNoOtherThreadPollsIsLost) {
  program.has_other_threads = true;
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  program.poll(2, /*thread=*/2);  // of another queue
  program.poll(1, /*thread=*/1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("send-queue-overflow: ")));
}

TEST_F(SendQueueRules, TheQueuesOfTwoQpsAreTwo) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  for (uint64_t i = 1; i <= 5; ++i) program.post(2, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- list-posted-again ----

TEST_F(SendQueueRules, AListPostedAgainFromItsHeadIsPostedTwice) {
  const int list = 0;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  EXPECT_FALSE(program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list));
  program.complete(1, 2);
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr(
                  "although 2 requests of the list, those before *bad_wr, were already posted: "
                  "send 3 on QP 1 is in the queue twice")));
}

TEST_F(SendQueueRules, AListPostedOnFromBadWrIsRight) {
  const int list[2] = {};
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list[0]);
  program.complete(1, 2);
  program.post(1, {{.wr_id = 7}}, &list[1]);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, AnotherListInTheSameMemoryIsAnother) {
  const int list = 0;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list);
  program.complete(1, 2);
  program.post(1, {{.wr_id = 7}, {.wr_id = 8}}, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendQueueRules, TheSameListMayBePostedAnewOnceItsRequestsAreOver) {
  const int list = 0;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}, {.wr_id = 3}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}}, &list);
  program.complete(1, 4);
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}}, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// Tests the loop: while (ibv_post_send(qp, list, &bad) != 0) ibv_poll_cq(cq, 1, &wc);
TEST_F(SendQueueRules, AListPostedAgainOnceTheQueueHasRoomIsPostedTwice) {
  const int list = 0;
  const std::vector<ScriptedProgram::Wr> wrs = {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}};
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.post(1, wrs, &list);
  program.post(1, wrs, &list);  // nothing of it
  EXPECT_THAT(program.reports(), Not(Contains(HasSubstr("list-posted-again"))));
  program.complete(1, 1);
  program.post(1, wrs, &list);
  EXPECT_THAT(program.reports(), Contains(HasSubstr("send 3 on QP 1 is in the queue twice")));
}

TEST_F(SendQueueRules, AListLongerThanTheQueueIsPostedTwiceThoughItsFirstRequestsAreOver) {
  const int list = 0;
  const std::vector<ScriptedProgram::Wr> wrs = {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7},
                                                {.wr_id = 8}, {.wr_id = 9}, {.wr_id = 10}};
  program.post(1, wrs, &list);
  program.complete(1, 2);
  program.post(1, wrs, &list);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr(
                  "although 4 requests of the list, those before *bad_wr, were already posted: "
                  "send 1 on QP 1 is in the queue twice")));
}

TEST_F(SendQueueRules, EqualRequestsMayBeRepeatedOnPurpose) {
  const int list = 0;
  const std::vector<ScriptedProgram::Wr> wrs(5, {.wr_id = 0});
  program.post(1, wrs, &list);
  program.complete(1, 2);
  program.post(1, wrs, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

}  // namespace
}  // namespace rocemu::sanitizer
