// Durations in what programs print, such as "Ran 3 tests in 0.012s": a fault that costs time
// changes them, and that is not wrong.
#pragma once

#include <string>

namespace rocemu::explore {

/// Returns the line with <time> in place of each number that has a unit of time, and of each time
/// of day. A line with one of them is often padded to a width, so that blanks in a row, and rules
/// such as =====, become one there. All other numbers stay.
std::string without_durations(const std::string& line);

}  // namespace rocemu::explore
