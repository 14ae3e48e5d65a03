// One run of a command in lockstep, with all that it left: exit status, outputs, recording.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// The load under which a run is made.
struct Circumstances {
  bool beside_load = false;
  bool on_one_processor = false;
};

struct RecordedRun {
  std::string name;           // "run 2 (beside a load)"
  std::filesystem::path dir;  // of the recording
  int status = 0;
  std::string output;  // what the command wrote to standard output and to standard error
  std::string errors;
  std::vector<std::string> notes;  // what rocemu said there
};

/// `rocemu run` with these options, recorded in a new directory below `parent`. A signal that ends
/// us is passed on to it, and then is a Failure.
RecordedRun record_run(size_t number, Circumstances circumstances, const Arguments& options,
                       const Arguments& command, const std::filesystem::path& parent);

}  // namespace rocemu::command
