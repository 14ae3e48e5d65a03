// Tests how a completion queue counts completions and handles requests for notification
// (ibv_req_notify_cq(3); IBTA vol 1, 11.4.2.2).
#include "emulator/engine/objects/completion_queue.h"

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

// The cases are all combinations of a request (for any or only for solicited completions) and a
// completion (solicited or not).
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

// ibv_req_notify_cq(3): "The request for notification is one shot."
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

// Requests that the client made before it saw the completion count as one, even if some arrive
// after the completion.
TEST(CompletionQueue, TwoRequestsBeforeACompletionGiveOneEvent) {
  for (const bool first : {kAnyCompletion, kSolicitedOnly}) {
    for (const bool second : {kAnyCompletion, kSolicitedOnly}) {
      CompletionQueue in_time = make_cq();
      in_time.arm(0, first);
      in_time.arm(0, second);
      EXPECT_TRUE(in_time.add(true));

      CompletionQueue late = make_cq();
      late.arm(0, first);
      EXPECT_TRUE(late.add(true));
      EXPECT_EQ(late.arm(0, second), ArmResult::kAnswered);
      EXPECT_EQ(late.armed(), Notify::kNone);
      EXPECT_FALSE(late.add(true));

      CompletionQueue both_late = make_cq();
      EXPECT_FALSE(both_late.add(true));
      EXPECT_EQ(both_late.arm(0, first), ArmResult::kEventDue);
      EXPECT_EQ(both_late.arm(0, second), ArmResult::kAnswered);
      EXPECT_FALSE(both_late.add(true));
    }
  }
}

// The client repeats its request after it saw completions that do not answer it: both are still one
// request.
TEST(CompletionQueue, ASolicitedRequestThatIsRepeatedMeanwhileGivesOneEvent) {
  CompletionQueue cq = make_cq();
  cq.arm(0, kSolicitedOnly);
  EXPECT_FALSE(cq.add(false));
  EXPECT_TRUE(cq.add(true));
  EXPECT_EQ(cq.arm(1, kSolicitedOnly), ArmResult::kAnswered);
  EXPECT_EQ(cq.armed(), Notify::kNone);
}

// If the client makes each request after it saw the completion that answers the previous one, each
// request gets a separate event, even if the requests arrive late.
TEST(CompletionQueue, RequestsBetweenCompletionsGiveOneEventEach) {
  for (const bool solicited_only : {kAnyCompletion, kSolicitedOnly}) {
    CompletionQueue cq = make_cq(100);
    for (int i = 0; i < 70; ++i) cq.add(true);
    for (uint32_t seen = 6; seen < 70; ++seen) {
      EXPECT_EQ(cq.arm(seen, solicited_only), ArmResult::kEventDue) << seen;
    }
    EXPECT_EQ(cq.arm(70, solicited_only), ArmResult::kArmed);
    EXPECT_TRUE(cq.add(true));
  }
}

TEST(CompletionQueue, FindsASolicitedCompletionHoweverLongAgo) {
  CompletionQueue cq = make_cq(200);
  cq.add(true);
  for (int i = 0; i < 100; ++i) cq.add(false);
  EXPECT_EQ(cq.arm(1, kSolicitedOnly), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(0, kSolicitedOnly), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(0, kSolicitedOnly), ArmResult::kAnswered);
}

CompletionQueue make_moderated(uint32_t count) {
  CompletionQueue cq = make_cq();
  cq.moderate({.count = count, .period = std::chrono::milliseconds(1)});
  return cq;
}

// ibv_modify_cq(3), "cq_count: number of completions per CQ event": the count includes completions
// that the client had not seen when it made the request.
TEST(CompletionQueue, AModeratedEventWaitsHoweverLateTheRequestComes) {
  CompletionQueue cq = make_moderated(3);
  EXPECT_FALSE(cq.add(false));
  EXPECT_FALSE(cq.event_waits());
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kArmed);
  EXPECT_TRUE(cq.event_waits());
  EXPECT_FALSE(cq.add(false));
  EXPECT_EQ(cq.arm(0, kAnyCompletion), ArmResult::kArmed);
  EXPECT_EQ(cq.arm(2, kSolicitedOnly), ArmResult::kArmed);
  EXPECT_TRUE(cq.add(false));
  EXPECT_FALSE(cq.event_waits());
  // The client made this request before it saw the third completion.
  EXPECT_EQ(cq.arm(2, kAnyCompletion), ArmResult::kAnswered);
}

TEST(CompletionQueue, AModeratedEventIsDueAtOnceAtItsCount) {
  CompletionQueue cq = make_moderated(2);
  for (int i = 0; i < 5; ++i) cq.add(i % 2 == 0);  // the first, third and fifth are solicited
  // the event is for the first and third
  EXPECT_EQ(cq.arm(0, kSolicitedOnly), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(2, kAnyCompletion), ArmResult::kAnswered);
  EXPECT_EQ(cq.arm(3, kAnyCompletion), ArmResult::kEventDue);
  EXPECT_EQ(cq.arm(5, kAnyCompletion), ArmResult::kArmed);
}

TEST(CompletionQueue, AnEventThatWaitsIsDueWhenTheModerationIsEased) {
  CompletionQueue cq = make_moderated(5);
  cq.arm(0, kAnyCompletion);
  cq.add(false);
  cq.add(false);
  EXPECT_FALSE(cq.moderate({.count = 3, .period = std::chrono::milliseconds(1)}));
  EXPECT_TRUE(cq.moderate({.count = 2, .period = std::chrono::milliseconds(1)}));
  EXPECT_FALSE(cq.event_waits());
  EXPECT_FALSE(cq.moderate({}));
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
