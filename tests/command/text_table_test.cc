#include "emulator/command/base/text_table.h"

#include <gtest/gtest.h>

#include <string>

namespace rocemu::command {
namespace {

TEST(TextTable, WritesNumbersInHexadecimalWithoutLeadingZeros) {
  EXPECT_EQ(hexadecimal(0), "0x0");
  EXPECT_EQ(hexadecimal(0x1f), "0x1f");
  EXPECT_EQ(hexadecimal(0xfedc'ba98'7654'3210), "0xfedcba9876543210");
}

// PSNs are modulo 2^24 (IBTA vol 1, 9.7.2).
TEST(TextTable, CountsPsnsFromTheFirstAcrossTheWrap) {
  EXPECT_EQ(psn_text(103, 100), "+3 (103)");
  EXPECT_EQ(psn_text(1, 0xffffff), "+2 (1)");
}

TEST(TextTable, AlignsColumnsTwoBlanksApartAndEndsLinesWithoutBlanks) {
  Table table({"qp", "state"});
  table.add({"0x11", "RTS"});
  table.add({"0x1234", ""});
  EXPECT_EQ(table.text("  "),
            "  qp      state\n"
            "  0x11    RTS\n"
            "  0x1234\n");
}

TEST(TextTable, ContinuesBelowWithTheFirstColumnBeyond80Columns) {
  const std::string wide(38, 'w');
  Table fits({"a", "b", "c"});
  // the width of this row: 1 + 2 + 37 + 2 + 38 = 80
  fits.add({"1", std::string(37, 'w'), std::string(38, 'w')});
  EXPECT_EQ(fits.text(""),
            "a  b" + std::string(38, ' ') + "c\n1  " + std::string(37, 'w') + "  " + wide + "\n");
  Table broken({"a", "b", "c"});
  broken.add({"1", wide, wide});  // one column more
  EXPECT_EQ(broken.text(""), "a  b\n1  " + wide + "\na  c\n1  " + wide + "\n");
}

}  // namespace
}  // namespace rocemu::command
