// The installed profiles, and the search for a profile by its name
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/device_profile.h"

namespace rocemu::profile {

/// Returns the names of all installed profiles: first `generic`, then the others in alphabetical
/// order.
std::vector<std::string> profile_names();

/// Returns the installed profile with this name, or the profile in this file. Throws ProfileError.
std::shared_ptr<const engine::DeviceProfile> load_profile(const std::string& name_or_file);

/// Returns whether load_profile() treats the text as a file: it contains a '/', or ends with
/// ".yaml".
bool is_profile_file(std::string_view name_or_file);

}  // namespace rocemu::profile
