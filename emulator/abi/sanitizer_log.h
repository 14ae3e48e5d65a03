// The directory DIR, into which the programs and the NIC of a run with --sanitize write their
// findings. It contains:
//
//   DIR/rules         the rules that are checked, one on each line
//   DIR/trap          the rule whose violation stops the thread with SIGTRAP; missing if none does
//   DIR/suppressions  the suppressions of --sanitize-suppressions; missing if there are none
//   DIR/report        the file that the reports are written to at the end; missing if there is none
//   DIR/log           JSON lines, each of which is appended by one write(2):
//     {"process": PID, "program": NAME, "number": N}       from now on the process is NAME#N
//     {"stack": S, "pid": PID, "frames": [[FILE, ADDRESS, SYMBOL, OFFSET], ...]}
//     {"object": "QP 5", "device": NAME, "pid": PID, "place": PLACE}
//     {"report": RULE, "pid": PID, "message": TEXT, "places": [PLACE, ...], "index": I,
//      "counts": "counts.PID.N"}
//     The NIC's reports have "device" and "objects" instead of "places".
//   DIR/counts.PID.N  how often each report was made by program N (from 0) that the process
//                     executed: a uint64_t for each index. The NIC's are in DIR/counts.nic.
//   DIR/wait.PID.N.I  a report, without an index, of a wait that another thread could end. The file
//                     is removed when the wait ends.
//
// PLACE is {"what": WORD, "call": FUNCTION, "stack": S, "time": NS}; WORD is missing for an object.
// Stacks and indices count from 1 in each process that was executed. The innermost frame is the
// first one. ADDRESS is an address in the file; in each frame but the innermost, it is the address
// after the call.
#pragma once

#include <cstddef>

namespace rocemu::abi {

inline constexpr char kSanitizerVariable[] = "ROCEMU_SANITIZER_DIR";  // DIR
inline constexpr char kSanitizerRules[] = "rules";
inline constexpr char kSanitizerTrap[] = "trap";
inline constexpr char kSanitizerSuppressions[] = "suppressions";
inline constexpr char kSanitizerReport[] = "report";
inline constexpr char kSanitizerLog[] = "log";
inline constexpr char kSanitizerCounts[] = "counts.";
inline constexpr char kSanitizerWait[] = "wait.";
/// The maximum number of a process's reports that differ in their rule or their places. Further
/// ones are lost.
inline constexpr size_t kMaxSanitizerReports = 4096;
/// The maximum number of DIR/wait files of a process at one time. Further waits are not reported.
inline constexpr size_t kMaxSanitizerWaits = 4096;

}  // namespace rocemu::abi
