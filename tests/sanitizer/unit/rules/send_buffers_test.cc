// Tests the rule send-buffer-modified: a program must not change the bytes of a send before it has
// polled its completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SendBufferRules : public RuleTest {};

TEST_F(SendBufferRules, ABufferIsTheNicsUntilTheCompletionIsPolled) {
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

TEST_F(SendBufferRules, ABufferOfAnUnsignaledSendIsTheNicsUntilALaterCompletion) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.bytes = 2;
  program.post(1, {{.wr_id = 2}});
  program.complete(1, 2);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 1 on QP 1")));
}

// ibv_post_send(3): with IBV_SEND_FENCE a request is processed only after all earlier RDMA READs
// and atomics of the queue have finished (IBTA vol 1, 10.8.3.3), so that they may write its bytes.
TEST_F(SendBufferRules, AFencedSendReadsItsBytesAfterTheReadsBeforeIt) {
  for (const abi::WrOpcode before : {abi::WrOpcode::kRdmaRead, abi::WrOpcode::kAtomicFetchAndAdd}) {
    program.bytes = 1;
    program.post(
        1, {{.wr_id = 1, .is_signaled = false, .opcode = before}, {.wr_id = 2, .is_fenced = true}});
    program.bytes = 2;  // by the READ or the atomic
    program.complete(1, program.qp(1).sends.requests.posted());
  }
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(SendBufferRules, OnlyAFenceAndOnlyTheSameBytesExcuseAChange) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .opcode = abi::WrOpcode::kRdmaRead},
                   {.wr_id = 2},
                   {.wr_id = 3, .address = 0x1008, .is_fenced = true}});
  program.bytes = 2;
  program.complete(1, 3);
  EXPECT_THAT(program.reports(), ElementsAre(HasSubstr("changed the bytes of send 2 on QP 1"),
                                             HasSubstr("changed the bytes of send 3 on QP 1")));
}

TEST_F(SendBufferRules, ADestroyedOrResetQpStillOwnedTheBytesOfItsSends) {
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
TEST_F(SendBufferRules, AQpMayBeDestroyedAfterUnsignaledSends) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1, .is_signaled = false}});
  program.bytes = 2;
  program.destroy_qp(1);
  program.change(1, abi::QpState::kReset);
  EXPECT_THAT(program.reports(), IsEmpty());
}

// A failed QP may never have read the bytes.
TEST_F(SendBufferRules, AQpInErrNoLongerReads) {
  program.bytes = 1;
  program.post(1, {{.wr_id = 1}});
  program.change(1, abi::QpState::kErr);
  program.bytes = 2;
  program.change(1, abi::QpState::kReset);
  EXPECT_THAT(program.reports(), IsEmpty());
}

}  // namespace
}  // namespace rocemu::sanitizer
