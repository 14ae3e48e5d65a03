#include "emulator/options/option_table.h"

namespace rocemu::options {
namespace {

constexpr Commands kRun = Command::kRun, kUp = Command::kUp, kExplore = Command::kExplore,
                   kDaemon = Command::kDaemon;
constexpr Commands kEvery = kRun | kUp | kExplore | kDaemon;
/// Options of a fabric that `rocemu explore` chooses for each run by itself.
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
     "emulate rocemu0 to rocemu(N-1), 1 to 250 devices (default 2)"},
    {"device", kTexts, "NAME[=ADDR,...|=IF][,profile=PROFILE]", kEvery, kChooseDevices, kAlways,
     "emulate a device of this name and these IP addresses, or those of the network interface IF "
     "(mlx5_0=eth0), instead of the default devices; may be repeated"},
    {"profile", kText, "NAME|FILE", kEvery, kChooseDevices, kAlways,
     "emulate the NIC that this profile describes: its identity, attributes, limits and known quirks "
     "(default generic; rocemu profile list; docs/profiles.md); `rocemu run --profile all` runs the "
     "command once with each"},
    {"topology", kText, "TOPOLOGY", kEvery, kChooseDevices, kAlways,
     "the machine that sysfs shows: pci (default), each device is a PCI function; flat, all are "
     "virtual as those of rxe; or a FILE with NUMA nodes, PCI switches and devices, or the name of "
     "one that comes with rocemu: 8-rails (docs/topology.md)"},
    {"udp", kSwitch, "", kNic, kChooseDevices, kAlways,
     "attach the devices to UDP port 4791 of their addresses, which must be this machine's, to "
     "reach other daemons, containers and hosts"},
    {"private", kSwitch, "", kRun, kChooseDevices, kAlways,
     "use a NIC of this run's own even if a shared one is up"},
    {"require-grh", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "refuse address vectors without a GRH, as RoCE hardware does"},
    {"same-keys", kSwitch, "", kEvery, kChooseDevices, kInHelpAll,
     "make L_Key and R_Key of a region equal, as most NICs do, for programs that confuse them"},
    {"strict-icrc", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "with --udp, check ICRCs over IPv4 with the IP header that came, which needs CAP_NET_RAW; "
     "without it one damaged frame in 65,536 passes"},
    {"keep-real-devices", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "show programs the machine's own RDMA devices, too; by default they see only the emulated "
     "ones"},
    {"mount-sysfs", kSwitch, "", kRun, kChooseDevices, kInHelpAll,
     "mount the NIC's sysfs on /sys, in a namespace, for programs that read it without the C "
     "library (in Go, static ones), and hide the machine's own RDMA devices from them"},
    {"busy-poll", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "let the daemon poll and never sleep: the shortest latency, for all of one processor; "
     "programs do the same with ROCEMU_POLL=spin in their environment"},
    {"exact-memory", kSwitch, "", kNic, kChooseDevices, kInHelpAll,
     "read each message when it is sent and write it when it arrives, as in lockstep; otherwise "
     "messages of up to 4 KiB are read when they are posted and written when the program polls, "
     "which halves their latency"},
    {"ack-coalescing", kText, "N", kEvery, kChooseDevices, kInHelpAll,
     "send one ACK for up to N messages that a QP posts in a row, 1 to 16 (default 16, and 1 in "
     "lockstep); 1 for a test that expects an ACK of each message"},

    // ---- Faults ----
    {"scenario", kTexts, "FILE|NAME", kNic, kCauseFaults, kAlways,
     "cause the faults that FILE describes (docs/scenarios.md), or those of the scenario NAME that "
     "comes with rocemu (rocemu scenarios); may be repeated"},
    {"adversarial", kMaybeText, "CLASS,...", kNic, kCauseFaults, kAlways,
     "do what the specification allows and real NICs rarely do, chosen by --seed: bytes that arrive "
     "out of order and late, messages that are read late, completions of different queues in any "
     "order; or only these classes: placement, late-read, undefined, order, atomicity, relaxed; "
     "CLASS:N:N does only the things with these numbers, which DIR/choices of --record lists "
     "(docs/adversarial.md)"},
    {"strict", kSwitch, "", kRun, kCauseFaults, kAlways,
     "fail if a rule of the scenario never acted, or the command prepared a device and posted nothing"},
    {"seed", kText, "N", kEvery, kCauseFaults, kAlways,
     "seed everything random (default 0; with --udp another seed at each start)"},

