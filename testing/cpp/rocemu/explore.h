// `rocemu explore` for C++ test suites: it finds the faults that break a program, or one test of
// GoogleTest.
//
//   #include <gtest/gtest.h>
//   #include <rocemu/explore.h>
//
//   TEST(Pool, KeepsItsPromises) {
//     ROCEMU_EXPLORE("--only", "verbs");  // options of `rocemu explore`, or nothing
//     ...                                 // calls libibverbs, and may print its result
//   }
//
// The test runs in separate processes with a NIC: first without a fault, when it must pass, and
// then once for each fault that can happen to it. The exploration reports a failure if a fault
// makes the test hang or crash, or if the test passes but prints a wrong result. It is correct that
// a fault makes the test fail.
#pragma once

#include <string>
#include <vector>

#include "rocemu/testing.h"

namespace rocemu::testing {

struct Finding {
  int number = 0;                     // also the name of its folder
  std::string verdict;                // "HANG", "CRASH", "WRONG", "MISUSE", "LEAK", "SLOW"
  std::string sentence;               // what happened, and after which fault
  std::string reproduce;              // a command line for a shell
  std::vector<std::string> triggers;  // all faults with this result; empty if no fault causes it
};

struct Exploration {
  int status = 0;  // of `rocemu explore`: 0, or 1 if there is a finding that counts
  std::vector<Finding> findings;
  std::string report;  // the contents of report.json

  /// Returns the findings as text, two lines for each.
  std::string text() const;
};

/// Finds the faults that break the command. Writes findings to the folder `output`, which may
/// contain those of an earlier exploration. `options` are options of `rocemu explore`. Throws Error
/// if the command cannot be explored; the reason is on standard error.
Exploration explore(const std::vector<std::string>& command, const std::string& output,
                    const std::vector<std::string>& options = {});

/// Finds the faults that break this test of GoogleTest ("Suite.Name") in this program. The folder
/// is rocemu-findings/Suite_Name.
Exploration explore_test(const std::string& name, const std::vector<std::string>& options = {});

/// Returns whether this process is a run of explore_test(): such a process has a NIC, and needs no
/// separate Fabric.
bool is_explored();

}  // namespace rocemu::testing

/// Must be the first line of a test. The rest of the test is the body of each run.
#define ROCEMU_EXPLORE(...)                                                                      \
  if (!::rocemu::testing::is_explored()) {                                                       \
    const auto* const rocemu_test = ::testing::UnitTest::GetInstance()->current_test_info();     \
    const auto rocemu_found = ::rocemu::testing::explore_test(                                   \
        std::string(rocemu_test->test_suite_name()) + "." + rocemu_test->name(), {__VA_ARGS__}); \
    if (rocemu_found.status != 0) FAIL() << rocemu_found.text();                                 \
    return;                                                                                      \
  }                                                                                              \
  static_assert(true)
