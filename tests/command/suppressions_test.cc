#include "emulator/command/sanitizer/suppressions.h"

#include <gtest/gtest.h>

namespace rocemu::command {
namespace {

// As ThreadSanitizer's: a pattern is found anywhere, "*" stands for anything, "^" and "$" for the
// ends.
TEST(Suppressions, FindAPatternAnywhere) {
  EXPECT_TRUE(matches("post", "ibv_post_send"));
  EXPECT_FALSE(matches("posts", "ibv_post_send"));
  EXPECT_TRUE(matches("", "anything"));
}

TEST(Suppressions, TakeAStarForAnything) {
  EXPECT_TRUE(matches("ibv*send", "ibv_post_send"));
  EXPECT_TRUE(matches("post*send", "post_send_send"));
  EXPECT_TRUE(matches("a*b", "ab"));
  EXPECT_FALSE(matches("send*post", "ibv_post_send"));
}

TEST(Suppressions, HoldPatternsAtTheEndsOfATextWithSigns) {
  EXPECT_TRUE(matches("^ibv", "ibv_post_send"));
  EXPECT_FALSE(matches("^post", "ibv_post_send"));
  EXPECT_TRUE(matches("send$", "ibv_post_send"));
  EXPECT_FALSE(matches("post$", "ibv_post_send"));
  EXPECT_TRUE(matches("^main$", "main"));
  EXPECT_FALSE(matches("^main$", "main_loop"));
  EXPECT_FALSE(matches("^main$", "my_main"));
  EXPECT_TRUE(matches("^a*z$", "a to z"));
}

}  // namespace
}  // namespace rocemu::command
