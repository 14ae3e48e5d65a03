// Tests the report of the rule protection-explained about an access of a peer that was refused. A
// key belongs to a region or to a memory window (IBTA vol 1, 10.6.6 and 10.6.7), which allow access
// in different ways.
#include <gtest/gtest.h>

#include "emulator/abi/verbs_values.h"
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

RefusedAccess of_4096_bytes(RefusalReason reason, bool is_window) {
  return {.qp = 18,
          .from = 17,
          .rkey = 0x1203,
          .address = 0x10ffd,
          .length = 8,
          .access = abi::kAccessRemoteWrite,
          .reason = reason,
          .opened_address = 0x10000,
          .opened_length = 4096,
          .is_window = is_window};
}

constexpr char kBeginning[] = "refused QP 17, which asked QP 18 to write 8 bytes: ";

TEST(RefusedAccess, IsOfTheRegionThatHasTheKey) {
  const auto words = [](RefusalReason reason) {
    return access_refused(of_4096_bytes(reason, /*is_window=*/false)).message;
  };
  EXPECT_EQ(
      words(RefusalReason::kOtherPd),
      std::string(kBeginning) + "the region of R_Key 0x1203 belongs to another PD than the QP");
  EXPECT_EQ(words(RefusalReason::kNoAccess),
            std::string(kBeginning) +
                "the region of R_Key 0x1203 was registered without IBV_ACCESS_REMOTE_WRITE");
  // The access ends at 0x10ffd + 8, which is 5 bytes after the region's end, 0x10000 + 4096.
  EXPECT_EQ(words(RefusalReason::kBeyond),
            std::string(kBeginning) + "they end 5 bytes behind the region of 4096 bytes");
}

TEST(RefusedAccess, IsOfTheWindowThatHasTheKey) {
  const auto words = [](RefusalReason reason) {
    return access_refused(of_4096_bytes(reason, /*is_window=*/true)).message;
  };
  EXPECT_EQ(
      words(RefusalReason::kOtherPd),
      std::string(kBeginning) + "the window of R_Key 0x1203 belongs to another PD than the QP");
  EXPECT_EQ(words(RefusalReason::kOtherQp),
            std::string(kBeginning) + "the window of R_Key 0x1203 is bound for another QP");
  EXPECT_EQ(words(RefusalReason::kNoAccess),
            std::string(kBeginning) +
                "the window of R_Key 0x1203 was bound without IBV_ACCESS_REMOTE_WRITE");
  EXPECT_EQ(words(RefusalReason::kBeyond),
            std::string(kBeginning) + "they end 5 bytes behind the window of 4096 bytes");
}

}  // namespace
}  // namespace rocemu::sanitizer
