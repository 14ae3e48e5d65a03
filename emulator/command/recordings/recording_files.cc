#include "emulator/command/recordings/recording_files.h"

#include "emulator/command/base/error.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFiles[] = {journal::kJournalFile, journal::kEventsFile,
                                  journal::kCaptureFile};

}  // namespace

fs::path file_in(const fs::path& dir, const char* name) {
  return dir.string() + name;
}

void make_directory(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) throw Failure("cannot make the directory " + dir.string() + ": " + error.message());
}

void copy_recording(const fs::path& from, const fs::path& to) {
  make_directory(to);
  for (const char* name : kFiles) {
    std::error_code error;
    if (!fs::exists(file_in(from, name)))
      continue;  // a recording that is only compared has no capture
    fs::copy_file(file_in(from, name), file_in(to, name), fs::copy_options::overwrite_existing,
                  error);
    if (error) throw Failure("cannot write " + file_in(to, name).string() + ": " + error.message());
  }
}

void remove_recording(const fs::path& dir) {
  std::error_code ignored;
  for (const char* name : kFiles) fs::remove(file_in(dir, name), ignored);
  fs::remove(dir, ignored);
}

}  // namespace rocemu::command
