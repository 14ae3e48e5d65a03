// What the NIC says at the end of a run about how it was used.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/base/print_json.h"

namespace rocemu::command {

/// How the report of a run begins in which no work request was posted.
inline constexpr char kNothingPosted[] = "nothing was posted";

struct NicUse {
  /// The opcodes that a profile took and let fail in their completion.
  std::vector<std::string> late_failures;
  /// Begins with kNothingPosted; empty if something was posted, or no device was prepared.
  std::string nothing_posted;
};

/// `state` is the reply to "show".
NicUse use_of_nic(const Json& state);

}  // namespace rocemu::command
