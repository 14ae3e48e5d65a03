// Options of earlier versions. Their errors name the replacement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rocemu::options {

/// Returns the error for a removed option, given as "--name", or nullopt if no version had it.
std::optional<std::string> error_of_removed(std::string_view option);

}  // namespace rocemu::options
