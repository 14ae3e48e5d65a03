// `rocemu explore`: runs a command with one fault after the other, each at a place that its own
// undisturbed run has shown, and tells which of them it does not survive.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

/// Returns the exit status: 0, 1 if there is a new finding that counts, 130 after Ctrl-C.
int explore(const Options& options);

/// Combines the folders of shards into `folder`. Returns the exit status as explore() does.
int merge(const std::vector<std::string>& folders, const Options& options);

}  // namespace rocemu::explore
