// The folder in which an exploration leaves what it found.
#pragma once

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

inline constexpr char kResultsFile[] = "results.jsonl";
inline constexpr char kPlanFile[] = "plan.json";

/// Makes the folder, or with Options::force empties it of an earlier exploration's findings. Throws
/// ExploreError if what is there may not go.
void prepare_folder(const Options& options);

/// Removes the folders of findings whose scenarios differ from `scenarios`, which begins with that
/// of finding 1.
void remove_findings_but(const std::vector<std::string>& scenarios,
                         const std::filesystem::path& folder);

/// Nothing was found yet: a folder without results would be in the way of the next attempt.
void discard_baseline(const std::filesystem::path& folder);

}  // namespace rocemu::explore
