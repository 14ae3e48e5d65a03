// futex(2), which the C library has no function for.
#pragma once

namespace rocemu::turns {

/// Makes the call with these arguments. Returns what the kernel would, a negative errno value on
/// failure.
long do_futex(const long (&arguments)[6]);

}  // namespace rocemu::turns
