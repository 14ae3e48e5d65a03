#include "emulator/options/option_table.h"

namespace rocemu::options {
namespace {

constexpr Commands kRun = Command::kRun, kUp = Command::kUp, kExplore = Command::kExplore,
                   kDaemon = Command::kDaemon;
constexpr Commands kEvery = kRun | kUp | kExplore | kDaemon;
/// The commands that have an option which `rocemu explore` sets itself for each run.
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
     "emulate N devices, rocemu0 to rocemu(N-1); 1 to 250 (default 2)"},
    {"device", kTexts, "NAME[=ADDR,...|=IF][,profile=PROFILE]", kEvery, kChooseDevices, kAlways,
     "emulate a device NAME with the IP addresses ADDR, or those of the network interface IF "
     "(mlx5_0=eth0), instead of the default devices; may be repeated"},
    {"profile", kText, "NAME|FILE", kEvery, kChooseDevices, kAlways,
     "emulate the NIC of this profile: its identity, attributes, limits and known quirks (default "
     "generic; see rocemu profile list and docs/profiles.md); `rocemu run --profile all` runs the "
     "command once with each profile"},
    {"topology", kText, "TOPOLOGY", kEvery, kChooseDevices, kInHelpAll,
     "choose what sysfs shows of the machine: pci (default) makes each device a PCI function, flat "
     "makes all devices virtual as with rxe; a FILE describes NUMA nodes, PCI switches and devices, "
     "and so does the installed file 8-rails (docs/topology.md)"},
    {"fabric", kText, "FILE|NAME", kEvery, kChooseDevices, kAlways,
     "with --lockstep, connect the devices by the simulated network that FILE describes, or by an "
     "installed one: star-16, leaf-spine-64, fat-tree-1024; one device for each host "
     "(docs/fabric.md)"},
    {"udp", kSwitch, "", kNic, kChooseDevices, kAlways,
     "send and receive frames on UDP port 4791 of the devices' addresses, which must be addresses "
     "of this machine, to reach other daemons, containers and hosts"},
    {"private", kSwitch, "", kRun, kChooseDevices, kAlways,
     "start a NIC for this run even if a shared one is up"},
    {"host", kText, "N|NAME", kRun, kChooseDevices, kInHelpAll,
     "show COMMAND only the device of this host; inside a run with --fabric, COMMAND joins that run"},
    {"require-grh", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "reject address vectors without a GRH, as RoCE hardware does"},
    {"same-keys", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "give each region equal L_Key and R_Key, as most NICs do, for programs that confuse them"},
    {"strict-icrc", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "with --udp, check ICRCs over IPv4 against the received IP header, which needs CAP_NET_RAW; "
     "without this option one damaged frame in 65,536 passes"},
    {"keep-real-devices", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "show programs the machine's own RDMA devices, too; by default they see only the emulated "
     "ones"},
    {"mount-sysfs", kSwitch, "", kRun, kChooseDevices, kInHelpAll,
     "mount the NIC's sysfs on /sys, in a mount namespace, for programs that read it without the C "
     "library (Go programs and static ones), and hide the machine's own RDMA devices from them"},
    {"busy-poll", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "make the daemon poll and never sleep: shortest latency, but uses one processor fully; "
     "ROCEMU_POLL=spin in the environment makes programs do the same"},
    {"exact-memory", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "read each message when it is sent and write it when it arrives, as in lockstep; without this "
     "option messages of up to 4 KiB are read when posted and written when the program polls, "
     "which halves their latency"},
    {"ack-coalescing", kText, "N", kEvery, kChooseDevices, kInHelpAll,
     "send one ACK for up to N messages that a QP posts in a row, 1 to 16 (default 16, in lockstep "
     "1); use 1 in a test that expects an ACK for each message"},

