// The call sites of a program: with `rocemu run --call-sites DIR` each process writes a line for
// each call to DIR/PID, in the order of the calls:
//
//   NAME STACK COUNT
//
// NAME is the name in the recording (a verb, post_send, or a command of librdmacm). STACK is a
// hexadecimal number that is equal for two calls with the same call stack; recursion does not
// count. It depends on the program and its libraries, and not on where they are loaded. COUNT is
// the number of events in the recording: the number of work requests that were posted, or 1.
//
// Before the first call of an executed program there is a line with the name kExecuted, since a
// process may execute another program.
#pragma once

namespace rocemu::abi {

inline constexpr char kCallSitesVariable[] = "ROCEMU_CALL_SITES";  // DIR
inline constexpr char kExecuted[] = "exec";

}  // namespace rocemu::abi
