#include "emulator/command/recordings/kept_run.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/recordings/inner_recordings.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr char kReportFile[] = "/report.txt";

void require_two_directories(const po::variables_map& values, const std::string& dir) {
  for (const char* option : {"expect", "record", "actual"}) {
    if (values.count(option) != 0 &&
        fs::weakly_canonical(values[option].as<std::string>()) == fs::weakly_canonical(dir))
      throw UsageError("run: --keep-on-failure and --" + std::string(option) +
                       " must name different directories");
  }
}

}  // namespace

std::optional<KeptRun> KeptRun::make(const po::variables_map& values, const GoldenRun* golden) {
  if (values.count("keep-on-failure") == 0) return std::nullopt;
  const std::string dir = values["keep-on-failure"].as<std::string>();
  if (dir.empty()) throw UsageError("run: --keep-on-failure needs the name of a directory");
  KeptRun kept;
  kept.dir_ = fs::absolute(dir).string();
  if (golden != nullptr) {
    kept.recorded_in_ = golden->record_dir().string();
  } else if (values.count("record") != 0) {
    kept.recorded_in_ = fs::absolute(values["record"].as<std::string>()).string();
  }
  require_two_directories(values, kept.dir_);
  // Files of an earlier run in this directory could be mistaken for this run's.
  std::error_code ignored;
  fs::remove(kept.dir_ + kReportFile, ignored);
  remove_inner_recordings(kept.dir_);
  remove_recording(kept.dir_);
  make_directory(kept.dir_);
  if (setenv(abi::kKeepVariable, kept.dir_.c_str(), 1) != 0)
    fail_with_errno("cannot set a variable", errno);
  return kept;
}

void KeptRun::copy() const {
  if (!is_recorded_there()) copy_recording(recorded_in_, dir_);
}

void KeptRun::finish(int status, const std::string& report, capture::CaptureLimits limits) const {
  if (status == 0) {
    remove_inner_recordings(dir_);
    return remove_recording(dir_);
  }
  take_inner_recordings(dir_);
  if (!fs::exists(dir_ + journal::kCaptureFile)) finish_recording(dir_, limits);
  if (!report.empty()) std::ofstream(dir_ + kReportFile) << report;
  std::cerr << "rocemu: the recording of this run is in " + dir_ + "\n";
}

}  // namespace rocemu::command