    // ---- Recordings ----
    {"capture", kText, "FILE", kNic, kRecordAndCompare, kAlways,
     "write every frame to FILE (pcap, for Wireshark and tshark). FILE may be a FIFO that has a "
     "reader, or - for standard output: --capture - ... | tshark -r -; a slow reader misses "
     "frames, and the end of the run reports how many"},
    {"record", kText, "DIR", kNic, kRecordAndCompare, kAlways,
     "record everything that happens in the directory DIR: `rocemu replay DIR` repeats it without "
     "the program, events.jsonl lists it line by line, and trace.pcap has the frames"},
    {"keep-on-failure", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "record the run in DIR, and keep the recording, its frames and the report of a hang if the "
     "exit status is not 0"},
    {"expect", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "fail if the run differs from the recording in DIR (with --lockstep)"},
    {"update", kSwitch, "", kRun, kRecordAndCompare, kAlways,
     "record the run in the DIR of --expect"},
    {"actual", kText, "DIR", kRun, kRecordAndCompare, kAlways,
     "with --expect, keep the recording of a run that differs in DIR; an equal run leaves nothing "
     "there"},
    {"snap-length", kText, "BYTES", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the first BYTES of each frame in the capture, and in the trace.pcap of --record; "
     "54 include everything up to the BTH"},
    {"capture-last", kText, "N", kNic, kRecordAndCompare, kInHelpAll,
     "keep only the last N frames in the capture, written when the NIC ends"},
    {"record-limit", kText, "SIZE", kNic, kRecordAndCompare, kInHelpAll,
     "end the recording when its journal has this size: 500k, 100M, 2G"},
    {"record-policy", kText, "POLICY", kNic, kRecordAndCompare, kInHelpAll,
     "when the disk is full or --record-limit reached: continue without recording (default), or "
     "stop the run"},
    {"no-trace", kSwitch, "", kRun, kRecordAndCompare, kNever,
     "do not write the trace.pcap of a recording"},

    // ---- Time ----
    {"lockstep", kSwitch, "", kNic, kMakeDeterministic, kAlways,
     "run all threads of all programs one at a time, on a virtual clock, which advances only when "
     "every thread waits: a run is the same each time, to the byte, however busy the machine is, "
     "and a retry limit of minutes is reached at once"},
    {"schedule", kText, "N", kNic, kMakeDeterministic, kAlways,
     "with --lockstep, run threads and the NIC by random priorities and preempt threads between "
     "calls of verbs, rdma_cm and locks, in another way for each N from 1 on (default 0: in start "
     "order, each until it waits); N:THREAD/CALL,... stops threads only there"},
    {"check-determinism", kText, "N", kRun, kMakeDeterministic, kAlways,
     "with --lockstep, run the command N times, some of them beside a load, and report where two "
     "runs first differ and which call caused it"},
    {"processor", kNumber, "N", kRun, kMakeDeterministic, kInHelpAll,
     "with --lockstep, keep the NIC and all programs on processor N, which is faster, since only "
     "one thread runs at a time; the programs still see all processors"},
    {"no-spin", kSwitch, "", kNic, kMakeDeterministic, kInHelpAll,
     "with --lockstep, sleep at once when a program has its turn, instead of spinning for up to "
     "50 us: slower, and less work for a busy machine"},

