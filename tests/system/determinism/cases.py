"""The cases that are run repeatedly. Each has a command, the options of its `rocemu run`, and what
happens at the same time."""
import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rocemu import BIN, CM_PAIR, PAIR, free_port, pingpong_pair  # noqa: E402

PROGRAMS = BIN / "determinism_programs"
BOTH = '"$@" & server=$!; "$@" localhost || exit; wait $server'


@dataclasses.dataclass
class Case:
    name: str
    subject: str
    command: list
    options: tuple = ()
    scenario: str = ""      # text of a scenario file
    captured: bool = True
    observed: bool = False  # `rocemu show` runs all the time, outside the run
    # uses the cycle counter: outputs are compared only if the counter has virtual time
    measures: bool = False


def program(subject, name, count=None, suffix="", **keywords):
    arguments = [name, *([] if count is None else [str(count)])]
    return Case("_".join(arguments) + suffix, subject, [PROGRAMS, *arguments], **keywords)


def vipl(mode):
    return ["sh", "-c", BOTH, "sh", BIN / "vipl_pingpong", "-m", mode, "-n", "30"]


def perftest(tool, *arguments):
    port = str(free_port())
    command = [tool, "-d", "rocemu0", "-p", port, "-F", *arguments]
    return [*PAIR, port, *command, "--", *command, "localhost"]


def cm_tool(server, client):
    """Returns the command of a server and its client. Both get the port in the place of PORT."""
    port = str(free_port())
    fill = [argument.replace("PORT", port) for argument in (*server, "--", *client)]
    return [*CM_PAIR, port, *fill]


UDADDY_PORT = "7174"  # udaddy uses no other port; each run has a separate NIC
FLAP = ("--scenario", "port-flap")
NO_DREP = "rules:\n- {on: cm, mad: DREP, do: drop}\n"

PROGRAM_CASES = [
    program("Opening", "open_after_fork", 2),
    program("Opening", "open_after_fork", 16),
    program("Opening", "open_after_exec", 8),
    program("Opening", "open_in_threads", 8),
    program("Opening", "open_in_a_tree", 2),
    program("Opening", "pairs_after_fork", 4),
    program("Opening", "execute_in_a_thread", 4),
    program("Opening", "fork_and_exec", 6),
    Case("shell_jobs", "Opening",
         ["sh", "-c", "for i in 1 2 3 4 5 6; do ibv_devinfo -d rocemu$((i % 2)) & done; wait"]),
    Case("xargs", "Opening",
         ["sh", "-c", f"seq 8 | xargs -P 8 -n 1 {PROGRAMS} open_one"]),

    program("Ends", "exit_with_messages_under_way"),
    program("Ends", "exit_with_messages_under_way", suffix="_port_flap", options=FLAP),
    program("Ends", "exit_with_a_receiver_not_ready"),
    program("Ends", "exit_connected", 4),
    program("Ends", "exit_after_disconnecting"),
    program("Ends", "exit_after_disconnecting", suffix="_no_drep", scenario=NO_DREP),
    program("Ends", "exit_in_a_thread", 4),
    program("Ends", "kill_a_connected_child"),
    program("Ends", "leave_an_orphan"),
    Case("pingpong_port_flap", "Ends", pingpong_pair("-n", "4"), options=FLAP),

    program("Polling", "poll_two_cqs"),
    program("Polling", "poll_two_cqs_of_processes"),
    program("Polling", "poll_two_cqs_of_processes", suffix="_observed", observed=True),
    program("Polling", "count_empty_polls"),
    program("Polling", "count_empty_polls", suffix="_observed", observed=True),

    program("EventLoops", "epoll_loop"),
    program("EventLoops", "epoll_loop", suffix="_observed", observed=True),
    program("EventLoops", "edge_triggered_loop"),
    program("EventLoops", "poll_loop"),
    program("EventLoops", "select_loop"),

    program("Threads", "create_in_threads", 2),
    program("Threads", "create_in_threads", 16),
    program("Threads", "connect_in_threads", 6),
    program("Threads", "conditions"),
    program("Threads", "contended_mutex"),
    program("Threads", "poll_under_a_lock"),
    program("Threads", "several_poll_under_a_lock"),
    program("Threads", "signals"),
    program("Threads", "signal_new_threads"),
    program("Threads", "alarm_after_threads"),
    Case("four_threads", "Threads", [BIN / "four_threads"]),
    *(Case(f"vipl_pingpong_{mode}", "Threads", vipl(mode)) for mode in ("poll", "wait", "notify")),

    program("Spinning", "spin_with_yield"),
    program("Spinning", "spin_with_pause"),
    program("Spinning", "spinning_barrier"),
    program("Spinning", "spin_beside_progress"),
    program("Spinning", "spin_on_writes"),
    program("Spinning", "spin_on_sends"),
    program("Spinning", "execute_beside_a_spinner"),
]

# Runs are the same only on a machine without other work: docs/reference/lockstep.md.
STREAM_CASE = program("EventLoops", "stream_over_tcp")


def stock_commands():
    """Returns cases with programs of other projects, with which the scenarios of the library are
    run."""
    rping = ["rping", "-a", "127.0.0.1", "-p", "PORT", "-C", "10"]
    ucmatose = ["ucmatose", "-p", "PORT"]
    rstream = ["rstream", "-p", "PORT", "-S", "64", "-C", "20"]
    return {
        "ibv_rc_pingpong_e": pingpong_pair("-e", "-n", "30"),
        "ib_send_bw_e": perftest("ib_send_bw", "-e", "-n", "50", "-s", "4096"),
        "rping": cm_tool([*rping, "-s"], [*rping, "-c"]),
        "ucmatose": cm_tool(ucmatose, [*ucmatose, "-s", "127.0.0.1"]),
        "udaddy": [*CM_PAIR, UDADDY_PORT, "udaddy", "--", "udaddy", "-s", "127.0.0.1"],
        "rstream": cm_tool(rstream, [*rstream, "-s", "127.0.0.1"]),
        **{f"vipl_pingpong_{mode}": vipl(mode) for mode in ("poll", "wait", "notify")},
    }


def by_name(names):
    return [case for case in PROGRAM_CASES if not names or any(name in case.name for name in names)]
