#include "emulator/explore/findings_folder.h"

namespace rocemu::explore {
namespace fs = std::filesystem;
namespace {

/// Removes what explorations make in a folder, and nothing else.
void clear_folder(const fs::path& folder) {
  for (const char* name : {kResultsFile, kPlanFile, "report.txt", "report.json", "report.xml",
                           "report.sarif", "report.html"})
    fs::remove(folder / name);
  fs::remove_all(folder / "baseline");
  remove_findings(folder);
}

}  // namespace

void prepare_folder(const Options& options) {
  const fs::path folder = options.folder;
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw ExploreError(options.folder + " is there already, and is no directory");
  const bool has_results = fs::exists(folder / kResultsFile);
  if (has_results && !options.resume && !options.force)
    throw ExploreError(options.folder +
                       " has the findings of an earlier exploration: --resume goes on with it, "
                       "--force replaces it, --output DIR puts the new ones elsewhere");
  if (!has_results && fs::exists(folder) && !fs::is_empty(folder) && !options.force)
    throw ExploreError(options.folder +
                       " is there already, and is none that rocemu explore made: give another "
                       "--output DIR");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ExploreError("cannot make " + options.folder + ": " + error.message());
  if (has_results && options.force && !options.resume) clear_folder(folder);
}

void remove_findings(const fs::path& folder) {
  for (size_t number = 1; fs::exists(folder / std::to_string(number) / "scenario.yaml"); ++number)
    fs::remove_all(folder / std::to_string(number));
}

void discard_baseline(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / "baseline", ignored);
  fs::remove(folder, ignored);  // unless something is left in it
}

}  // namespace rocemu::explore
