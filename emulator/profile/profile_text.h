// Converts profiles to text.
#pragma once

#include <string>
#include <vector>

#include "emulator/engine/device_profile.h"

namespace rocemu::profile {

/// One key of a profile, with its value as YAML.
struct Line {
  std::string section;  // empty for keys of the whole profile
  std::string key;
  std::string value;
};

/// Returns every key, in the order of profile files.
std::vector<Line> lines_of(const engine::DeviceProfile& profile);

/// Returns the whole profile as YAML, which parse_profile() can read.
std::string to_yaml(const engine::DeviceProfile& profile);

/// Returns the JSON schema of profiles, for editors.
std::string schema();

}  // namespace rocemu::profile
