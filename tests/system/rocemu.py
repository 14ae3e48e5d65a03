"""Common parts of the system tests: find programs and free ports, and run commands under `rocemu run`."""
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
ROCEMU = str(BIN / "rocemu")
PAIR = [sys.executable, str(HERE / "pair.py")]
CM_PAIR = [sys.executable, str(HERE / "cm_pair.py")]
TIMEOUT = 240  # seconds, far longer than any command of the tests takes
# perftest compares the processor's cycle counter with the clock before it reports results. It stops if their ratio
# varies, as on a busy machine. This does not depend on the NIC, so such a run is repeated.
NO_CLOCK = "Can't produce a report"


def has_virtual_cycles():
    """Returns whether the cycle counter has virtual time in lockstep for the programs of the test:
    docs/reference/lockstep.md."""
    program = BIN / "cycle_counter"
    return (not os.environ.get("ROCEMU_SANITIZE", "") and program.exists()
            and subprocess.run([program, "reads-fault"], capture_output=True, check=True).stdout == b"reads_fault 1\n")


_held_ports = []


def free_port():
    """Returns a port that no other program gets while this process lives: the port is bound here, without
    listening. A server that uses SO_REUSEADDR, such as ibv_rc_pingpong, can still bind it."""
    holder = socket.socket()
    holder.bind(("", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _held_ports.append(holder)
    return holder.getsockname()[1]


def run(*arguments, timeout=TIMEOUT, check=False, **keywords):
    """Runs a command like subprocess.run, with both outputs captured as one text. If the command takes too long,
    only its output is returned."""
    command = [str(argument) for argument in arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, **keywords) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for pid in [*descendants(process.pid), process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    kill(pid)
            print(f"took too long, having said:\n{process.communicate()[0]}", file=sys.stderr)
            raise
    result = subprocess.CompletedProcess(command, process.returncode, output)
    if check:
        result.check_returncode()
    return result


def descendants(pid):
    """Returns the PIDs of the processes that the process `pid` and its children started."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def rocemu_run(*command, options=(), prefix=(), **keywords):
    return run(*prefix, ROCEMU, "run", "--private", *options, "--", *command,
               **keywords)


def pingpong_pair(*arguments, server_device="rocemu0", client_device="rocemu0",
                  program="ibv_rc_pingpong", gid=True):
    """Returns the command that runs both sides of a pingpong."""
    port = str(free_port())
    common = [program, "-p", port, *(["-g", "0"] if gid else []), *arguments]
    return [*PAIR, port, *common, "-d", server_device, "--", *common, "-d", client_device,
            "localhost"]


def side_by_side(test, check, cases, at_once=6):
    """Calls check(case) for each case as a subtest, several at the same time. For programs that mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        checks = [(case, pool.submit(check, case)) for case in cases]
    for case, done in checks:
        with test.subTest(case):
            done.result()


class _Told(unittest.TestResult):
    """Records what a test reports to its result object."""

    def __init__(self):
        super().__init__()
        self.calls = []


for _name in ("startTest", "addSuccess", "addFailure", "addError", "addSkip", "addSubTest",
              "stopTest"):
    setattr(_Told, _name,
            lambda self, *arguments, _name=_name: self.calls.append((_name, arguments)))


class AtOnce(unittest.TestSuite):
    """Runs all its tests at the same time, which is possible because no class has fixtures and tests mostly wait.
    Used by load_tests."""

    def run(self, result, debug=False):
        def run_one(test):
            told = _Told()
            test.run(told)
            return told.calls
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
            for calls in pool.map(run_one, self.flat(self)):
                for name, arguments in calls:
                    getattr(result, name)(*arguments)
        return result

    def flat(self, suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from self.flat(test)
            else:
                yield test


def processes_of(needle):
    """Returns the PIDs of processes whose command line contains the text."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if needle in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode():
                    found.append(int(entry.name))
            except (OSError, UnicodeDecodeError):
                pass
    return found


def temporary_directory():
    return tempfile.TemporaryDirectory(prefix="rocemu-test-")


def kill(pid):
    os.kill(pid, signal.SIGKILL)
