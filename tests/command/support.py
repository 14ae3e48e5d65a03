"""Common parts of the tests of the command line."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
ROCEMU = str(BIN / "rocemu")
TIMEOUT = 240  # seconds, far longer than any command of the tests takes
PYTHON = [sys.executable, "-S", "-c"]


def wait_for(condition, what):
    """Waits until condition() is true, and returns its value."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited in vain for {what}")


def processes_naming(text):
    """Returns the PIDs of processes whose command line contains `text`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass  # it has ended
    return found


def sleepers(mark):
    """Returns the PIDs of processes whose command is `cat MARK`."""
    found = []
    for pid in processes_naming(mark):
        try:
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == f"cat\0{mark}\0".encode():
                found.append(pid)
        except OSError:
            pass  # it has ended
    return found


class Terminal:
    """A program that runs in a separate terminal."""

    def __init__(self, command, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        self.said = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def write(self, keys):
        os.write(self.fd, keys)

    def read(self):
        """Reads some output. Returns False at the end."""
        try:
            data = os.read(self.fd, 4096)
        except OSError:  # EIO: no program has the terminal open any more
            return False
        self.said += data.decode(errors="replace")
        return bool(data)

    def read_until(self, text):
        while text not in self.said:
            if not self.read():
                raise AssertionError(f"it ended without saying {text}: {self.said}")

    def finish(self):
        """Returns all output of the program, and its exit status."""
        while self.read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return self.said, os.waitstatus_to_exitcode(status)


def give_away(path):
    """Makes another user the owner. Skips the test if this user may not do that, for example as root of a user
    namespace that has no other user."""
    try:
        os.chown(path, 65534, 65534)
    except OSError as error:
        raise unittest.SkipTest(f"files cannot be given away: {error}") from error


class CommandTest(unittest.TestCase):
    """Each test has a separate runtime directory and must leave it empty, with no daemon."""

    def setUp(self):
        # The name is short, because it is part of the names of sockets.
        self.runtime = tempfile.mkdtemp(prefix="rc-")
        self.addCleanup(shutil.rmtree, self.runtime, ignore_errors=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="rc-scratch-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.base = os.path.join(self.runtime, "rocemu")
        self.shared = os.path.join(self.base, "shared")
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("ROCEMU_DIR", "LD_PRELOAD")}
        self.environment["XDG_RUNTIME_DIR"] = self.runtime

    def tearDown(self):
        # If rocemu was killed, its daemon ends by itself, and no process waits for that, so the test must.
        deadline = time.monotonic() + TIMEOUT
        while True:
            daemons = processes_naming(self.base + "/")
            left = os.listdir(self.runtime)
            if not (daemons or left) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        if daemons or left:
            subprocess.run([ROCEMU, "down"], env=self.environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
        self.assertEqual(daemons, [], "daemons are left")
        self.assertEqual(left, [], "files are left")

    def make_fifo(self):
        """Creates a FIFO on which readers wait for ever."""
        fifo = self.scratch / f"fifo-{time.monotonic_ns()}"
        os.mkfifo(fifo)
        self.addCleanup(os.close, os.open(fifo, os.O_RDWR))
        return str(fifo)

    def rocemu(self, *arguments, env=None, **keywords):
        keywords.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([ROCEMU, *map(str, arguments)], capture_output=True, text=True,
                              timeout=TIMEOUT, env={**self.environment, **(env or {})},
                              check=False, **keywords)

    def start(self, *arguments, env=None, **keywords):
        """Starts `rocemu` in the background."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([ROCEMU, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**self.environment, **(env or {})}, **keywords)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_python(self, code, *options, **keywords):
        """Runs `rocemu run` with a Python program, and returns the program's standard output."""
        result = self.rocemu("run", *options, "--", *PYTHON, code, **keywords)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def assert_one_line(self, result, status, *parts):
        """Checks that the command failed with this status, and that standard error is one line of rocemu that
        contains the parts."""
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Arocemu: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, result.stderr)

    def show(self, *arguments, **keywords):
        result = self.rocemu("show", "--json", *arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)
