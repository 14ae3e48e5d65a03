// The folder into which an exploration writes its findings
#pragma once

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

inline constexpr char kResultsFile[] = "results.jsonl";
inline constexpr char kPlanFile[] = "plan.json";

/// Creates the folder, or with Options::force removes an earlier exploration's findings from it.
/// Throws ExploreError if the folder has files that must not be removed.
void prepare_folder(const Options& options);

/// Removes the folders of findings whose scenarios differ from those in `scenarios`. The first
/// element of `scenarios` is the scenario of finding 1.
void remove_findings_but(const std::vector<std::string>& scenarios,
                         const std::filesystem::path& folder);

/// Removes the folder if nothing was found yet, since a folder without results would prevent the
/// next attempt.
void discard_baseline(const std::filesystem::path& folder);

}  // namespace rocemu::explore
