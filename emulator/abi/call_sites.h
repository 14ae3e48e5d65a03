// Where a program's calls come from: `rocemu run --call-sites DIR` has each process write a line
// for each call into DIR/PID, in the order of the calls:
//
//   NAME STACK COUNT
//
// NAME is that of the recording (a verb, post_send, or a command of librdmacm). STACK is a number
// in hexadecimal digits that two calls share if they came by the same call stack; recursion does
// not count. It depends on the program and its libraries, and not on where those are loaded. COUNT
// is how many events of the recording it is: as many as work requests were posted, or 1.
//
// Before the first call of a program that was executed is a line with the name kExecuted: a process
// may execute another.
#pragma once

namespace rocemu::abi {

inline constexpr char kCallSitesVariable[] = "ROCEMU_CALL_SITES";  // DIR
inline constexpr char kExecuted[] = "exec";

}  // namespace rocemu::abi
