// Whether this process runs under Valgrind.
#pragma once

namespace rocemu::provider {

/// Valgrind knows of each byte of the program's memory whether it may be read and was written. That
/// must not be lost by replacing pages (lent_pages.h), and what the NIC reads must not be reported
/// as what the program does (auto_inline.h): so where this is true, neither is done.
bool runs_under_valgrind();

}  // namespace rocemu::provider
