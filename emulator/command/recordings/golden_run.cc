#include "emulator/command/recordings/golden_run.h"

#include <iostream>
#include <string>
#include <utility>

#include "emulator/command/base/error.h"
#include "emulator/command/recordings/compare.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/journal/journal_reader.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

bool are_one(const fs::path& a, const fs::path& b) {
  return !a.empty() && !b.empty() && fs::weakly_canonical(a) == fs::weakly_canonical(b);
}

void require_two(const fs::path& a, const fs::path& b, const std::string& options) {
  if (are_one(a, b)) throw UsageError("run: " + options + " must name two different directories");
}

}  // namespace

GoldenRun::GoldenRun(Directories directories, bool update)
    : directories_(std::move(directories)), update_(update) {
  require_two(directories_.expected, directories_.record, "--expect and --record");
  require_two(directories_.expected, directories_.actual, "--expect and --actual");
  require_two(directories_.record, directories_.actual, "--record and --actual");
  if (!update_ && !fs::exists(file_in(directories_.expected, journal::kJournalFile)))
    throw UsageError("run: there is no recording in " + directories_.expected.string() +
                     "; add --update to record this run there");
  // The recording of an earlier run in this directory could be mistaken for this run's.
  if (!directories_.actual.empty()) remove_recording(directories_.actual);
  if (!directories_.record.empty()) {
    record_dir_ = directories_.record;
  } else if (update_) {
    record_dir_ = directories_.expected;
  } else if (!directories_.actual.empty()) {
    record_dir_ = directories_.actual;
  } else {
    record_dir_ = temporary_.emplace().path();
  }
  make_directory(record_dir_);
}

bool GoldenRun::check() const {
  if (update_) return update();
  if (is_as_expected()) {
    if (record_dir_ == directories_.actual) remove_recording(record_dir_);
    return true;
  }
  keep_actual();
  return false;
}

/// Saves the run as the expected run, unless its recording is incomplete.
bool GoldenRun::update() const {
  try {
    journal::JournalReader journal(file_in(record_dir_, journal::kJournalFile));
    while (journal.next()) {
    }
    journal.require_whole();
    if (record_dir_ != directories_.expected) copy_recording(record_dir_, directories_.expected);
    return true;
  } catch (const journal::JournalError& error) {
    std::cerr << "rocemu: " + std::string(error.what()) + "; the expected run is not replaced\n";
    return false;
  }
}

bool GoldenRun::is_as_expected() const {
  std::cout.flush();
  const std::string expected = directories_.expected.string();
  try {
    if (print_comparison(expected, record_dir_.string())) return true;
    std::cerr << "rocemu: the run differs from the expected run; if the new behavior is right, "
                 "repeat the run with --update\n";
  } catch (const journal::JournalError& error) {
    const std::string what = error.what();
    const bool is_of_expected = what.starts_with(expected + journal::kJournalFile);
    std::cerr << "rocemu: " + what +
                     (is_of_expected ? "; --update records a new expected run\n"
                                     : "; so the run cannot be compared\n");
  }
  return false;
}

void GoldenRun::keep_actual() const {
  if (temporary_) {
    std::cerr << "rocemu: the recording of this run is not kept; --actual DIR would keep it\n";
    return;
  }
  if (record_dir_ == directories_.actual) {
    finish_recording(record_dir_.string());
  } else if (!directories_.actual.empty()) {
    copy_recording(record_dir_, directories_.actual);
  }
  const fs::path& dir = directories_.actual.empty() ? record_dir_ : directories_.actual;
  std::cerr
      << "rocemu: the recording of this run is in " + dir.string() +
             "; to inspect it: rocemu replay; to show both runs side by side: rocemu timeline " +
             directories_.expected.string() + " " + dir.string() + " --html difference.html\n";
}

}  // namespace rocemu::command
