// Finds durations in the output of programs, such as "Ran 3 tests in 0.012s". A fault that costs
// time changes them, which is not an error.
#pragma once

#include <string>

namespace rocemu::explore {

/// Returns the line with <time> in place of each number that has a unit of time, and of each time
/// of day. Lines with such numbers are often padded to a width, so consecutive blanks, and rules
/// such as =====, become one character in them. All other numbers remain.
std::string without_durations(const std::string& line);

}  // namespace rocemu::explore
