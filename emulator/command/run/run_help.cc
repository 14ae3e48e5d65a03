// The texts of `rocemu run --help` and --help-all.
#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/options/describe.h"

namespace rocemu::command {
namespace {

constexpr char kUsage[] =
    R"(usage: rocemu run [options] -- COMMAND [ARGUMENT...]

Runs COMMAND so that it, and every process it starts, sees emulated RDMA devices. Its
input, output and exit status are its own; but with --capture - its standard output goes
to standard error.

The NIC is a daemon of this one run. It is gone, with all its files, when COMMAND ends;
programs that COMMAND leaves in the background are named and ended then.
If `rocemu up` started a shared NIC, COMMAND joins that one instead, unless any of the
options below but --timeout, --poll-patience, --stacks and --mount-sysfs is given: each
of them asks for a NIC of its own.

)";

constexpr char kExitStatus[] =
    R"(
Exit status: that of COMMAND; 128+N if signal N ended it; 127 if there is no such
program, 126 if it cannot be executed; 124 after --timeout; 123 for a deadlock; 2 for
wrong usage; 1 if emulation failed, or if COMMAND succeeded and with --strict a rule
never acted, with --sanitize an error was found, with --expect the run was not as
expected, or with --check-determinism two runs differed.
)";

/// Only --help-all prints this text.
constexpr char kDetails[] =
    R"(
SIGTERM, SIGHUP, SIGINT and SIGQUIT are passed on to every program of the run, in whatever
process group or session. Programs that have not ended 2 s later are killed. If COMMAND
catches or ignores SIGINT or SIGQUIT, it decides whether it ends; a second one within 2 s
kills all.

A deadlock is found at once in lockstep, and on the real clock when the NIC has gone: every thread waits for another or for the NIC, and nothing is under way
there or due. rocemu reports what each thread waits for, and ends the programs. A thread that
sleeps for a time, or could be woken from outside (a terminal, a pipe, a connection, a
signal), is no deadlock; one that only polls is after 5 s, or --poll-patience.

In lockstep all processes and threads of a run go on one at a time in a fixed order: frames,
completions and outputs are the same to the byte each time. That covers dynamically linked
programs that wait by calls of the C library; docs/design/turns.md lists the limits.
)";

constexpr char kExamples[] =
    R"(
Examples:
  rocemu run -- ibv_devinfo -v
  rocemu run --devices 4 -- python3 -m pytest tests/rdma
  rocemu run --device mlx5_0=10.0.0.1 --device mlx5_1=10.0.0.2,fd00::2 -- ./my_test
  rocemu run --scenario rnr.yaml --strict -- ./my_test
  rocemu run --capture trace.pcap -- sh -c \
      'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 127.0.0.1'
  rocemu run --capture - -- ./my_test | tshark -r -
  rocemu run --lockstep --expect golden --actual failed -- ./my_test
  rocemu run --lockstep --check-determinism 10 -- ./my_test

If COMMAND sees no devices: rocemu doctor COMMAND
)";

std::string help_of_run(bool all) {
  return kUsage + options::help_of(options::Command::kRun, all) + kExitStatus +
         (all ? kDetails : "") + kExamples;
}

}  // namespace

std::string run_help() {
  return help_of_run(false);
}

std::string run_help_all() {
  return help_of_run(true);
}

}  // namespace rocemu::command
