// The texts of `rocemu run --help` and --help-all.
#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/options/describe.h"

namespace rocemu::command {
namespace {

constexpr char kUsage[] =
    R"(usage: rocemu run [options] -- COMMAND [ARGUMENT...]

Runs COMMAND and gives it, and every process that it starts, emulated RDMA devices. COMMAND
keeps its input, output and exit status; only --capture - sends its standard output to
standard error.

A daemon emulates the NIC for this run. When COMMAND ends, rocemu removes the NIC with all
its files, and reports and ends the programs that COMMAND left in the background.

If a shared NIC is up (`rocemu up`), COMMAND uses it. All options except --timeout,
--poll-patience, --stacks and --mount-sysfs start a NIC for this run instead.

)";

constexpr char kExitStatus[] =
    R"(
Exit status: that of COMMAND, or 128+N if signal N killed it. Other statuses:
  1    emulation failed; or COMMAND succeeded, but --strict, --sanitize,
       --expect or --check-determinism found an error
  2    wrong usage
  123  a deadlock
  124  the time of --timeout is over
  126  COMMAND cannot be executed
  127  COMMAND does not exist
)";

/// This text is printed only by --help-all.
constexpr char kDetails[] =
    R"(
rocemu passes SIGTERM, SIGHUP, SIGINT and SIGQUIT on to every program of the run, in any
process group or session, and kills the programs that have not ended 2 s later. If COMMAND
catches or ignores SIGINT or SIGQUIT, it may continue; a second signal within 2 s kills all
programs.

In a deadlock every thread waits for another thread or for the NIC, and the NIC has no frame
under way and no timeout due. rocemu then reports what each thread waits for and ends the
programs. In lockstep it finds a deadlock at once; on the real clock, only after the NIC has
ended (use --timeout). A thread that sleeps for a time, or that something outside the run can
wake (a terminal, a pipe, a connection, a signal), is not in a deadlock. A thread that only
polls counts as waiting after 5 s, or the time of --poll-patience.

In lockstep all processes and threads of a run execute one at a time in a fixed order, so that
frames, completions and output are the same to the byte in each run. This works for
dynamically linked programs that wait in functions of the C library;
docs/reference/lockstep.md lists the limits.
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
