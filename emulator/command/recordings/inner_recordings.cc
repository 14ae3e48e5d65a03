#include "emulator/command/recordings/inner_recordings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "nic-";  // the PID of the inner `rocemu run` follows

std::vector<fs::path> inner_recordings(const fs::path& dir) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir, ignored))
    if (entry.path().filename().string().starts_with(kPrefix)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

bool has_events(const fs::path& dir) {
  std::error_code error;
  const auto size = fs::file_size(file_in(dir, journal::kEventsFile), error);
  return !error && size > 0;
}

}  // namespace

std::string record_for_outer_run(const boost::program_options::variables_map& values,
                                 std::vector<std::string>& arguments) {
  const char* const keep = std::getenv(abi::kKeepVariable);
  // A run that may join a shared NIC does not get a separate NIC only to be recorded. Runs with
  // --expect or --keep-on-failure record in their own directories.
  if (keep == nullptr || *keep == '\0' || !values["private"].as<bool>() ||
      values.count("expect") != 0 || values.count("keep-on-failure") != 0)
    return "";
  std::error_code ignored;
  if (!fs::is_directory(keep, ignored)) return "";  // the outer run has ended
  const fs::path place = fs::path(keep) / (kPrefix + std::to_string(getpid()));
  if (values.count("record") != 0) {
    fs::create_directory_symlink(fs::absolute(values["record"].as<std::string>()), place, ignored);
    return "";
  }
  arguments.insert(arguments.end(), {"--record", place.string()});
  return place.string();
}

void take_inner_recordings(const fs::path& dir) {
  std::vector<fs::path> kept;
  for (const fs::path& place : inner_recordings(dir)) {
    std::error_code ignored;
    if (fs::is_symlink(place, ignored)) {
      const fs::path recording = fs::read_symlink(place, ignored);
      fs::remove(place, ignored);
      if (!fs::exists(file_in(recording, journal::kJournalFile), ignored)) continue;
      copy_recording(recording, place);
    }
    kept.push_back(place);
  }
  if (kept.size() != 1 || has_events(dir)) return;
  remove_recording(dir);
  copy_recording(kept[0], dir);
  remove_recording(kept[0]);
}

void remove_inner_recordings(const fs::path& dir) {
  for (const fs::path& place : inner_recordings(dir)) {
    std::error_code ignored;
    if (fs::is_symlink(place, ignored)) {
      fs::remove(place, ignored);
    } else {
      remove_recording(place);
    }
  }
}

}  // namespace rocemu::command
