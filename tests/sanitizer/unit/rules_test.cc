// Tests the checks of the rules with the calls of a program, one in a line, and also that they
// report nothing for correct calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/sanitizer/unit/program.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint32_t kRemoteAccessError = 10, kFlushed = 5;  // ibv_wc_status

class RulesTest : public ::testing::Test {
 protected:
  ScriptedProgram program;
};

// ---- mr-deregistered-in-use ----

// ibv_post_recv(3): "The buffers used by a WR can only be safely reused after WR the request is
// fully executed and a work completion has been retrieved".
TEST_F(RulesTest, ARegionIsInUseUntilTheCompletionIsPolled) {
  program.post(1, {{.wr_id = 1, .lkey = 0x1203}});
  program.deregister(0x1203);
  EXPECT_THAT(program.reports(),
              ElementsAre("mr-deregistered-in-use: deregistered memory region 3 (lkey 0x1203) "
                          "while send 1 on QP 1 still names it"));
  program.complete(1, 1);
  program.deregister(0x1203);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, ACompletionFreesTheRegionsOfUnsignaledRequestsBeforeIt) {
  program.post(1, {{.wr_id = 1, .is_signaled = false, .lkey = 5}, {.wr_id = 2, .lkey = 6}});
  program.complete(1, 2);
  program.deregister(5);
  program.deregister(6);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, ResetFreesRegions) {
  program.post_receive(1, {.wr_id = 1, .lkey = 5});
  program.change(1, abi::QpState::kReset);
  program.deregister(5);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, ARegionOfOtherRequestsIsFree) {
  program.post(1, {{.wr_id = 1, .lkey = 5}});
  program.deregister(6);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, SeveralUsersAreOneReport) {
  program.post_receive(2, {.wr_id = 1, .lkey = 5});
  program.post_receive(2, {.wr_id = 2, .lkey = 5});
  program.deregister(5);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("while receive 1 on QP 2 and 1 other request still name it")));
}

// ---- receive-buffer-overlap ----

TEST_F(RulesTest, AMessageOverAnotherThatLiesInTheCqIsAnError) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .address = 0x1004});
  program.receive(1, 1, /*index=*/0, /*produced=*/2);
  EXPECT_THAT(program.reports(), IsEmpty());
  program.receive(1, 2, /*index=*/1, /*produced=*/2);
  EXPECT_THAT(
      program.reports(),
      ElementsAre("receive-buffer-overlap: received receive 2 on QP 1 over the bytes of receive "
                  "1 on QP 1, whose completion it had not polled"));
}

TEST_F(RulesTest, AMessageThatCameAfterThePollOfTheOtherIsRight) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .address = 0x1004});
  program.receive(1, 1, /*index=*/0xffffffff, /*produced=*/0);
  program.receive(1, 2, /*index=*/0, /*produced=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OnlyBytesThatWereReceivedCount) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .address = 0x1004});
  program.receive(1, 1, 0, 2, /*length=*/4);
  program.receive(1, 2, 1, 2, /*length=*/8);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OneBufferOfAllReceivesIsForUnwantedMessages) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OneBufferTwiceAmongOthersIsAMistake) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.post_receive(1, {.wr_id = 3, .address = 0x2000});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("receive-buffer-overlap: ")));
}

TEST_F(RulesTest, PiecesOfAMessageBetweenThoseOfAnotherAreRight) {
  program.post_receive(1, {.wr_id = 1, .address = 0x1000, .second = 0x2000});
  program.post_receive(1, {.wr_id = 2, .address = 0x1008, .second = 0x2008});
  program.post_receive(1, {.wr_id = 3, .address = 0x1010, .second = 0x200c});
  program.receive(1, 1, 0, 3, /*length=*/16);
  program.receive(1, 2, 1, 3, /*length=*/16);
  EXPECT_THAT(program.reports(), IsEmpty());
  program.receive(1, 3, 2, 3, /*length=*/16);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("received receive 3 on QP 1 over the bytes of receive 2 on")));
}

/// Uses that number of buffers in turn, for messages that all lie in the CQ.
void receive_into_ring(ScriptedProgram& program, uint32_t buffers, uint32_t messages) {
  for (uint32_t i = 0; i < messages; ++i) {
    program.post_receive(1, {.wr_id = i, .address = 0x1000 + 8 * (i % buffers)});
    program.receive(1, i + 1, /*index=*/i, /*produced=*/messages);
  }
}

TEST_F(RulesTest, AMessageIsComparedWithTheSixtyThreeBeforeIt) {
  receive_into_ring(program, /*buffers=*/63, /*messages=*/64);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("received receive 64 on QP 1 over the bytes of receive 1 on")));
}

