// Addresses that a program passed to a system call, and that may be wrong: the kernel answers
// EFAULT to them, and so does what stands in for it.
#pragma once

#include <cstddef>

namespace rocemu::shim {

/// True unless the kernel would answer EFAULT to this path. A system call of its own, so for calls
/// that cannot ask the kernel first (see query_path in served_paths.h).
bool is_readable_path(const char* path);

/// Copies what lies at an address of the program's. Returns 0 or EFAULT.
int copy_from_program(void* to, const void* from, size_t size);

/// Copies to an address of the program's. Returns 0 or EFAULT.
int copy_to_program(void* to, const void* from, size_t size);

}  // namespace rocemu::shim
