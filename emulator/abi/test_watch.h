// Memory that a test with a private NIC (testing/) shares with the `rocemu run --for-test=N,M` that
// keeps the NIC and watches the test for hangs. N is the descriptor of the memory, M that of the
// test's standard error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::abi {

struct TestWatch {
  static constexpr size_t kThreads = 64;
  static constexpr size_t kReportSize = 65536 - 16 - 4 * kThreads;

  /// The signal that the test gets when a hang is found while none of its threads waits for
  /// programs.
  std::atomic<int32_t> signal;
  /// The number of detected hangs. The report is that of the latest one.
  std::atomic<uint32_t> hangs;
  std::atomic<uint32_t> report_length;
  uint32_t reserved;
  /// The threads of the test (gettid(2)) that wait until programs started by the test end: whatever
  /// time limit they have, only the programs can end that wait successfully. 0: none.
  std::atomic<int32_t> waiting[kThreads];
  char report[kReportSize];
};
static_assert(sizeof(TestWatch) == 65536);

}  // namespace rocemu::abi
