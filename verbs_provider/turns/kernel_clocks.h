// The clock functions of the shared object that the kernel maps into each process (vdso(7)).
#pragma once

namespace rocemu::turns {

/// Turns these functions into system calls, so that none of them reads the processor's cycle
/// counter. Returns false if this is not possible, for example if a security module forbids the
/// modification of code.
bool make_clocks_call_kernel();

}  // namespace rocemu::turns
