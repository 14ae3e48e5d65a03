// `rocemu run --profile all`: the command once with each profile, and a table of the results.
#pragma once

#include <boost/program_options/variables_map.hpp>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// `own` are the options of `rocemu run`, with `--profile all` among them, and `values` what they
/// say. Returns 0 if the command succeeded with every profile. Of runs that fail the last lines go
/// to standard error.
int run_with_all_profiles(const boost::program_options::variables_map& values, const Arguments& own,
                          const Arguments& command);

}  // namespace rocemu::command
