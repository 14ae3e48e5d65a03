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

/// Returns further values for the device with that name. The values of the dump take precedence.
using FurtherValues = std::function<std::vector<FoundValue>(const std::string& device)>;

/// Reads the first device of a dump, which may be truncated anywhere. Throws std::runtime_error if
/// it has no device. `source` is for the comment at the beginning.
RecordedProfile record_profile(std::string_view dump, const std::string& source,
                               const FurtherValues& further = {});

}  // namespace rocemu::profile
