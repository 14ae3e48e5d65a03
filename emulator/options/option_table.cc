#include "emulator/options/option_table.h"

namespace rocemu::options {
namespace {

constexpr Commands kRun = Command::kRun, kUp = Command::kUp, kExplore = Command::kExplore,
                   kDaemon = Command::kDaemon;
constexpr Commands kEvery = kRun | kUp | kExplore | kDaemon;
/// The commands of options that `rocemu explore` does not have, because it sets them itself for
/// each run.
constexpr Commands kNic = kRun | kUp | kDaemon;

constexpr auto kSwitch = Value::kSwitch;
constexpr auto kText = Value::kText;
constexpr auto kMaybeText = Value::kMaybeText;
constexpr auto kTexts = Value::kTexts;
constexpr auto kNumber = Value::kNumber;
constexpr auto kAlways = Shown::kAlways;
constexpr auto kInHelpAll = Shown::kInHelpAll;
constexpr auto kNever = Shown::kNever;
using enum Task;

// clang-format off
constexpr Option kOptions[] = {
    // ---- Devices ----
    {"devices", kText, "N", kEvery, kChooseDevices, kAlways,
     "emulate N devices named rocemu0, rocemu1, and so on; N is 1 to 250 (default 2)"},
    {"device", kTexts, "NAME[=ADDR,...|=IF][,profile=PROFILE]", kEvery, kChooseDevices, kAlways,
     "emulate a device NAME instead of the default devices, with the IP addresses ADDR or those of "
     "the network interface IF (mlx5_0=eth0), and with PROFILE (default: that of --profile); may "
     "be repeated"},
    {"profile", kText, "NAME|FILE", kEvery, kChooseDevices, kAlways,
     "emulate the NIC model that this profile describes: its identity, attributes, limits and "
     "known quirks (default generic); `rocemu profile list` lists the installed profiles; `rocemu "
     "run --profile all` runs the command once with each (docs/profiles.md)"},
    {"topology", kText, "TOPOLOGY", kEvery, kChooseDevices, kInHelpAll,
     "choose the hardware that sysfs shows: pci (default) makes each device a PCI function; flat "
     "makes all devices virtual, as rxe does; a FILE, or the installed file 8-rails, describes "
     "NUMA nodes, PCI switches and devices (docs/topology.md)"},
    {"fabric", kText, "FILE|NAME", kEvery, kChooseDevices, kAlways,
     "with --lockstep, connect the devices by a simulated network with one device for each host: "
     "the network of FILE, or an installed one (star-16, leaf-spine-64 or fat-tree-1024; "
     "docs/fabric.md)"},
    {"udp", kSwitch, "", kNic, kChooseDevices, kAlways,
     "exchange frames with other daemons, containers and hosts over UDP port 4791; the addresses "
     "of the devices must be addresses of this machine"},
    {"private", kSwitch, "", kRun, kChooseDevices, kAlways,
     "start a NIC for this run even if a shared one is up"},
    {"host", kText, "N", kRun, kChooseDevices, kInHelpAll,
     "in a run with --fabric, show COMMAND only the device of host N (3 or h3); if `rocemu run "
     "--host N` itself is executed in such a run, COMMAND joins that run"},
    {"require-grh", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "reject address vectors without a GRH, as RoCE hardware does"},
    {"same-keys", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "give each memory region an R_Key that equals its L_Key, as most NICs do; needed by programs "
     "that confuse the two keys"},
    {"strict-icrc", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "with --udp, check the ICRC of IPv4 frames against the received IP header; needs CAP_NET_RAW; "
     "without this option, one damaged frame in 65,536 passes"},
    {"keep-real-devices", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "show programs the machine's own RDMA devices, too; by default they see only the emulated "
     "ones"},
    {"mount-sysfs", kSwitch, "", kRun, kChooseDevices, kInHelpAll,
     "mount the NIC's sysfs on /sys in a new mount namespace, without the machine's own RDMA "
     "devices; needed by programs that read /sys without the C library (Go programs and static "
     "ones)"},
    {"busy-poll", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "make the daemon poll without ever sleeping: the latency is lowest, but one processor is "
     "always busy; ROCEMU_POLL=spin in the environment makes programs poll in the same way"},
    {"exact-memory", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "read a message from memory when the NIC sends it, and write it when it arrives, as in "
     "lockstep; by default, messages of up to 4 KiB are read when the program posts them and "
     "written when it polls, which halves their latency"},
    {"ack-coalescing", kText, "N", kEvery, kChooseDevices, kInHelpAll,
     "send one ACK for up to N messages that a QP posts in a row; N is 1 to 16 (default 16, in "
     "lockstep 1); use 1 if a test expects an ACK for each message"},

    // ---- Faults ----
    {"scenario", kTexts, "FILE|NAME", kNic, kCauseFaults, kAlways,
     "cause the faults that the rules in FILE describe (docs/scenarios.md), or those of the "
     "installed scenario NAME (`rocemu scenarios` lists them); may be repeated"},
    {"adversarial", kMaybeText, "CLASS,...", kNic, kCauseFaults, kAlways,
     "show behavior that the specification allows and real NICs rarely show, at random points that "
     "depend on --seed: bytes placed late or out of order, messages read late, completions of "
     "different queues reordered; CLASS,... allows only these kinds: placement, late-read, "
     "undefined, order, atomicity, relaxed; placement:1:7 makes only choices 1 and 7 of this "
     "class; --record lists the choices in DIR/choices (docs/adversarial.md)"},
    {"strict", kSwitch, "", kRun, kCauseFaults, kAlways,
     "fail if a rule of a scenario never acted, or if the command created RDMA objects but posted "
     "no work request"},
    {"seed", kText, "N", kEvery, kCauseFaults, kAlways,
     "start the NIC's random numbers from N (default 0; with --udp, another number at each start)"},

    // ---- Recordings ----
    {"capture", kText, "FILE", kNic, kRecordAndCompare, kAlways,
     "write every frame to FILE (pcap, for Wireshark and tshark); FILE can be a FIFO that has a "
     "reader, or - for standard output (--capture - ... | tshark -r -); a slow reader misses "
     "frames, and rocemu reports how many at the end"},
    {"record", kText, "DIR", kNic, kRecordAndCompare, kAlways,
     "record the run in the directory DIR: `rocemu replay DIR` repeats the run without the "
     "program; events.jsonl has one event per line, and trace.pcap has the frames"},
    {"keep-on-failure", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "record the run in DIR, with the report if the run hangs; keep the files only if the exit "
     "status is not 0"},
    {"expect", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "with --lockstep, fail if the run differs from the recording in DIR"},
    {"update", kSwitch, "", kRun, kRecordAndCompare, kAlways,
     "with --expect DIR, replace the recording in DIR by one of this run"},
    {"actual", kText, "DIR", kRun, kRecordAndCompare, kInHelpAll,
     "with --expect, if the run differs, keep the recording of this run in DIR"},
    {"capture-port", kTexts, "PORT=FILE", kNic, kRecordAndCompare, kInHelpAll,
     "with --fabric, write the frames that leave PORT of the network to FILE (pcap), with the ECN "
     "marks of switches; PORT is h0 for the port of host h0, or s1:3 for port 3 of switch s1; may "
     "be repeated"},
    {"snap-length", kText, "BYTES", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the first BYTES of each frame in the capture and in the recording's trace.pcap "
     "(default: whole frames); 54 bytes include the BTH"},
    {"capture-last", kText, "N", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the last N frames, and write the capture when the NIC ends"},
    {"record-limit", kText, "SIZE", kNic, kRecordAndCompare, kInHelpAll,
     "limit the journal of the recording to SIZE, such as 500k, 100M or 2G; --record-policy "
     "chooses what happens at the limit"},
    {"record-policy", kText, "POLICY", kNic, kRecordAndCompare, kInHelpAll,
     "when the disk is full or the journal has reached --record-limit: continue (default) runs on "
     "without recording; stop ends the run"},
    {"no-trace", kSwitch, "", kRun, kRecordAndCompare, kNever,
     "do not write the trace.pcap of a recording"},

    // ---- Time ----
    {"lockstep", kSwitch, "", kNic, kMakeDeterministic, kAlways,
     "run all threads of all programs one at a time, on a virtual clock that advances only when "
     "every thread waits: every run is the same to the byte, however busy the machine is, and "
     "minutes of retries take no real time"},
    {"schedule", kText, "N", kNic, kMakeDeterministic, kAlways,
     "with --lockstep, choose the order of threads: 0 (default) runs them in start order, each "
     "until it waits; each N >= 1 gives other random priorities to threads and the NIC, and other "
     "preemptions between calls of verbs, librdmacm and functions such as pthread_mutex_lock; "
     "N:THREAD/CALL,... preempts only there: 1/41 is after call 41 of thread 1"},
    {"check-determinism", kText, "N", kRun, kMakeDeterministic, kAlways,
     "with --lockstep, run the command N times, some of them under load; if two runs differ, "
     "report where they first differ and the call that caused it"},
    {"processor", kNumber, "N", kRun, kMakeDeterministic, kInHelpAll,
     "with --lockstep, run the NIC and all programs on processor N, which is faster because only "
     "one thread runs at a time; programs still see all processors"},
    {"no-spin", kSwitch, "", kNic, kMakeDeterministic, kInHelpAll,
     "with --lockstep, make the daemon sleep while a program's thread runs, and the thread while it "
     "waits for its next turn, instead of spinning for up to 50 us: slower, but easier on a busy "
     "machine"},

    // ---- Hangs ----
    {"timeout", kText, "TIME", kRun, kFindHangs, kAlways,
     "after TIME of real time, such as 90 (seconds), 1.5s or 2m, report what each thread waits "
     "for, end the programs and exit with status 124"},
    {"stacks", kText, "FILE", kRun, kFindHangs, kAlways,
     "write the stacks of all threads to FILE if the programs hang or, with --lockstep, if one "
     "crashes; needs gdb or eu-stack"},
    {"report-failures", kSwitch, "", kRun | kDaemon, kFindHangs, kAlways,
     "with --lockstep, report every program that fails or is killed by a signal, even if a shell "
     "hides its exit status"},
    {"poll-patience", kText, "TIME", kRun, kFindHangs, kInHelpAll,
     "with --lockstep, report a deadlock if programs poll without success for TIME of real time "
     "(default 5s) while no frame is under way and no timeout is due"},
    {"stacks-by", kText, "TOOL", kRun, kFindHangs, kInHelpAll,
     "read stacks with TOOL: gdb (default, if installed) shows lines and arguments; eu-stack is "
     "faster and shows lines; eu-stack-names shows only functions"},
    {"cores", kSwitch, "", kRun | kExplore, kFindHangs, kInHelpAll,
     "write a core dump of each program that hangs or crashes, next to the file of --stacks or in "
     "the finding's folder; needs gdb"},
    {"call-sites", kText, "DIR", kRun, kFindHangs, kNever,
     "for each call of a verb or of librdmacm, write a line to DIR/PID of the process, with a "
     "number that identifies the call stack; DIR must be new or empty"},
    {"for-test", kText, "WATCH", kRun, kFindHangs, kNever,
     "watch the parent process, a test, instead of the command (abi/test_watch.h)"},

    // ---- The verbs sanitizer ----
    {"sanitize", kMaybeText, "RULE,...|all|-RULE", kRun | kUp | kExplore, kFindMisuse, kAlways,
     "report wrong uses of verbs, and exit with status 1 if one is an error; RULE,... checks only "
     "these rules, all checks every rule, and -RULE,... checks the default rules except these "
     "(docs/sanitizer.md)"},
    {"sanitize-report", kText, "FILE", kRun | kUp, kFindMisuse, kAlways,
     "write the reports to FILE, whose name ends in .json, .sarif (for GitHub code scanning) or "
     ".xml (JUnit)"},
    {"sanitize-suppressions", kText, "FILE", kRun | kUp | kExplore, kFindMisuse, kInHelpAll,
     "suppress the reports that match a line RULE:PATTERN of FILE; PATTERN is a part of a "
     "function's, file's or library's name in the stacks of the report"},
    {"sanitize-trap", kText, "RULE", kRun | kUp, kFindMisuse, kInHelpAll,
     "raise SIGTRAP in the thread that violates RULE, for a debugger"},

    // ---- Options that only `rocemu explore` has ----
    {"list", kSwitch, "", kExplore, kChooseFaults, kAlways,
     "print the faults to try, with their rules, and exit"},
    {"only", kText, "KIND,...", kExplore, kChooseFaults, kAlways,
     "try faults only at points of KIND: verbs, work_requests, completions, frames, requests, cm, "
     "cm_events or events; KIND:NAME selects fewer: verbs:reg_mr, completions:RECV, cm:REQ"},
    {"process", kText, "NAME,...", kExplore, kChooseFaults, kAlways,
     "try faults only in processes with these names, such as server, or server#2 for the second "
     "process of that name"},
    {"random", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N combinations of several faults, chosen by --seed"},
    {"schedules", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N schedules of the threads and the NIC (rocemu run --schedule), chosen by --seed, to "
     "find races; each finding is reduced to the fewest preemptions"},
    {"adversarial", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N seeds for each class of rocemu run --adversarial, beginning with --seed, to find "
     "programs that rely on more than the specification promises; each finding is reduced to the "
     "choices that the failure needs"},
    {"depth", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "if N is 2, also try a second fault at points that the program reaches only after a first "
     "fault (default 1)"},
    {"table", kSwitch, "", kExplore, kChooseFaults, kInHelpAll,
     "print the faults that are realistic at each kind of point, and exit"},
    {"fail-on", kText, "VERDICT,...", kExplore, kJudgeRuns, kAlways,
     "exit with status 1 for findings with these verdicts: hang, crash, wrong, misuse (the default "
     "is these four), leak, slow, or none"},
    {"known", kText, "FILE", kExplore, kJudgeRuns, kAlways,
     "do not fail for findings that are in FILE, the report.json of an earlier exploration"},
    {"compare", kTexts, "FILE", kExplore, kJudgeRuns, kAlways,
     "also compare the output file FILE with the baseline's; explore removes FILE before each run "
     "and makes one run at a time; may be repeated"},
    {"oracle", kText, "COMMAND", kExplore, kJudgeRuns, kAlways,
     "run this shell command after each successful run, and call the run WRONG if the command "
     "fails; $ROCEMU_RUN is a directory with the run's stdout, stderr and events.jsonl"},
    {"repeat", kNumber, "N", kExplore, kJudgeRuns, kInHelpAll,
     "repeat each finding N times to confirm it (default 2)"},
    {"slow", kText, "K", kExplore, kJudgeRuns, kInHelpAll,
     "call a run SLOW if, in virtual time, it takes more than K times as long as the baseline "
     "(default 10) and more than 30 s longer"},
    {"run-timeout", kText, "TIME", kExplore, kJudgeRuns, kInHelpAll,
     "call a run HANG if it does not end within TIME of real time (default 20s)"},
    {"output", kText, "DIR", kExplore, kDivideWork, kAlways,
     "write findings and reports to DIR (default rocemu-findings)"},
    {"budget", kText, "TIME", kExplore, kDivideWork, kAlways,
     "stop exploring after TIME, such as 10m; the report lists the faults that remain"},
    {"jobs", kNumber, "N", kExplore, kDivideWork, kAlways,
     "make N runs at a time (default: one per processor); use 1 if runs of the command share a file"},
    {"resume", kSwitch, "", kExplore, kDivideWork, kAlways,
     "continue the interrupted exploration in the directory of --output"},
    {"force", kSwitch, "", kExplore, kDivideWork, kAlways,
     "replace the earlier exploration in the directory of --output"},
    {"shard", kText, "I/N", kExplore, kDivideWork, kAlways,
     "try only part I of N of the faults; `rocemu explore merge DIR...` combines the parts"},
    {"all-processors", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "let each run use all processors, which is slower; needed by programs that behave differently "
     "on one processor"},
    {"real-clock", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "run on the real clock instead of in lockstep"},
    {"shared-network", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "make one run at a time, in the machine's network namespace; by default, runs are parallel, "
     "each in a new network namespace"},

    // ---- Options that only rocemud has ----
    {"dir", kText, "DIR", kDaemon, kServe, kAlways,
     "create this runtime directory (mode 0700); required"},
    {"ready-fd", kText, "FD", kDaemon, kServe, kAlways,
     "write \"ready\\n\" to descriptor FD when programs can connect, or \"error: \" and the reason "
     "if the daemon cannot start"},
    {"lifetime-fd", kText, "FD", kDaemon, kServe, kAlways,
     "exit when descriptor FD, a pipe or socket, reaches end of file; also end the programs if FD "
     "reaches it without having received a byte; ignore SIGINT"},
    {"run-pid", kText, "PID", kDaemon, kServe, kAlways,
     "treat the descendants of process PID as the programs of the run"},
    {"capture-fd", kText, "N", kDaemon, kServe, kAlways,
     "write the capture to descriptor N; the FILE of --capture is then only the name that messages "
     "show"},
    {"scenario-fd", kText, "N", kDaemon, kServe, kAlways,
     "read the scenarios from descriptor N; the FILEs of --scenario are then only the names that "
     "messages show"},
    {"report-stuck", kSwitch, "", kDaemon, kServe, kAlways,
     "keep the latest frames and completions for the report of a hang; with --lockstep, send "
     "SIGURG to the process of --run-pid in a deadlock"},

    {"sanitizer", kText, "DIR", kDaemon, kServe, kAlways,
     "check the sanitizer rules that the file DIR/rules names, and write findings to DIR/log"},

    // ---- Others ----
    {"json", kSwitch, "", kUp | kExplore, kOther, kAlways, "print JSON"},
    {"log-level", kText, "LEVEL", kEvery, kOther, kAlways,
     "log the daemon's messages of this level and above on standard error: trace, debug, info, warn "
     "(default), error or off"},
    {"version", kSwitch, "", kDaemon, kOther, kAlways, "print the version"},
    {"help", kSwitch, "", kDaemon, kOther, kAlways, "print this help"},
};
// clang-format on

}  // namespace

std::span<const Option> option_table() {
  return kOptions;
}

}  // namespace rocemu::options
