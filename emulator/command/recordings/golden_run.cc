#include "emulator/command/recordings/golden_run.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "emulator/command/error.h"
#include "emulator/command/recordings/compare.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {

GoldenRun::GoldenRun(std::string dir, bool update) : dir_(std::move(dir)), update_(update) {
  if (update_) {
    record_dir_ = dir_;
    std::error_code error;
    std::filesystem::create_directories(dir_, error);
    if (error) throw Failure("cannot make the directory " + dir_ + ": " + error.message());
    return;
  }
  if (!std::filesystem::exists(dir_ + journal::kJournalFile))
    throw UsageError("run: there is no recording in " + dir_ +
                     " to expect; add --update to make it from this run");
  std::error_code error;
  std::string name = std::filesystem::temp_directory_path(error).string() + "/rocemu-run-XXXXXX";
  if (error || mkdtemp(name.data()) == nullptr)
    fail_with_errno("cannot make a temporary directory", errno);
  record_dir_ = name;
}

GoldenRun::~GoldenRun() {
  if (update_) return;
  std::error_code ignored;
  std::filesystem::remove_all(record_dir_, ignored);
}

bool GoldenRun::check() const {
  if (update_) return true;
  std::cout.flush();
  if (print_comparison(dir_, record_dir_)) return true;
  std::cerr << "rocemu: the run was not as expected; if it is right now, run it with --update\n";
  return false;
}

}  // namespace rocemu::command
