// Creates a profile from the output of `ibv_devinfo -v` for a NIC.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/profile/sysfs_identity.h"

namespace rocemu::profile {

struct RecordedProfile {
  std::string yaml;                   // with the line number in the dump after each value
  std::vector<std::string> unknown;   // lines for which a profile has no key
  std::vector<std::string> left_out;  // names of lines about features that rocemu does not emulate
};

/// Returns further values for the device with this name. If the dump also has a value for the same
/// key, the value of the dump is used.
using FurtherValues = std::function<std::vector<FoundValue>(const std::string& device)>;

/// Creates a profile from the first device of a dump, which may be truncated anywhere. Throws
/// std::runtime_error if the dump has no device. `source` is named in the comment at the beginning
/// of the profile.
RecordedProfile record_profile(std::string_view dump, const std::string& source,
                               const FurtherValues& further = {});

}  // namespace rocemu::profile
