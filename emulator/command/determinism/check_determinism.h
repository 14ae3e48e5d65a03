// `rocemu run --check-determinism N`: checks whether a command runs the same each time in lockstep,
// and explains the first difference.
#pragma once

#include <boost/program_options.hpp>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// Checks `command`. `options` are the options of the command line, and `values` their parsed
/// values. Returns the exit status: the command's, or 1 if its runs differ. Throws UsageError.
int check_determinism(const boost::program_options::variables_map& values, const Arguments& options,
                      const Arguments& command);

}  // namespace rocemu::command
