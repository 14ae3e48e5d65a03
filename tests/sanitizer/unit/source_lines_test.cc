// Tests the parsing of the output of eu-addr2line and addr2line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/os/programs/source_lines.h"

namespace rocemu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The outputs are those of elfutils 0.188 and binutils 2.40 for a program with three functions.
TEST(SourceLines, AreReadFromElfutilsWithTheInlinedFunctionFirst) {
  const SourceLines lines = parse_source_lines(
      "0x00000000000010a9\n"
      "inner inlined at /src/a.cc:5:16 in main\n"
      "/src/a.cc:3:47\n"
      "S::~S()\n"
      "/src/a.cc:5:16\n"
      "0x00000000000011d6\n"
      "main\n"
      "/src/a.cc:6:44\n");
  EXPECT_THAT(lines.at(0x10a9), ElementsAre(SourceLine{"inner", "/src/a.cc", 3},
                                            SourceLine{"S::~S()", "/src/a.cc", 5}));
  EXPECT_THAT(lines.at(0x11d6), ElementsAre(SourceLine{"main", "/src/a.cc", 6}));
}

TEST(SourceLines, AreReadFromBinutils) {
  const SourceLines lines = parse_source_lines(
      "0x00000000000010a9\n"
      "main\n"
      "/src/a.cc:3 (discriminator 2)\n");
  EXPECT_THAT(lines.at(0x10a9), ElementsAre(SourceLine{"main", "/src/a.cc", 3}));
}

TEST(SourceLines, HaveAFunctionWithoutALineWhereOnlySymbolsAreLeft) {
  EXPECT_THAT(parse_source_lines("0x10\nf\n??:0\n").at(0x10), ElementsAre(SourceLine{"f", "", 0}));
}

TEST(SourceLines, LeaveOutAddressesOfWhichNothingIsKnown) {
  EXPECT_THAT(parse_source_lines("0x0000000000000010\n??\n??:0\n"), IsEmpty());
}

TEST(SourceLines, LeaveOutTheToolsWarnings) {
  const SourceLines lines = parse_source_lines(
      "addr2line: DWARF error: something\n"
      "0x10\nf\n/src/f.c:7\n");
  EXPECT_THAT(lines.at(0x10), ElementsAre(SourceLine{"f", "/src/f.c", 7}));
}

}  // namespace
}  // namespace rocemu
