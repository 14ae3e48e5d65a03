// Tests the scripts themselves: which differences make them fail.
#include "tests/support/script.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

TEST(Script, FailsWhenNothingComes) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).expect({completion(1)});
      },
      "nothing came");
}

TEST(Script, FailsWhenSomethingComesThatWasNotExpected) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1).expect_silence();
      },
      "not expected");
}

TEST(Script, FailsAtItsEndWhenSomethingWasLeftOver) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1);
      },
      "at the script's end");
}

TEST(Script, FailsAtTheNextMomentWhenSomethingWasLeftOver) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1);
        s.at(1ms);
      },
      "before this line");
}

TEST(Script, FailsWhenSomethingComesTooEarly) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
        s.at(ack_timeout(14) + 1ns).expect({send_only(psn(0))});
      },
      "came at");
}

TEST(Script, FailsWhenAFieldDiffers) {
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1).expect({send_only(psn(1))});
      },
      "PSN is 0, not 1");
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1).expect({send_only(psn(0)).solicited()});
      },
      "SE is 0, not 1");
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_send(1).expect({send_only(psn(0)).with({1})});
      },
      "payload");
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_recv(3).wire_delivers(send_only(psn(0)));
        s.expect({received(4), ack(psn(0))});
      },
      "wr_id is 3, not 4");
  EXPECT_NONFATAL_FAILURE(
      {
        Script s;
        s.at(0ms).app_posts_recv(3).wire_delivers(send_only(psn(0)));
        s.expect({received(3), ack(psn(0)).with_msn(9)});
      },
      "MSN is 1, not 9");
}

TEST(Script, NamesTheLineOfTheScript) {
  testing::TestPartResultArray failures;
  const int line = __LINE__ + 6;
  {
    const testing::ScopedFakeTestPartResultReporter catcher(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    Script s;
    s.at(0ms);
    s.expect({completion(1)});
  }
  ASSERT_EQ(failures.size(), 1);
  EXPECT_EQ(failures.GetTestPartResult(0).line_number(), line);
  EXPECT_NE(std::string(failures.GetTestPartResult(0).file_name()).find("script_test.cc"),
            std::string::npos);
}

}  // namespace
}  // namespace rocemu::test
