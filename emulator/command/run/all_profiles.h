// `rocemu run --profile all`: runs the command once with each profile, and prints a table of the
// results.
#pragma once

#include <boost/program_options/variables_map.hpp>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// Runs the command with every profile. `own` are the options of `rocemu run`, including `--profile
/// all`, and `values` are their parsed values. Returns 0 if the command succeeded with every
/// profile. Prints the last lines of each failed run to standard error.
int run_with_all_profiles(const boost::program_options::variables_map& values, const Arguments& own,
                          const Arguments& command);

}  // namespace rocemu::command