    // ---- Faults ----
    {"scenario", kTexts, "FILE|NAME", kNic, kCauseFaults, kAlways,
     "cause the faults that FILE describes (docs/scenarios.md), or those of the installed scenario "
     "NAME (rocemu scenarios); may be repeated"},
    {"adversarial", kMaybeText, "CLASS,...", kNic, kCauseFaults, kAlways,
     "do what the specification allows and real NICs rarely do, chosen by --seed: place bytes late "
     "and out of order, read messages late, reorder completions of different queues; CLASS limits "
     "this to placement, late-read, undefined, order, atomicity or relaxed; placement:1:7 makes only "
     "choices 1 and 7 of that class, which --record lists in DIR/choices (docs/adversarial.md)"},
    {"strict", kSwitch, "", kRun, kCauseFaults, kAlways,
     "fail if a rule of the scenario never acted, or if the command set up a device but posted nothing"},
    {"seed", kText, "N", kEvery, kCauseFaults, kAlways,
     "seed the random numbers of the NIC (default 0; with --udp a new seed at each start)"},

    // ---- Recordings ----
    {"capture", kText, "FILE", kNic, kRecordAndCompare, kAlways,
     "write every frame to FILE (pcap, for Wireshark and tshark); FILE can be a FIFO with a reader, "
     "or - for standard output (--capture - ... | tshark -r -); a slow reader misses frames, and "
     "rocemu reports how many at the end"},
    {"record", kText, "DIR", kNic, kRecordAndCompare, kAlways,
     "record the run in the directory DIR: `rocemu replay DIR` repeats it without the program, "
     "events.jsonl has one event per line, and trace.pcap has the frames"},
    {"keep-on-failure", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "record the run in DIR; keep the recording, its frames and the report of a hang only if the "
     "exit status is not 0"},
    {"expect", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "fail if the run differs from the recording in DIR (with --lockstep)"},
    {"update", kSwitch, "", kRun, kRecordAndCompare, kAlways,
     "record the run in the DIR of --expect, in place of the recording there"},
    {"actual", kText, "DIR", kRun, kRecordAndCompare, kInHelpAll,
     "with --expect, keep the recording in DIR if the run differs"},
    {"capture-port", kTexts, "PORT=FILE", kNic, kRecordAndCompare, kInHelpAll,
     "with --fabric, write the frames that leave PORT of the network to FILE (pcap), with the marks "
     "of switches: h0 is the port of a host, s1:3 port 3 of a switch; may be repeated"},
    {"snap-length", kText, "BYTES", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the first BYTES of each frame in the capture and in the trace.pcap of --record; 54 "
     "bytes include the BTH"},
    {"capture-last", kText, "N", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the last N frames in the capture, and write them when the NIC ends"},
    {"record-limit", kText, "SIZE", kNic, kRecordAndCompare, kInHelpAll,
     "end the recording when its journal reaches SIZE: 500k, 100M, 2G"},
    {"record-policy", kText, "POLICY", kNic, kRecordAndCompare, kInHelpAll,
     "when the disk is full or --record-limit is reached, continue without recording (continue, the "
     "default) or stop the run (stop)"},
    {"no-trace", kSwitch, "", kRun, kRecordAndCompare, kNever,
     "do not write the trace.pcap of a recording"},

    // ---- Time ----
    {"lockstep", kSwitch, "", kNic, kMakeDeterministic, kAlways,
     "run all threads of all programs one at a time, on a virtual clock that advances only when "
     "every thread waits: every run is the same to the byte, however busy the machine is, and "
     "minutes of retries take no real time"},
    {"schedule", kText, "N", kNic, kMakeDeterministic, kAlways,
     "with --lockstep, schedule threads and the NIC by random priorities and preempt threads between "
     "calls of verbs, rdma_cm and locks, differently for each N >= 1 (default 0: in start order, "
     "each until it waits); N:THREAD/CALL,... preempts only at these calls"},
    {"check-determinism", kText, "N", kRun, kMakeDeterministic, kAlways,
     "with --lockstep, run the command N times, sometimes under load, and report where two runs "
     "first differ and which call caused it"},
    {"processor", kNumber, "N", kRun, kMakeDeterministic, kInHelpAll,
     "with --lockstep, keep the NIC and all programs on processor N: faster, since only one thread "
     "runs at a time; programs still see all processors"},
    {"no-spin", kSwitch, "", kNic, kMakeDeterministic, kInHelpAll,
     "with --lockstep, make the daemon sleep at once during a program's turn, instead of spinning "
     "for up to 50 us: slower, but less work for a busy machine"},

    // ---- Hangs ----
    {"timeout", kText, "TIME", kRun, kFindHangs, kAlways,
     "after TIME of real time (90, 1.5s, 2m), report what each thread waits for, end the programs "
     "and exit with status 124"},
    {"stacks", kText, "FILE", kRun, kFindHangs, kAlways,
     "if the programs hang, or with --lockstep if one crashes, write the stacks of their threads to "
     "FILE; needs gdb or eu-stack"},
    {"report-failures", kSwitch, "", kRun | kDaemon, kFindHangs, kAlways,
     "with --lockstep, report every program that fails or is killed by a signal, even if its shell "
     "hides that"},
    {"poll-patience", kText, "TIME", kRun, kFindHangs, kInHelpAll,
     "report a deadlock when programs have polled without success for TIME, with no frame under way "
     "and no timeout due (default 5s of real time)"},
    {"stacks-by", kText, "TOOL", kRun, kFindHangs, kInHelpAll,
     "read stacks with gdb, which shows lines and arguments (default, if installed); eu-stack, "
     "which is faster and shows lines; or eu-stack-names, which shows only functions"},
    {"cores", kSwitch, "", kRun | kExplore, kFindHangs, kInHelpAll,
     "write a core dump of each program that hangs or crashes, next to the file of --stacks or in "
     "the finding's folder; needs gdb"},
    {"call-sites", kText, "DIR", kRun, kFindHangs, kNever,
     "write a line for each call of a verb or of librdmacm, with a number for its call stack, to "
     "DIR/PID of each process; DIR must be new or empty"},
    {"for-test", kText, "WATCH", kRun, kFindHangs, kNever,
     "watch the parent process, a test, instead of the command (abi/test_watch.h)"},

    // ---- The verbs sanitizer ----
    {"sanitize", kMaybeText, "RULE,...|all|-RULE", kRun | kUp | kExplore, kFindMisuse, kAlways,
     "report wrong uses of verbs by the default rules of docs/sanitizer.md, only by RULE, by all "
     "rules, or by the default rules except -RULE; exit with status 1 if one is an error"},
    {"sanitize-report", kText, "FILE", kRun | kUp, kFindMisuse, kAlways,
     "write the reports to FILE.json, FILE.sarif (for GitHub code scanning) or FILE.xml (JUnit)"},
    {"sanitize-suppressions", kText, "FILE", kRun | kUp | kExplore, kFindMisuse, kInHelpAll,
     "suppress reports that match a line RULE:PATTERN of FILE; PATTERN is part of the name of a "
     "function, file or library in the stacks"},
    {"sanitize-trap", kText, "RULE", kRun | kUp, kFindMisuse, kInHelpAll,
     "raise SIGTRAP in the thread that violates RULE, for a debugger"},

    // ---- What only explore has ----
    {"list", kSwitch, "", kExplore, kChooseFaults, kAlways,
     "print the faults that would be tried, with their rules, and exit"},
    {"only", kText, "KIND,...", kExplore, kChooseFaults, kAlways,
     "try faults only at points of KIND: verbs, work_requests, completions, frames, requests, cm, "
     "cm_events or events; KIND:NAME narrows it: verbs:reg_mr, completions:RECV, cm:REQ"},
    {"process", kText, "NAME,...", kExplore, kChooseFaults, kAlways,
     "try faults only in the processes NAME: server, or server#2 for the second one"},
    {"random", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N combinations of several faults, chosen by --seed"},
    {"schedules", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N schedules of the threads and the NIC (rocemu run --schedule), chosen by --seed, to "
     "find races; each finding is reduced to the fewest preemptions"},
    {"adversarial", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N seeds of each class of rocemu run --adversarial, beginning with --seed, to find "
     "programs that rely on more than the specification promises; each finding is reduced to what "
     "the failure needs"},
    {"depth", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "with N = 2, also try a second fault at the points that only a first fault reaches (default 1)"},
    {"table", kSwitch, "", kExplore, kChooseFaults, kInHelpAll,
     "print the faults that are realistic at each kind of point, and exit"},
    {"fail-on", kText, "VERDICT,...", kExplore, kJudgeRuns, kAlways,
     "exit with status 1 for findings with these verdicts: hang, crash, wrong, misuse (these four by "
     "default), leak, slow, or none"},
    {"known", kText, "FILE", kExplore, kJudgeRuns, kAlways,
     "do not fail for findings that FILE, an earlier report.json, lists"},
    {"compare", kTexts, "FILE", kExplore, kJudgeRuns, kAlways,
     "also compare FILE, which the command writes, with the baseline's FILE; it is removed before "
     "each run, and runs execute one at a time; may be repeated"},
    {"oracle", kText, "COMMAND", kExplore, kJudgeRuns, kAlways,
     "run this shell command after each run that succeeded; a nonzero status makes the run WRONG; "
     "the directory $ROCEMU_RUN has the run's stdout, stderr and events.jsonl"},
    {"repeat", kNumber, "N", kExplore, kJudgeRuns, kInHelpAll,
     "repeat each finding N times to confirm it (default 2)"},
    {"slow", kText, "K", kExplore, kJudgeRuns, kInHelpAll,
     "call a run SLOW if it takes K times as long as the baseline, and 30 s longer (default 10)"},
    {"run-timeout", kText, "TIME", kExplore, kJudgeRuns, kInHelpAll,
     "call a run HANG if it has not ended after TIME of real time (default 20s)"},
    {"output", kText, "DIR", kExplore, kDivideWork, kAlways,
     "write findings and reports to DIR (default rocemu-findings)"},
    {"budget", kText, "TIME", kExplore, kDivideWork, kAlways,
     "stop exploring after TIME, such as 10m; the report lists the faults that were not tried"},
    {"jobs", kNumber, "N", kExplore, kDivideWork, kAlways,
     "make N runs at a time (default: one per processor); use 1 if runs of the command share a file"},
    {"resume", kSwitch, "", kExplore, kDivideWork, kAlways,
     "continue the interrupted exploration in the DIR of --output"},
    {"force", kSwitch, "", kExplore, kDivideWork, kAlways,
     "replace the exploration in the DIR of --output"},
    {"shard", kText, "I/N", kExplore, kDivideWork, kAlways,
     "try only part I of N of the faults; `rocemu explore merge DIR...` combines the parts"},
    {"all-processors", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "let each run use all processors: slower, for programs that detect that they have only one"},
    {"real-clock", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "run on the real clock instead of in lockstep"},
    {"shared-network", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "make one run at a time, in the machine's network namespace, instead of parallel runs in new "
     "network namespaces"},

    // ---- What only rocemud has ----
    {"dir", kText, "DIR", kDaemon, kServe, kAlways,
     "create this runtime directory (mode 0700); required"},
    {"ready-fd", kText, "FD", kDaemon, kServe, kAlways,
     "write \"ready\\n\" to descriptor FD when programs can connect, or \"error: ...\\n\""},
    {"lifetime-fd", kText, "FD", kDaemon, kServe, kAlways,
     "end when descriptor FD reaches end of file; also end the programs unless a byte arrived "
     "before; ignore SIGINT"},
    {"run-pid", kText, "PID", kDaemon, kServe, kAlways,
     "take the descendants of process PID as the programs of the run"},
    {"capture-fd", kText, "N", kDaemon, kServe, kAlways,
     "write the capture to descriptor N; the FILE of --capture is only its name"},
    {"scenario-fd", kText, "N", kDaemon, kServe, kAlways,
     "read the scenarios from descriptor N; each FILE of --scenario is only a name"},
    {"report-stuck", kSwitch, "", kDaemon, kServe, kAlways,
     "keep the latest frames and completions; with --lockstep send SIGURG to the process of "
     "--run-pid in a deadlock"},

    {"sanitizer", kText, "DIR", kDaemon, kServe, kAlways,
     "check the sanitizer rules that DIR/rules names, and write findings to DIR/log"},

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
