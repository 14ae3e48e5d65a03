// Detects that this process runs under Valgrind.
#pragma once

namespace rocemu::provider {

/// Returns whether this process runs under Valgrind. Valgrind tracks for each byte of the program's
/// memory whether it is readable and initialized, and must not report the NIC's reads as the
/// program's. Therefore, under Valgrind, messages are not copied when they are posted, except
/// inline ones (auto_inline.h).
bool runs_under_valgrind();

}  // namespace rocemu::provider
