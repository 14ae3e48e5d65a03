// The options of `rocemu explore`, and the error that is thrown if the command cannot be explored.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/explore/trials/runner.h"
#include "emulator/explore/trials/verdict.h"

namespace rocemu::explore {

struct Options {
  RunnerOptions runs;
  std::string folder = "rocemu-findings";
  bool resume = false, force = false;
  bool lists = false;                  // prints the faults, without running them
  std::vector<std::string> only;       // "verbs", or "verbs:reg_mr"; empty: all
  std::vector<std::string> processes;  // "server" or "server#1"; empty: all
  size_t shard = 1, shards = 1;
  std::optional<std::chrono::nanoseconds> budget;
  std::set<Verdict> fails_on = {Verdict::kHang, Verdict::kCrash, Verdict::kWrong, Verdict::kMisuse};
  std::string known;                             // a report.json whose findings are accepted
  size_t random = 0;                             // mixtures of several faults
  size_t schedules = 0;                          // orders of threads, without a fault
  size_t adversarial = 0;                        // seeds of each class, without a fault
  std::vector<std::string> adversarial_classes;  // those of `rocemu run --adversarial`
  int depth = 1;
  uint64_t seed = 0;
  int repetitions = 2;  // of the first trigger of each finding
  Limits limits;
  bool json = false;
};

/// An error because the user's command or folder is unsuitable. Its text is one line, which says
/// what to do.
class ExploreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rocemu::explore
