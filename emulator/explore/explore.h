// `rocemu explore`: runs a command repeatedly, each time with one fault. The fault is at a point
// that the run without faults has shown. Reports the faults that the command does not survive.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

/// Explores the command in the options. Returns the exit status: 1 if there is a new finding that
/// repeats and has a verdict of --fail-on, 130 after Ctrl-C, and otherwise 0.
int explore(const Options& options);

/// Combines the findings folders of shards into the folder of the options. Returns the exit status,
/// as explore() does.
int merge(const std::vector<std::string>& folders, const Options& options);

}  // namespace rocemu::explore
