// Where a program's calls come from: `rocemu run --call-sites DIR` has each process write a line
// for each call into DIR/PID, in the order of the calls:
//
//   NAME STACK
//
// NAME is that of the recording (a verb, post_send, or a command of librdmacm). STACK is a number
// in hexadecimal digits that two calls share if they came by the same call stack. It depends on the
// program and its libraries, and not on where those are loaded.
#pragma once

namespace rocemu::abi {

inline constexpr char kCallSitesVariable[] = "ROCEMU_CALL_SITES";  // DIR

}  // namespace rocemu::abi
