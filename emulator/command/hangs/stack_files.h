// The files that the options --stacks, --stacks-by and --cores describe.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "emulator/os/threads/stacks.h"

namespace rocemu::command {

/// The file into which the stacks of programs that hang or crash are written.
struct StackFiles {
  StackTool tool{};
  std::string file;    // stacks are appended to it
  bool cores = false;  // also write "core.PID" of each process next to `file`
};

/// Returns the files that the options name; nothing without --stacks. Removes such a file of an
/// earlier run. Throws UsageError for wrong options, and Failure if no tool that reads stacks is
/// installed.
std::optional<StackFiles> make_stack_files(const boost::program_options::variables_map& values);

}  // namespace rocemu::command
