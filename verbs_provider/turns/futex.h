// Calls futex(2), for which the C library has no function.
#pragma once

namespace rocemu::turns {

/// Makes the call with these arguments. Returns the kernel's result, on failure a negative errno
/// value.
long do_futex(const long (&arguments)[6]);

}  // namespace rocemu::turns
