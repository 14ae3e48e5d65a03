// Tests which events a check gets.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "emulator/sanitizer/check.h"
#include "tests/sanitizer/unit/program.h"

namespace rocemu::sanitizer {
namespace {

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

}  // namespace
}  // namespace rocemu::sanitizer
