// Reads profiles from YAML. docs/profiles.md describes them.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/device_profile.h"
#include "emulator/scenario/document.h"

namespace rocemu::profile {

/// All errors in a profile. what() has for each error "FILE:LINE:COLUMN: what was found, and what
/// is allowed", and the line with a caret.
class ProfileError : public std::runtime_error {
 public:
  explicit ProfileError(const std::string& text, std::vector<scenario::Problem> problems = {})
      : std::runtime_error(text), problems_(std::move(problems)) {}
  /// Returns the errors; none if the file could not be read at all.
  const std::vector<scenario::Problem>& problems() const { return problems_; }

 private:
  std::vector<scenario::Problem> problems_;
};

/// Creates the profile called `name` from YAML. Missing keys have the values of `generic`. `file`
/// is the file name in error messages. Throws ProfileError.
std::shared_ptr<const engine::DeviceProfile> parse_profile(std::string_view yaml,
                                                           const std::string& name,
                                                           const std::string& file);

/// Returns whether the text is a profile and not a scenario: it has one of a profile's sections.
bool is_profile(std::string_view yaml);

}  // namespace rocemu::profile
