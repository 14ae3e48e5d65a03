// `rocemu run --check-determinism N`: whether a command has the same run in lockstep each time, and
// if not, why.
#pragma once

#include <boost/program_options.hpp>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// `options` are those of the command line. The exit status is that of the command, or 1 if its
/// runs differ. Throws UsageError.
int check_determinism(const boost::program_options::variables_map& values, const Arguments& options,
                      const Arguments& command);

}  // namespace rocemu::command
