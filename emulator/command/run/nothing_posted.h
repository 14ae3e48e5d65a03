// Reports how programs used the NIC, at the end of a run.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/base/print_json.h"

namespace rocemu::command {

/// The beginning of the report about a run in which no work request was posted.
inline constexpr char kNothingPosted[] = "nothing was posted";

struct NicUse {
  /// The opcodes that a profile accepted and then completed with an error.
  std::vector<std::string> late_failures;
  /// The report that no work request was posted, which begins with kNothingPosted. Empty if one was
  /// posted, or if no CQ or QP was created.
  std::string nothing_posted;
};

/// Returns how programs used the NIC. `state` is the daemon's reply to "show".
NicUse use_of_nic(const Json& state);

}  // namespace rocemu::command
