// Tests the queue of the requests that a program has posted.
#include "emulator/sanitizer/requests.h"

#include <gtest/gtest.h>

namespace rocemu::sanitizer {
namespace {

TEST(Requests, OfAnSrqFinishInAnyOrder) {
  Requests requests;
  for (uint64_t id : {10u, 11u, 12u}) requests.push().wr_id = id;
  EXPECT_EQ(requests.finish_one(11)->number, 2u);
  EXPECT_EQ(requests.finished(), 0u);
  EXPECT_EQ(requests.finish_one(10)->number, 1u);
  EXPECT_EQ(requests.finished(), 2u);
  EXPECT_EQ(requests.finish_one(10), nullptr);
}

TEST(Requests, KeepTheirNumbersWhenTheRingGrows) {
  Requests requests;
  for (uint64_t i = 1; i <= 10; ++i) requests.push().wr_id = i;
  requests.finish_up_to(7);
  for (uint64_t i = 11; i <= 100; ++i) requests.push().wr_id = i;
  for (uint64_t i = 8; i <= 100; ++i) {
    EXPECT_EQ(requests.at(i).wr_id, i);
    EXPECT_EQ(requests.at(i).number, i);
  }
}

}  // namespace
}  // namespace rocemu::sanitizer
