// Tests the rule receive-buffer-overlap: a message must not overwrite another one that the program
// has not polled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReceiveBufferRules : public RuleTest {};

TEST_F(ReceiveBufferRules, AMessageOverAnotherThatLiesInTheCqIsAnError) {
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

TEST_F(ReceiveBufferRules, AMessageThatCameAfterThePollOfTheOtherIsRight) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .address = 0x1004});
  program.receive(1, 1, /*index=*/0xffffffff, /*produced=*/0);
  program.receive(1, 2, /*index=*/0, /*produced=*/1);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(ReceiveBufferRules, OnlyBytesThatWereReceivedCount) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .address = 0x1004});
  program.receive(1, 1, 0, 2, /*length=*/4);
  program.receive(1, 2, 1, 2, /*length=*/8);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(ReceiveBufferRules, OneBufferOfAllReceivesIsForUnwantedMessages) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(ReceiveBufferRules, OneBufferTwiceAmongOthersIsAMistake) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2});
  program.post_receive(1, {.wr_id = 3, .address = 0x2000});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("receive-buffer-overlap: ")));
}

TEST_F(ReceiveBufferRules, PiecesOfAMessageBetweenThoseOfAnotherAreRight) {
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

TEST_F(ReceiveBufferRules, AMessageIsComparedWithTheSixtyThreeBeforeIt) {
  receive_into_ring(program, /*buffers=*/63, /*messages=*/64);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("received receive 64 on QP 1 over the bytes of receive 1 on")));
}

TEST_F(ReceiveBufferRules, AMessageIsNotComparedWithTheSixtyFourthBeforeIt) {
  receive_into_ring(program, /*buffers=*/64, /*messages=*/200);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// ibv_post_recv(3): "The message begins at byte 40" of a datagram's receive.
TEST_F(ReceiveBufferRules, TheBytesBeforeADatagramMayBeOverwritten) {
  program.qp(1).type = abi::QpType::kUd;
  program.post_receive(1, {.wr_id = 1, .length = 40, .second = 0x2000});
  program.post_receive(1, {.wr_id = 2, .length = 40, .second = 0x2008});
  program.receive(1, 1, 0, 2, /*length=*/48);
  program.receive(1, 2, 1, 2, /*length=*/48);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// The second buffer begins where the payload of the first begins, at byte 40.
TEST_F(ReceiveBufferRules, TheBytesBeforeADatagramMayNotOverwriteAnother) {
  program.qp(1).type = abi::QpType::kUd;
  program.post_receive(1, {.wr_id = 1, .address = 0x1000, .length = 48});
  program.post_receive(1, {.wr_id = 2, .address = 0x1028, .length = 48});
  program.receive(1, 1, 0, 2, /*length=*/48);
  program.receive(1, 2, 1, 2, /*length=*/48);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 2 on QP 1 over")));
}

TEST_F(ReceiveBufferRules, TwoQueuesMayThrowMessagesIntoTheSameMemory) {
  for (uint32_t qp : {1u, 2u})
    for (uint64_t i = 1; i <= 2; ++i)
      program.post_receive(qp, {.wr_id = i, .length = qp == 1 ? 8u : 16u});
  program.receive(1, 1, 0, 4);
  program.receive(2, 1, 1, 4, /*length=*/16);
  program.receive(1, 2, 2, 4);
  program.receive(2, 2, 3, 4, /*length=*/16);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(ReceiveBufferRules, TheOnlyBuffersOfTwoQueuesMayNotOverlap) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(2, {.wr_id = 1, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(2, 1, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 1 on QP 2 over")));
}

TEST_F(ReceiveBufferRules, RegionsOfTheSameMemoryOverlap) {
  program.add_region(7, /*address=*/0x1000, /*memory=*/0x1000);
  program.add_region(8, /*address=*/0x1000, /*memory=*/0x1000);
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("received receive 2 on QP 1 over")));
}

// ibv_reg_mr_iova(3): the addresses of a region need not be those of the process.
TEST_F(ReceiveBufferRules, RegionsOfOtherMemoryDoNotOverlap) {
  program.add_region(7, /*address=*/0x1000, /*memory=*/0x1000);
  program.add_region(8, /*address=*/0x1000, /*memory=*/0x9000);
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8, .address = 0x1004});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(ReceiveBufferRules, RegionsOfTheSameAddressesAreOthers) {
  program.post_receive(1, {.wr_id = 1});
  program.post_receive(1, {.wr_id = 2, .lkey = 8});
  program.receive(1, 1, 0, 2);
  program.receive(1, 2, 1, 2);
  EXPECT_THAT(program.reports(), IsEmpty());
}

}  // namespace
}  // namespace rocemu::sanitizer
