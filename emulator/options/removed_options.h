// The options that earlier versions had. The errors for them name the replacement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rocemu::options {

/// Returns the error for an option that was removed, given as "--name"; nullopt if no version had
/// it.
std::optional<std::string> error_of_removed(std::string_view option);

}  // namespace rocemu::options