    // ---- Hangs ----
    {"timeout", kText, "TIME", kRun, kFindHangs, kAlways,
     "after TIME (90, 1.5s, 2m; real time) report what each thread waits for, end the programs, "
     "and exit with status 124"},
    {"stacks", kText, "FILE", kRun, kFindHangs, kAlways,
     "write the stacks of all threads into FILE if the programs hang, or those of a program that "
     "crashes (with --lockstep), by gdb or eu-stack"},
    {"report-failures", kSwitch, "", kRun | kDaemon, kFindHangs, kAlways,
     "with --lockstep, report every program that fails or is killed by a signal, even if its shell "
     "hides that"},
    {"poll-patience", kText, "TIME", kRun, kFindHangs, kInHelpAll,
     "how long a program may poll in vain, with nothing under way or due, before that is a "
     "deadlock (default 5s; real time)"},
    {"stacks-by", kText, "TOOL", kRun, kFindHangs, kInHelpAll,
     "gdb, which shows lines and arguments (default, if installed); eu-stack, which is faster and "
     "shows lines; or eu-stack-names, only functions"},
    {"cores", kSwitch, "", kRun | kExplore, kFindHangs, kInHelpAll,
     "write a core of each program that hangs or crashes, beside the file of --stacks or in the "
     "finding's folder; needs gdb"},
    {"call-sites", kText, "DIR", kRun, kFindHangs, kNever,
     "have each process write into DIR/PID a line for each call of a verb or of librdmacm, with a "
     "number for its call stack; DIR must be new or empty"},
    {"for-test", kText, "WATCH", kRun, kFindHangs, kNever,
     "watch the parent, a test, instead of the command (abi/test_watch.h)"},

    // ---- The verbs sanitizer ----
    {"sanitize", kMaybeText, "RULE,...|all|-RULE", kRun | kUp | kExplore, kFindMisuse, kAlways,
     "report wrong uses of verbs by the rules of docs/sanitizer.md, or by these only; exit with "
     "status 1 if there is an error"},
    {"sanitize-report", kText, "FILE", kRun | kUp, kFindMisuse, kAlways,
     "write the reports to FILE.json, FILE.sarif (for GitHub code scanning) or FILE.xml (JUnit)"},
    {"sanitize-suppressions", kText, "FILE", kRun | kUp | kExplore, kFindMisuse, kInHelpAll,
     "leave out reports that a line RULE:PATTERN of FILE describes; PATTERN is part of a function, "
     "file or library of the stacks"},
    {"sanitize-trap", kText, "RULE", kRun | kUp, kFindMisuse, kInHelpAll,
     "stop the thread that breaks RULE with SIGTRAP, for a debugger"},

