// The call sites of a program. With `rocemu run --call-sites DIR`, each process writes a line to
// DIR/PID for each of its calls, in the order of the calls:
//
//   NAME STACK COUNT
//
// NAME is the name in the recording (a verb, post_send, or a command of librdmacm). STACK is a
// hexadecimal number that is equal for two calls with the same call stack; the depth of a recursion
// makes no difference. STACK depends on the program and its libraries, and not on the addresses at
// which they are loaded. COUNT is the number of events in the recording: the number of work
// requests that were posted, or 1.
//
// A line with the name kExecuted precedes the first call of each program that the process executes.
#pragma once

namespace rocemu::abi {

inline constexpr char kCallSitesVariable[] = "ROCEMU_CALL_SITES";  // DIR
inline constexpr char kExecuted[] = "exec";

}  // namespace rocemu::abi
