// Reads and writes plan.json in a findings folder: the faults that an exploration tries, and the
// baseline to compare with. From this file and the results, merge() writes the report without
// running the command.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings/exploration_report.h"
#include "emulator/explore/trials/options.h"
#include "emulator/explore/trials/trial.h"

namespace rocemu::explore {

struct PlanFile {
  Json identity;  // the command, and all else that must be equal in results that are combined
  size_t points = 0, classes = 0;
  bool deterministic = true;
  std::vector<RunFacts> baseline;
  std::vector<Trial> trials;
  /// The shrunk trials of findings. The keys are the scenarios of the original trials.
  std::map<std::string, Trial> shrunk = {};

  Summary summary(const std::string& folder, int64_t baseline_ns) const;
};

Json identity_of(const Options& options, const RunFacts& baseline);

/// Writes the file. Throws std::system_error.
void write_plan(const std::filesystem::path& folder, const PlanFile& plan);

/// Reads the file. Throws ExploreError, which names the file, if it is missing or invalid.
PlanFile read_plan(const std::filesystem::path& folder);

}  // namespace rocemu::explore
