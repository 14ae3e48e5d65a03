// One run of a command in lockstep and its results: exit status, output, recording.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// The conditions of a run.
struct Circumstances {
  bool beside_load = false;
  bool on_one_processor = false;
};

struct RecordedRun {
  std::string name;           // "run 2 (under load)"
  std::filesystem::path dir;  // the directory of the recording
  int status = 0;
  std::string output;  // the command's standard output and standard error
  std::string errors;
  std::vector<std::string> notes;  // rocemu's messages
};

/// Runs `rocemu run` with these options, and records the run in a new directory in `parent`. If a
/// signal would end this process, ends the run with SIGTERM, and then throws Error.
RecordedRun record_run(size_t number, Circumstances circumstances, const Arguments& options,
                       const Arguments& command, const std::filesystem::path& parent);

}  // namespace rocemu::command
