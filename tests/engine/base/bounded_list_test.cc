// Tests that a copy of a list copies only the elements that exist.
#include "emulator/engine/base/bounded_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocemu::engine {
namespace {

using List = BoundedList<uint64_t, 4>;

std::vector<uint64_t> values(const List& list) {
  return {list.begin(), list.end()};
}

List list_of(const std::vector<uint64_t>& values) {
  List list;
  for (const uint64_t value : values) list.push_back(value);
  return list;
}

TEST(BoundedList, HoldsFromNoneToAll) {
  for (const std::vector<uint64_t>& some :
       {std::vector<uint64_t>{}, {7}, {1, 2, 3}, {1, 2, 3, 4}}) {
    const List list = list_of(some);
    EXPECT_EQ(values(list), some);
    EXPECT_EQ(list.empty(), some.empty());
    EXPECT_EQ(values(List(list)), some);
  }
}

TEST(BoundedList, ACopyReplacesALongerList) {
  List list = list_of({1, 2, 3, 4});
  list = list_of({9});
  EXPECT_EQ(values(list), std::vector<uint64_t>{9});
  const List& same = list;
  list = same;
  EXPECT_EQ(values(list), std::vector<uint64_t>{9});
}

TEST(BoundedList, IsReadFromBytes) {
  const std::vector<uint64_t> source{5, 6};
  List list = list_of({1});
  list.assign(std::as_bytes(std::span(source)));
  EXPECT_EQ(values(list), source);
  list.assign({});
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace rocemu::engine
