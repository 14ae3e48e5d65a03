// The clock functions of the shared object that the kernel maps into each process (vdso(7)).
#pragma once

namespace rocemu::turns {

/// Makes them system calls, so that none reads the processor's cycle counter. Returns false if that
/// is not possible, as where a security module forbids to change code.
bool make_clocks_call_kernel();

}  // namespace rocemu::turns