TEST_F(RulesTest, AMessageIsNotComparedWithTheSixtyFourthBeforeIt) {
  receive_into_ring(program, /*buffers=*/64, /*messages=*/200);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ibv_post_recv(3): "The message begins at byte 40" of a datagram's receive.
TEST_F(RulesTest, TheBytesBeforeADatagramMayBeOverwritten) {
  program.qp(1).type = abi::QpType::kUd;
  program.post_receive(1, {.wr_id = 1, .length = 40, .second = 0x2000});
  program.post_receive(1, {.wr_id = 2, .length = 40, .second = 0x2008});
  program.receive(1, 1, 0, 2, /*length=*/48);
  program.receive(1, 2, 1, 2, /*length=*/48);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// The second buffer begins where the payload of the first begins, at byte 40.
TEST_F(RulesTest, TheBytesBeforeADatagramMayNotOverwriteAnother) {
  program.qp(1).type = abi::QpType::kUd;
  program.post_receive(1, {.wr_id = 1, .address = 0x1000, .length = 48});
  program.post_receive(1, {.wr_id = 2, .address = 0x1028, .length = 48});
  program.receive(1, 1, 0, 2, /*length=*/48);
  program.receive(1, 2, 1, 2, /*length=*/48);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 2 on QP 1 over")));
}

TEST_F(RulesTest, TwoQueuesMayThrowMessagesIntoTheSameMemory) {
  for (uint32_t qp : {1u, 2u})
    for (uint64_t i = 1; i <= 2; ++i)
      program.post_receive(qp, {.wr_id = i, .length = qp == 1 ? 8u : 16u});
  program.receive(1, 1, 0, 4);
  program.receive(2, 1, 1, 4, /*length=*/16);
  program.receive(1, 2, 2, 4);
  program.receive(2, 2, 3, 4, /*length=*/16);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, TheOnlyBuffersOfTwoQueuesMayNotOverlap) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(2, {.wr_id = 1, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(2, 1, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 1 on QP 2 over")));
}

TEST_F(RulesTest, RegionsOfTheSameMemoryOverlap) {
  program.add_region(7, /*address=*/0x1000, /*memory=*/0x1000);
  program.add_region(8, /*address=*/0x1000, /*memory=*/0x1000);
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 2 on QP 1 over")));
}

// ibv_reg_mr_iova(3): the addresses of a region need not be those of the process.
TEST_F(RulesTest, RegionsOfOtherMemoryDoNotOverlap) {
  program.add_region(7, /*address=*/0x1000, /*memory=*/0x1000);
  program.add_region(8, /*address=*/0x1000, /*memory=*/0x9000);
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, RegionsOfTheSameAddressesAreOthers) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- send-queue-never-signaled, send-queue-overflow ----

TEST_F(RulesTest, AFullQueueWithoutASignaledRequestNeverEmpties) {
  for (uint64_t i = 1; i <= 4; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), IsEmpty());  // the queue has room for all of them
  program.post(1, {{.wr_id = 5, .is_signaled = false}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("send-queue-never-signaled: posted to the send queue of "
                                    "QP 1, which is full of 4 requests")));
}

TEST_F(RulesTest, OneSignaledRequestOfAllIsEnough) {
  program.post(1, {{.wr_id = 1}});
  for (uint64_t i = 2; i <= 5; ++i) program.post(1, {{.wr_id = i, .is_signaled = false}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OneFullQueueIsBackPressure) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  program.complete(1, 1);
  program.post(1, {{.wr_id = 5}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, APostToAQueueThatWasFullWithoutAPollInBetweenIsLost) {
  for (uint64_t i = 1; i <= 6; ++i) program.post(1, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("send-queue-overflow: ")));
}

TEST_F(RulesTest, APollInVainIsAPoll) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  program.poll(1);
  program.post(1, {{.wr_id = 5}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AThreadMayWaitForTheThreadThatPolls) {
  program.has_other_threads = true;
  program.poll(1, /*thread=*/2);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AThreadMayWaitForAThreadThatHasYetToPoll) {
  program.has_other_threads = true;
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}});
  program.poll(1, /*thread=*/2);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AThreadThatHasPolledMayWaitForAThreadThatHasYetToPoll) {
  program.has_other_threads = true;
  program.poll(1, /*thread=*/1);
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  program.poll(1, /*thread=*/2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ibv_post_send(3): only a polled completion frees an entry of the queue, and no thread polls.
TEST_F(RulesTest, APostToAFullQueueThatNoOtherThreadPollsIsLost) {
  program.has_other_threads = true;
  for (uint64_t i = 1; i <= 8; ++i) program.post(1, {{.wr_id = i}}, nullptr, /*thread=*/1);
  program.poll(2, /*thread=*/2);  // of another queue
  program.poll(1, /*thread=*/1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("send-queue-overflow: ")));
}

TEST_F(RulesTest, TheQueuesOfTwoQpsAreTwo) {
  for (uint64_t i = 1; i <= 5; ++i) program.post(1, {{.wr_id = i}});
  for (uint64_t i = 1; i <= 5; ++i) program.post(2, {{.wr_id = i}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- list-posted-again ----

TEST_F(RulesTest, AListPostedAgainFromItsHeadIsPostedTwice) {
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

TEST_F(RulesTest, AListPostedOnFromBadWrIsRight) {
  const int list[2] = {};
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list[0]);
  program.complete(1, 2);
  program.post(1, {{.wr_id = 7}}, &list[1]);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AnotherListInTheSameMemoryIsAnother) {
  const int list = 0;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}, {.wr_id = 7}}, &list);
  program.complete(1, 2);
  program.post(1, {{.wr_id = 7}, {.wr_id = 8}}, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, TheSameListMayBePostedAnewOnceItsRequestsAreOver) {
  const int list = 0;
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}, {.wr_id = 3}});
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}}, &list);
  program.complete(1, 4);
  program.post(1, {{.wr_id = 5}, {.wr_id = 6}}, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// Tests the loop: while (ibv_post_send(qp, list, &bad) != 0) ibv_poll_cq(cq, 1, &wc);
TEST_F(RulesTest, AListPostedAgainOnceTheQueueHasRoomIsPostedTwice) {
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

TEST_F(RulesTest, AListLongerThanTheQueueIsPostedTwiceThoughItsFirstRequestsAreOver) {
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

TEST_F(RulesTest, EqualRequestsMayBeRepeatedOnPurpose) {
  const int list = 0;
  const std::vector<ScriptedProgram::Wr> wrs(5, {.wr_id = 0});
  program.post(1, wrs, &list);
  program.complete(1, 2);
  program.post(1, wrs, &list);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- fork-unprotected ----

// madvise(2): with MADV_DONTFORK, "Do not make the pages in this range available to the child after
// a fork(2). This is useful to prevent copy-on-write semantics from changing the physical location
// of a page when the parent writes to it after a fork(2)."
TEST_F(RulesTest, MemoryThatAChildDoesNotGetIsProtected) {
  program.add_region(7, 0x1000, /*memory=*/0x11000);
  program.add_region(8, 0x1000, /*memory=*/0);  // of the device
  const auto fork = [&](MemoryRange kept) {
    program.sanitizer().tell(Fork{program.sanitizer().objects(), false, {}, std::span(&kept, 1)});
  };
  fork({0x10000, 0x2000});
  EXPECT_THAT(program.reports(), IsEmpty());
  fork({0x10000, 0x1fff});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("forked with 1 registered memory region, and has not called")));
}

// ---- posted-after-error ----

TEST_F(RulesTest, APostAfterAPolledErrorIsFlushed) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("posted-after-error: posted send 2 on QP 1")));
}

