// `rocemu explore` runs a command repeatedly, each time with one fault, at a point that its run
// without faults has shown. It reports the faults that the command does not survive.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

/// Explores the command of the options. Returns the exit status: 0, 1 if there is a new finding
/// that counts, or 130 after Ctrl-C.
int explore(const Options& options);

/// Combines the folders of shards into `folder`. Returns the exit status, as explore() does.
int merge(const std::vector<std::string>& folders, const Options& options);

}  // namespace rocemu::explore
