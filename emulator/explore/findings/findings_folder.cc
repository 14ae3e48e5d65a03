#include "emulator/explore/findings/findings_folder.h"

#include "emulator/explore/files.h"

namespace rocemu::explore {
namespace fs = std::filesystem;
namespace {

/// Removes the files that explorations write to a folder, but no other files.
void clear_folder(const fs::path& folder) {
  for (const char* name : {kResultsFile, kPlanFile, "report.txt", "report.json", "report.xml",
                           "report.sarif", "report.html"})
    fs::remove(folder / name);
  fs::remove_all(folder / "baseline");
  remove_findings_but({}, folder);
}

}  // namespace

void prepare_folder(const Options& options) {
  const fs::path folder = options.folder;
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw ExploreError(options.folder + " already exists and is not a directory");
  const bool has_results = fs::exists(folder / kResultsFile);
  if (has_results && !options.resume && !options.force)
    throw ExploreError(options.folder +
                       " has the findings of an earlier exploration: --resume continues it, "
                       "--force replaces it, --output DIR puts the new ones elsewhere");
  if (!has_results && fs::exists(folder) && !fs::is_empty(folder) && !options.force)
    throw ExploreError(options.folder +
                       " already exists, and is not a folder of rocemu explore: give another "
                       "--output DIR");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ExploreError("cannot make " + options.folder + ": " + error.message());
  if (has_results && options.force && !options.resume) clear_folder(folder);
}

void remove_findings_but(const std::vector<std::string>& scenarios, const fs::path& folder) {
  for (size_t number = 1;; ++number) {
    const fs::path one = folder / std::to_string(number), scenario = one / "scenario.yaml";
    if (!fs::exists(scenario)) return;
    if (number > scenarios.size() || contents_of(scenario) != scenarios[number - 1])
      fs::remove_all(one);
  }
}

void discard_baseline(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / "baseline", ignored);
  fs::remove(folder, ignored);  // if nothing else is in it
}

}  // namespace rocemu::explore
