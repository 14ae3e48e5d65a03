// Two recordings side by side, for `rocemu diff` and `rocemu run --expect`.
#pragma once

#include <string>

namespace rocemu::command {

/// Prints where they part, if they do, to standard output; true if they do not.
bool print_comparison(const std::string& a, const std::string& b);

}  // namespace rocemu::command
