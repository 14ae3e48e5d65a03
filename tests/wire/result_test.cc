#include "wire/result.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rocemu::wire {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  const Result<std::string> value(std::string("text"));
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, "text");
  EXPECT_EQ(value->size(), 4u);

  const Result<std::string> error(ParseError::kBadPad);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error(), ParseError::kBadPad);
}

TEST(ResultDeathTest, LookingAtTheOtherAlternativeAborts) {
  const Result<int> value(1);
  const Result<int> error(ParseError::kBadPad);
  EXPECT_DEATH((void)value.error(), "");
  EXPECT_DEATH((void)*error, "");
}

TEST(ParseError, EveryReasonHasAUniqueName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kParseErrorCount; ++i) {
    const std::string_view word = name(static_cast<ParseError>(i));
    EXPECT_NE(word, "invalid_parse_error") << i;
    EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), word.npos) << word;
    names.insert(word);
  }
  EXPECT_EQ(names.size(), kParseErrorCount);
}

TEST(ParseError, TheTruncatedOnesAreThoseCalledTruncated) {
  for (size_t i = 0; i < kParseErrorCount; ++i) {
    const auto error = static_cast<ParseError>(i);
    EXPECT_EQ(is_truncation(error), name(error).starts_with("truncated_")) << name(error);
  }
}

}  // namespace
}  // namespace rocemu::wire
