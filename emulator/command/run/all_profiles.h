// `rocemu run --profile all`: the command once with each profile, and a table of the results.
#pragma once

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

/// `own` are the options of `rocemu run`, with `--profile all` among them. Returns 0 if the command
/// succeeded with every profile.
int run_with_all_profiles(const Arguments& own, const Arguments& command);

}  // namespace rocemu::command
