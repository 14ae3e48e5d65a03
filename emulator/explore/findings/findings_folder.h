// The folder into which an exploration writes its findings
#pragma once

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

inline constexpr char kResultsFile[] = "results.jsonl";
inline constexpr char kPlanFile[] = "plan.json";

/// Creates the folder. If it already has an exploration's findings, removes them with
/// Options::force. Throws ExploreError if the folder has files that must not be removed.
void prepare_folder(const Options& options);

/// Removes the subfolders of findings whose scenarios have changed: `scenarios` are the current
/// scenarios, that of finding 1 first.
void remove_findings_but(const std::vector<std::string>& scenarios,
                         const std::filesystem::path& folder);

/// Removes the folder if it has no results yet, since a folder without results would prevent the
/// next attempt.
void discard_baseline(const std::filesystem::path& folder);

}  // namespace rocemu::explore
