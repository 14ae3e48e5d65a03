// `rocemu explore`: runs a command with one fault after the other, each at a place that its own
// undisturbed run has shown, and tells which of them it does not survive.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/explore/runner.h"
#include "emulator/explore/verdict.h"

namespace rocemu::explore {

struct Options {
  RunnerOptions runs;
  std::string folder = "rocemu-findings";
  bool resume = false, force = false;
  bool lists = false;                  // the faults, without running them
  std::vector<std::string> only;       // "verbs", or "verbs:reg_mr"; empty: all
  std::vector<std::string> processes;  // "server" or "server#1"; empty: all
  size_t shard = 1, shards = 1;
  std::optional<std::chrono::nanoseconds> budget;
  std::set<Verdict> fails_on = {Verdict::kHang, Verdict::kCrash, Verdict::kWrong};
  std::string known;     // a report.json whose findings are accepted
  size_t random = 0;     // mixtures of several faults
  size_t schedules = 0;  // orders of threads, without a fault
  int depth = 1;
  uint64_t seed = 0;
  int repetitions = 2;  // of the first trigger of each finding
  Limits limits;
  bool json = false;
};

/// The user's command or folder is not what it has to be: one line that says what to do.
class ExploreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the exit status: 0, 1 if there is a new finding that counts, 130 after Ctrl-C.
int explore(const Options& options);

/// Combines the folders of shards into `folder`. Returns the exit status as explore() does.
int merge(const std::vector<std::string>& folders, const Options& options);

}  // namespace rocemu::explore
