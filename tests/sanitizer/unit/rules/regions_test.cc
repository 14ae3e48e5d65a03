// Tests the rules about registered memory: that a region in use must not be deregistered, and that
// fork() needs ibv_fork_init().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitizer/unit/rules/rule_fixture.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RegionRules : public RuleTest {};

// ---- mr-deregistered-in-use ----

// ibv_post_recv(3): "The buffers used by a WR can only be safely reused after WR the request is
// fully executed and a work completion has been retrieved".
TEST_F(RegionRules, ARegionIsInUseUntilTheCompletionIsPolled) {
  program.post(1, {{.wr_id = 1, .lkey = 0x1203}});
  program.deregister(0x1203);
  EXPECT_THAT(program.reports(),
              ElementsAre("mr-deregistered-in-use: deregistered memory region 3 (lkey 0x1203) "
                          "while send 1 on QP 1 still names it"));
  program.complete(1, 1);
  program.deregister(0x1203);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RegionRules, ACompletionFreesTheRegionsOfUnsignaledRequestsBeforeIt) {
  program.post(1, {{.wr_id = 1, .is_signaled = false, .lkey = 5}, {.wr_id = 2, .lkey = 6}});
  program.complete(1, 2);
  program.deregister(5);
  program.deregister(6);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RegionRules, ResetFreesRegions) {
  program.post_receive(1, {.wr_id = 1, .lkey = 5});
  program.change(1, abi::QpState::kReset);
  program.deregister(5);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RegionRules, ARegionOfOtherRequestsIsFree) {
  program.post(1, {{.wr_id = 1, .lkey = 5}});
  program.deregister(6);
  EXPECT_THAT(program.reports(), IsEmpty());
}

TEST_F(RegionRules, SeveralUsersAreOneReport) {
  program.post_receive(2, {.wr_id = 1, .lkey = 5});
  program.post_receive(2, {.wr_id = 2, .lkey = 5});
  program.deregister(5);
  EXPECT_THAT(program.reports(),
              ElementsAre(HasSubstr("while receive 1 on QP 2 and 1 other request still name it")));
}

// ---- fork-unprotected ----

// madvise(2): with MADV_DONTFORK, "Do not make the pages in this range available to the child after
// a fork(2). This is useful to prevent copy-on-write semantics from changing the physical location
// of a page when the parent writes to it after a fork(2)."
TEST_F(RegionRules, MemoryThatAChildDoesNotGetIsProtected) {
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

}  // namespace
}  // namespace rocemu::sanitizer
