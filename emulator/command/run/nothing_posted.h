// What the NIC says at the end of a run about how it was used.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/base/print_json.h"

namespace rocemu::command {

/// How the report of a run begins in which no work request was posted.
inline constexpr char kNothingPosted[] = "nothing was posted";

struct NicUse {
  bool nothing_posted = false;
  std::vector<std::string> lines;  // to report
};

/// `state` is the reply to "show".
NicUse use_of_nic(const Json& state);

}  // namespace rocemu::command
