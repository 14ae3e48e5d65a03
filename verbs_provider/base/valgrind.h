// Whether this process runs under Valgrind.
#pragma once

namespace rocemu::provider {

/// Valgrind knows of each byte of the program's memory whether it may be read and was written. What
/// the NIC reads must not be reported as what the program does: so where this is true, nothing is
/// copied when it is posted (auto_inline.h).
bool runs_under_valgrind();

}  // namespace rocemu::provider