// A program that polled several completions at once may post after it has handled the first one,
// and before it has read the error in the last one.
TEST_F(RulesTest, APostBeforeTheNextPollMayNotKnowOfTheError) {
  program.post(1, {{.wr_id = 1}, {.wr_id = 2}});
  program.complete(1, 1);
  program.complete_queue(program.qp(1).sends, 2, kRemoteAccessError);
  program.post(1, {{.wr_id = 3}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AnotherThreadMayNotKnowOfTheError) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError, /*thread=*/2);
  program.poll(1, /*thread=*/2);
  program.post(1, {{.wr_id = 2}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OnceAPostHasComeBackFlushedAnyThreadKnows) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError, /*thread=*/2);
  program.post(1, {{.wr_id = 2}}, nullptr, /*thread=*/1);
  program.complete(1, 2, kFlushed, /*thread=*/2);
  program.post(1, {{.wr_id = 3}}, nullptr, /*thread=*/1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("posted send 3")));
}

TEST_F(RulesTest, AMarkerIsRightOnceTheProgramHasMovedTheQpToErr) {
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

TEST_F(RulesTest, AQpThatWasResetIsANewOne) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.change(1, abi::QpState::kReset);
  program.change(1, abi::QpState::kRts);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AnErrorIsOfOneQp) {
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(2, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// IBTA vol 1, 10.3.1.6: an error stops the send queue of an unreliable QP, and the program may
// restart it.
TEST_F(RulesTest, AUdQpIsNotLostByAnError) {
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
TEST_F(RulesTest, ASendOfAUdQpAfterAFailedSendIsFlushed) {
  program.qp(1).type = abi::QpType::kUd;
  program.post(1, {{.wr_id = 1}});
  program.complete(1, 1, kRemoteAccessError);
  program.poll(1);
  program.post(1, {{.wr_id = 2}});
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("posted send 2 on QP 1 after it had polled an error completion "
                                    "of that QP, which flushes all sends")));
}

TEST_F(RulesTest, AReceiveOfAnSrqThatFailedIsAnErrorOfItsQp) {
  program.fail_receive_of_srq(1);
  program.poll(1);
  program.post(1, {{.wr_id = 1}});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("posted-after-error: posted send 1")));
}

