// Compares two recordings, for `rocemu diff` and `rocemu run --expect`.
#pragma once

#include <string>

namespace rocemu::command {

/// Prints the first difference between the recordings, if there is one, to standard output. Returns
/// whether they are equal.
bool print_comparison(const std::string& a, const std::string& b);

}  // namespace rocemu::command
