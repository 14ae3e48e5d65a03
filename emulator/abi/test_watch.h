// Memory that a test with a private NIC (testing/) shares with the process `rocemu run
// --for-test=N,M`, which keeps the NIC and watches the test for hangs. N is the descriptor of the
// memory, M that of the test's standard error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::abi {

struct TestWatch {
  static constexpr size_t kThreads = 64;
  static constexpr size_t kReportSize = 65536 - 16 - 4 * kThreads;

  /// The signal that the test gets when a hang is found while no thread of the test waits for
  /// programs.
  std::atomic<int32_t> signal;
  /// The number of detected hangs; `report` describes the latest one.
  std::atomic<uint32_t> hangs;
  std::atomic<uint32_t> report_length;
  uint32_t reserved;
  /// The threads of the test (gettid(2)) that wait until programs started by the test end. Whatever
  /// time limit such a thread has, only the programs can end its wait successfully. Unused entries
  /// are 0.
  std::atomic<int32_t> waiting[kThreads];
  char report[kReportSize];
};
static_assert(sizeof(TestWatch) == 65536);

}  // namespace rocemu::abi