// ---- destroy-failed ----

// The objects of a removed device do not exist any more, whatever the calls that destroy them
// return.
TEST_F(RulesTest, ADestructionFailsForAUserOfTheObjectAndNotForADeviceThatIsGone) {
  Sanitizer& sanitizer = program.sanitizer();
  sanitizer.tell(FailedDestruction{sanitizer.objects(), program.cq(1), {}, EIO});
  EXPECT_THAT(program.reports(), IsEmpty());
  sanitizer.tell(FailedDestruction{sanitizer.objects(), program.cq(1), {}, EBUSY});
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("ibv_destroy_cq failed with EBUSY")));
}

// ---- qp-destroyed-in-use ----

TEST_F(RulesTest, ASignaledSendIsLostWithItsQp) {
  program.post(1, {{.wr_id = 1, .is_signaled = false}, {.wr_id = 2}, {.wr_id = 3}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(),
              ElementsAre("qp-destroyed-in-use: destroyed QP 1 with 2 signaled sends whose "
                          "completion it has not polled"));
}

TEST_F(RulesTest, ReceivesAndUnsignaledSendsMayBeLeft) {
  program.post_receive(1, {.wr_id = 1});
  program.post(1, {{.wr_id = 2, .is_signaled = false}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, AProgramMayGiveUpWorkByMovingTheQpToErr) {
  program.post(1, {{.wr_id = 1}});
  program.change(1, abi::QpState::kErr);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), Not(Contains(HasSubstr("qp-destroyed-in-use"))));
}

// ---- events-unacknowledged ----

TEST_F(RulesTest, TheOnlyThreadWaitsForAcknowledgementsInVain) {
  program.sanitizer().tell(AcknowledgementWait{program.cq(1), 2, 1, {}});
  EXPECT_THAT(program.reports(),
              ElementsAre("events-unacknowledged: waits in ibv_destroy_cq forever: 2 completion "
                          "events and 1 async event of CQ 1 were not acknowledged"));
}

TEST_F(RulesTest, AnotherThreadMayAcknowledge) {
  program.has_other_threads = true;
  program.sanitizer().tell(AcknowledgementWait{program.cq(1), 1, 0, {}});
  program.sanitizer().tell(AcknowledgementsComplete{program.cq(1)});
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- cq-too-small ----

TEST_F(RulesTest, MoreOutstandingWorkThanTheCqHasPlacesIsReportedOnce) {
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

TEST_F(RulesTest, APolledCompletionMakesRoomInTheCq) {
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

// ---- qp-never-error-drained ----

TEST_F(RulesTest, AFailedQpIsDrainedBeforeItGoes) {
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
TEST_F(RulesTest, AQpInSqeFlushesOnlySends) {
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

TEST_F(RulesTest, AQpThatFailedWithAReceiveFlushesSendsAndReceives) {
  program.qp(1).type = abi::QpType::kUd;
  program.post(1, {{.wr_id = 1}});
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.complete_queue(program.qp(1).receives, 1, kFlushed);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("completions of 1 send and 1 receive")));
}

// ibv_post_send(3): a request without IBV_SEND_SIGNALED has no completion if it is executed.
TEST_F(RulesTest, AnUnsignaledSendMayHaveNothingToPoll) {
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.change(1, abi::QpState::kErr);
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), IsEmpty());
  program.post(1, {{.wr_id = 2}});
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("flushed completions of 1 send")));
}

// ---- UD QPs that return from SQE to RTS ----

class RecoveredQp : public RulesTest {
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

// ---- send-buffer-modified ----

TEST_F(RulesTest, ABufferIsTheNicsUntilTheCompletionIsPolled) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1}});
  program.bytes = 2;
  program.complete(1, 1);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 1 on QP 1")));
  program.post(1, {{.wr_id = 2}});
  program.complete(1, 2);
  program.bytes = 3;
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, ABufferOfAnUnsignaledSendIsTheNicsUntilALaterCompletion) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.bytes = 2;
  program.post(1, {{.wr_id = 2}});
  program.complete(1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 1 on QP 1")));
}

