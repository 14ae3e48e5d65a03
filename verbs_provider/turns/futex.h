// Calls futex(2), for which the C library has no function.
#pragma once

namespace rocemu::turns {

/// Calls futex(2) with these arguments. Returns the kernel's result, which is a negative errno
/// value on failure.
long do_futex(const long (&arguments)[6]);

}  // namespace rocemu::turns