    // ---- What only explore has ----
    {"list", kSwitch, "", kExplore, kChooseFaults, kAlways,
     "print the faults that would be tried, with their rules, and end"},
    {"only", kText, "KIND,...", kExplore, kChooseFaults, kAlways,
     "try faults only at these: verbs, work_requests, completions, frames, requests, cm, cm_events, "
     "events; with a name only at these of them: verbs:reg_mr, completions:RECV, cm:REQ"},
    {"process", kText, "NAME,...", kExplore, kChooseFaults, kAlways,
     "try faults only in these processes: server, or server#2"},
    {"random", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N mixtures of several faults, chosen by --seed"},
    {"schedules", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N schedules of the threads and the NIC (rocemu run --schedule), chosen by --seed: "
     "they find races, which are shrunk to the fewest preemptions"},
    {"adversarial", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "also try N seeds of each class of rocemu run --adversarial, from --seed on: they find programs "
     "that rely on more than the specification promises, and are shrunk to what the failure needs"},
    {"depth", kNumber, "N", kExplore, kChooseFaults, kAlways,
     "2: also try second faults at the points that only a first fault reaches"},
    {"table", kSwitch, "", kExplore, kChooseFaults, kInHelpAll,
     "print what can happen at each kind of point, and end"},
    {"fail-on", kText, "VERDICT,...", kExplore, kJudgeRuns, kAlways,
     "exit with status 1 for these verdicts (default hang,crash,wrong,misuse); also leak, slow, none"},
    {"known", kText, "FILE", kExplore, kJudgeRuns, kAlways,
     "do not fail for the findings of FILE, a report.json"},
    {"compare", kTexts, "FILE", kExplore, kJudgeRuns, kAlways,
     "compare FILE, which the command writes, with the baseline's. It is removed before each run; "
     "runs are made one at a time. May be repeated"},
    {"oracle", kText, "COMMAND", kExplore, kJudgeRuns, kAlways,
     "ask this shell command whether a run that succeeded was right; $ROCEMU_RUN is a directory "
     "with the run's stdout, stderr and events.jsonl"},
    {"repeat", kNumber, "N", kExplore, kJudgeRuns, kInHelpAll,
     "confirm each finding by N repetitions (default 2)"},
    {"slow", kText, "K", kExplore, kJudgeRuns, kInHelpAll,
     "call a run SLOW that takes K times the baseline, and 30 s longer (default 10)"},
    {"run-timeout", kText, "TIME", kExplore, kJudgeRuns, kInHelpAll,
     "call a run endless that has not ended after TIME of real time (default 20s)"},
    {"output", kText, "DIR", kExplore, kDivideWork, kAlways,
     "write findings and reports to DIR (default rocemu-findings)"},
    {"budget", kText, "TIME", kExplore, kDivideWork, kAlways,
     "end everything after TIME (10m); the report lists what was not tried"},
    {"jobs", kNumber, "N", kExplore, kDivideWork, kAlways,
     "make N runs at a time (default: one for each processor); 1 if runs of the command share a file"},
    {"resume", kSwitch, "", kExplore, kDivideWork, kAlways,
     "continue the interrupted exploration in DIR"},
    {"force", kSwitch, "", kExplore, kDivideWork, kAlways, "replace the exploration in DIR"},
    {"shard", kText, "I/N", kExplore, kDivideWork, kAlways,
     "make only the I-th part of N; rocemu explore merge DIR... puts them together"},
    {"all-processors", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "let each run use all processors: slower, for programs that notice that they have one"},
    {"real-clock", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "run on the real clock instead of in lockstep"},
    {"shared-network", kSwitch, "", kExplore, kMakeDeterministic, kInHelpAll,
     "run in the machine's network, one run at a time, instead of each in one of its own"},

    // ---- What only rocemud has ----
    {"dir", kText, "DIR", kDaemon, kServe, kAlways,
     "make this runtime directory (mode 0700); required"},
    {"ready-fd", kText, "FD", kDaemon, kServe, kAlways,
     "write \"ready\\n\" there when programs can connect, or \"error: ...\\n\""},
    {"lifetime-fd", kText, "FD", kDaemon, kServe, kAlways,
     "end at its end of file, and end the programs unless something was written first; SIGINT is "
     "ignored then"},
    {"run-pid", kText, "PID", kDaemon, kServe, kAlways,
     "the process whose descendants are the programs of the run"},
    {"capture-fd", kText, "N", kDaemon, kServe, kAlways,
     "the capture is open already, as descriptor N; the FILE of --capture is its name"},
    {"scenario-fd", kText, "N", kDaemon, kServe, kAlways,
     "the scenarios were read already: their text comes from descriptor N; each FILE of --scenario "
     "is the name of one"},
    {"report-stuck", kSwitch, "", kDaemon, kServe, kAlways,
     "keep the latest frames and completions, and with --lockstep send the process of --run-pid "
     "SIGURG when nothing can happen any more"},

    {"sanitizer", kText, "DIR", kDaemon, kServe, kAlways,
     "write what the NIC finds of the rules that DIR/rules names to DIR/log"},

    // ---- Others ----
    {"json", kSwitch, "", kUp | kExplore, kOther, kAlways, "print JSON"},
    {"log-level", kText, "LEVEL", kEvery, kOther, kAlways,
     "log what the daemon does on standard error: trace, debug, info, warn (default), error or off"},
    {"version", kSwitch, "", kDaemon, kOther, kAlways, "print the version"},
    {"help", kSwitch, "", kDaemon, kOther, kAlways, "print this help"},
};
// clang-format on

}  // namespace

std::span<const Option> option_table() {
  return kOptions;
}

}  // namespace rocemu::options
