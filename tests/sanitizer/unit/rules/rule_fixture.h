// A scripted program, for tests of the sanitizer's rules. A test makes the program's calls, one
// call in a line, and compares the reports. Correct calls cause no report.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/sanitizer/unit/program.h"

namespace rocemu::sanitizer {

inline constexpr uint32_t kRemoteAccessError = 10, kFlushed = 5;  // ibv_wc_status

class RuleTest : public ::testing::Test {
 protected:
  ScriptedProgram program;
};

}  // namespace rocemu::sanitizer
