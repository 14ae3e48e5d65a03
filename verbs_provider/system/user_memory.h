// Addresses that a program passes to a system call, and that can be bad: the kernel returns EFAULT
// for them, and so must replacements of system calls.
#pragma once

#include <cstddef>

namespace rocemu::shim {

/// Returns true unless the kernel would return EFAULT for this path. This needs an additional
/// system call, so it is for calls that cannot query the kernel first (see query_path in
/// served_paths.h).
bool is_readable_path(const char* path);

/// Copies from an address of the program. Returns 0 or EFAULT.
int copy_from_program(void* to, const void* from, size_t size);

/// Copies to an address of the program. Returns 0 or EFAULT.
int copy_to_program(void* to, const void* from, size_t size);

}  // namespace rocemu::shim
