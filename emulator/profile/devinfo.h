// A profile out of what `ibv_devinfo -v` prints of a NIC.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/profile/sysfs_identity.h"

namespace rocemu::profile {

struct RecordedProfile {
  std::string yaml;                   // with the number of the dump's line behind each value
  std::vector<std::string> unknown;   // lines that say nothing that a profile has a key for
  std::vector<std::string> left_out;  // names of lines that are about what rocemu does not emulate
};

/// Returns further values of the device of that name; those of the dump take precedence.
using FurtherValues = std::function<std::vector<FoundValue>(const std::string& device)>;

/// Reads the first device of a dump; a dump may end anywhere. Throws std::runtime_error if there is
/// no device in it. `source` is for the comment at the head.
RecordedProfile record_profile(std::string_view dump, const std::string& source,
                               const FurtherValues& further = {});

}  // namespace rocemu::profile
