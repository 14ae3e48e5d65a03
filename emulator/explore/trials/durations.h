// Finds durations in the output of programs, such as "Ran 3 tests in 0.012s". A fault that costs
// time changes the durations, which is not an error.
#pragma once

#include <string>

namespace rocemu::explore {

/// Returns the line with <time> in place of each time of day, and of each number that has a unit of
/// time. Durations are often padded to a width, so in a line with one, consecutive blanks become
/// one, and so do the characters of a rule such as =====. All other numbers remain.
std::string without_durations(const std::string& line);

}  // namespace rocemu::explore
