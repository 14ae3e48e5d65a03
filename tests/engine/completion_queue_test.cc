// A completion queue's counts and its requests for notification (ibv_req_notify_cq(3); IBTA vol 1,
// 11.4.2.2).
#include "emulator/engine/completion_queue.h"

#include <gtest/gtest.h>

namespace rocemu::engine {
namespace {

using ArmResult = CompletionQueue::ArmResult;

constexpr bool kAnyCompletion = false;
constexpr bool kSolicitedOnly = true;

CompletionQueue make_cq(uint32_t capacity = 8, uint64_t first = 0) {
  CompletionQueue cq(CqId{1}, ClientId{1}, first);
  cq.capacity = capacity;
  return cq;
}

// The matrix: which completion fires which request.
TEST(CompletionQueue, FiresForTheCompletionsThatTheRequestIsFor) {
  struct Case {
    bool solicited_only, qualifies, fires;
  };
  for (const auto& [solicited_only, qualifies, fires] :
       {Case{false, false, true}, Case{false, true, true}, Case{true, false, false},
        Case{true, true, true}}) {
    CompletionQueue cq = make_cq();
    EXPECT_EQ(cq.arm(0, solicited_only), ArmResult::kArmed);
    EXPECT_EQ(cq.add(qualifies), fires);
    EXPECT_EQ(cq.armed() == Notify::kNone, fires);
  }
}

TEST(CompletionQueue, FiresOnlyWhenArmed) {
  CompletionQueue cq = make_cq();
  EXPECT_FALSE(cq.add(true));
  EXPECT_FALSE(cq.add(false));
}

// "The request for notification is one shot."
TEST(CompletionQueue, FiresOncePerRequest) {
  CompletionQueue cq = make_cq();
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kArmed);
  EXPECT_TRUE(cq.add(true));
  EXPECT_FALSE(cq.add(true));
  EXPECT_EQ(cq.arm(2, kAnyCompletion), ArmResult::kArmed);
  EXPECT_TRUE(cq.add(false));
  EXPECT_FALSE(cq.add(false));
}

TEST(CompletionQueue, WidensARequestForSolicitedToAny) {
  CompletionQueue cq = make_cq();
  cq.arm(0, kSolicitedOnly);
  cq.arm(0, kAnyCompletion);
  EXPECT_EQ(cq.armed(), Notify::kAny);
  EXPECT_TRUE(cq.add(false));
}

TEST(CompletionQueue, DoesNotNarrowARequestForAny) {
  CompletionQueue cq = make_cq();
  cq.arm(0, kAnyCompletion);
  cq.arm(0, kSolicitedOnly);
  EXPECT_EQ(cq.armed(), Notify::kAny);
  EXPECT_TRUE(cq.add(false));
}

TEST(CompletionQueue, FiresAtOnceForACompletionThatCameAfterTheClientLooked) {
  CompletionQueue cq = make_cq();
  cq.add(false);
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kEventDue);
  EXPECT_EQ(cq.armed(), Notify::kNone);
  EXPECT_FALSE(cq.add(true));
}

TEST(CompletionQueue, DoesNotFireForCompletionsThatTheClientSaw) {
  CompletionQueue cq = make_cq();
  cq.add(true);
  EXPECT_EQ(cq.arm(1, kAnyCompletion), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(1, kSolicitedOnly), ArmResult::kArmed);
}

TEST(CompletionQueue, LooksForASolicitedCompletionAmongThoseTheClientDidNotSee) {
  CompletionQueue cq = make_cq();
  cq.add(true);
  cq.add(false);
  EXPECT_EQ(cq.arm(1, kSolicitedOnly), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(0, kSolicitedOnly), ArmResult::kEventDue);
  cq.add(true);
  cq.add(false);
  EXPECT_EQ(cq.arm(2, kSolicitedOnly), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(3, kSolicitedOnly), ArmResult::kArmed);
}

TEST(CompletionQueue, AnEventThatIsDueEndsAnEarlierRequest) {
  CompletionQueue cq = make_cq();
  cq.arm(0, kSolicitedOnly);
  EXPECT_FALSE(cq.add(false));
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kEventDue);
  EXPECT_FALSE(cq.add(true));
}

TEST(CompletionQueue, RefusesARequestBehindCompletionsThatAreNotThere) {
  CompletionQueue cq = make_cq();
  EXPECT_EQ(cq.arm(1, kAnyCompletion), ArmResult::kImpossible);
  EXPECT_EQ(cq.arm(0xffffffff, kAnyCompletion), ArmResult::kImpossible);
  cq.add(false);
  EXPECT_EQ(cq.arm(2, kAnyCompletion), ArmResult::kImpossible);
  EXPECT_EQ(cq.armed(), Notify::kNone);
}

TEST(CompletionQueue, CountsWhatWaits) {
  CompletionQueue cq = make_cq(2);
  EXPECT_FALSE(cq.full());
  cq.add(false);
  cq.add(false);
  EXPECT_TRUE(cq.full());
  EXPECT_EQ(cq.waiting(), 2u);
  EXPECT_TRUE(cq.consume(1));
  EXPECT_FALSE(cq.full());
  EXPECT_TRUE(cq.consume(1));  // nothing new taken
  EXPECT_TRUE(cq.consume(2));
  EXPECT_EQ(cq.waiting(), 0u);
}

TEST(CompletionQueue, RefusesToGiveMoreThanItHas) {
  CompletionQueue cq = make_cq();
  EXPECT_FALSE(cq.consume(1));
  cq.add(false);
  cq.add(false);
  EXPECT_FALSE(cq.consume(3));
  EXPECT_TRUE(cq.consume(2));
  EXPECT_FALSE(cq.consume(1));  // backwards
  EXPECT_FALSE(cq.consume(0));
  EXPECT_EQ(cq.waiting(), 0u);
}

TEST(CompletionQueue, CountsOverTheWrap) {
  CompletionQueue cq = make_cq(4, 0xfffffffe);
  for (int i = 0; i < 4; ++i) cq.add(false);
  EXPECT_EQ(cq.produced(), 2u);
  EXPECT_TRUE(cq.full());
  EXPECT_TRUE(cq.consume(0xffffffff));
  EXPECT_EQ(cq.waiting(), 3u);
  EXPECT_FALSE(cq.consume(3));
  EXPECT_TRUE(cq.consume(2));
  EXPECT_EQ(cq.waiting(), 0u);
}

TEST(CompletionQueue, NotifiesOverTheWrap) {
  CompletionQueue cq = make_cq(8, 0xfffffffe);
  cq.add(true);   // 0xffffffff
  cq.add(false);  // 0
  EXPECT_EQ(cq.arm(0xfffffffe, kSolicitedOnly), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(0xffffffff, kSolicitedOnly), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(0xffffffff, kAnyCompletion), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(1, kAnyCompletion), ArmResult::kImpossible);
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kArmed);
  EXPECT_TRUE(cq.add(false));
}

}  // namespace
}  // namespace rocemu::engine
