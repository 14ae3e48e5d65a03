#include "verbs_provider/base/number_table.h"

#include <gtest/gtest.h>

#include <memory>

namespace rocemu::provider {
namespace {

struct Object;

Object* fake(uintptr_t value) {
  return reinterpret_cast<Object*>(value * 16);
}

class NumberTableTest : public testing::Test {
 protected:
  std::unique_ptr<NumberTable<Object>> table_{new NumberTable<Object>};
};

TEST_F(NumberTableTest, FindsWhatWasInserted) {
  for (const uint32_t number : {0u, 1u, 17u, 4095u, 4096u, 0xffffffu}) {
    EXPECT_EQ(table_->find(number), nullptr);
    EXPECT_TRUE(table_->insert(number, fake(number + 1)));
    EXPECT_EQ(table_->find(number), fake(number + 1));
  }
  EXPECT_EQ(table_->find(2), nullptr);
}

TEST_F(NumberTableTest, HasNumbersOf24BitsOnly) {
  EXPECT_FALSE(table_->insert(0x1000000, fake(1)));
  EXPECT_EQ(table_->find(0x1000000), nullptr);
  EXPECT_EQ(table_->find(0xffffffff), nullptr);
}

TEST_F(NumberTableTest, RemovesAnObjectButNotItsSuccessor) {
  table_->insert(17, fake(1));
  table_->insert(17, fake(2));
  table_->remove(17, fake(1));
  EXPECT_EQ(table_->find(17), fake(2));
  table_->remove(17, fake(2));
  EXPECT_EQ(table_->find(17), nullptr);
}

}  // namespace
}  // namespace rocemu::provider