// ibv_post_send(3): with IBV_SEND_FENCE a request is processed only after all earlier RDMA READs
// and atomics of the queue have finished (IBTA vol 1, 10.8.3.3), so that they may write its bytes.
TEST_F(RulesTest, AFencedSendReadsItsBytesAfterTheReadsBeforeIt) {
  for (const abi::WrOpcode before : {abi::WrOpcode::kRdmaRead, abi::WrOpcode::kAtomicFetchAndAdd}) {
    program.bytes = 1;
    program.post(
        1, {{.wr_id = 1, .is_signaled = false, .opcode = before}, {.wr_id = 2, .is_fenced = true}});
    program.bytes = 2;  // by the READ or the atomic
    program.complete(1, program.qp(1).sends.requests.posted());
  }
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RulesTest, OnlyAFenceAndOnlyTheSameBytesExcuseAChange) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .opcode = abi::WrOpcode::kRdmaRead},
                   {.wr_id = 2},
                   {.wr_id = 3, .address = 0x1008, .is_fenced = true}});
  program.bytes = 2;
  program.complete(1, 3);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 2 on QP 1"),
                                             HasSubstr("changed the bytes of send 3 on QP 1")));
}

TEST_F(RulesTest, ADestroyedOrResetQpStillOwnedTheBytesOfItsSends) {
  program.bytes = 1;
  for (uint32_t qp : {1u, 2u}) program.post(qp, {{.wr_id = 1, .is_signaled = false}, {.wr_id = 2}});
  program.bytes = 2;
  program.destroy_qp(1);
  EXPECT_THAT(program.reports(), Contains(HasSubstr("changed the bytes of send")).Times(2));
  program.change(2, abi::QpState::kReset);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 1 on QP 2"),
                                             HasSubstr("changed the bytes of send 2 on QP 2")));
}

// The program can know from the peer that an unsignaled send has arrived, and cannot poll for it.
TEST_F(RulesTest, AQpMayBeDestroyedAfterUnsignaledSends) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.bytes = 2;
  program.destroy_qp(1);
  program.change(1, abi::QpState::kReset);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// A failed QP may never have read the bytes.
TEST_F(RulesTest, AQpInErrNoLongerReads) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1}});
  program.change(1, abi::QpState::kErr);
  program.bytes = 2;
  program.change(1, abi::QpState::kReset);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ---- Events of CQs ----

class EventRules : public RulesTest {
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

// ---- Requests ----

// A check does not get events for which it does not override on(), so that they cost nothing.
TEST(Checks, GetOnlyTheEventsThatTheyOverride) {
  struct OfPolls : Check {
    void on(const Poll&) override { ++polls; }
    int polls = 0;
  };
  struct OfAll : Check {};
  EXPECT_EQ(wanted_events<OfPolls>(), uint64_t{1} << number_of<Poll>());
  // without an override, all events are wanted
  EXPECT_EQ(wanted_events<OfAll>(), (uint64_t{1} << kEvents) - 1);

  ScriptedProgram program;
  auto check = std::make_unique<OfPolls>();
  const OfPolls& polls = *check;
  program.sanitizer().add({std::move(check), wanted_events<OfPolls>()});
  program.post(1, {{.wr_id = 1}});
  program.poll(1);
  EXPECT_EQ(polls.polls, 1);
}

TEST(Requests, OfAnSrqFinishInAnyOrder) {
  Requests requests;
  for (uint64_t id : {10u, 11u, 12u}) requests.push().wr_id = id;
  EXPECT_EQ(requests.finish_one(11)->number, 2u);
  EXPECT_EQ(requests.finished(), 0u);
  EXPECT_EQ(requests.finish_one(10)->number, 1u);
  EXPECT_EQ(requests.finished(), 2u);
  EXPECT_EQ(requests.finish_one(10), nullptr);
}

TEST(Requests, KeepTheirNumbersWhenTheRingGrows) {
  Requests requests;
  for (uint64_t i = 1; i <= 10; ++i) requests.push().wr_id = i;
  requests.finish_up_to(7);
  for (uint64_t i = 11; i <= 100; ++i) requests.push().wr_id = i;
  for (uint64_t i = 8; i <= 100; ++i) {
    EXPECT_EQ(requests.at(i).wr_id, i);
    EXPECT_EQ(requests.at(i).number, i);
  }
}

}  // namespace
}  // namespace rocemu::sanitizer
