"""rocemu for test suites in Python: one file, the standard library and nothing else.

    import rocemu

    with rocemu.Fabric(clock="lockstep") as fabric:
        fabric.load("rules:\\n- {on: frame, opcode: SEND, nth: 3, do: drop}\\n")
        result = fabric.run(["./my_test"], capture_output=True, text=True, timeout=60)
        assert fabric.rules()[0].fired == 1
        assert fabric.counters("rocemu0")["retransmitted_frames"] > 0

    with rocemu.Fabric(sanitize=True) as fabric:
        fabric.run(["./my_test"])
        assert fabric.reports() == []  # of wrong uses of verbs (docs/sanitizer.md)

A Fabric is a NIC of its own, gone with all that it had when its `with` block, or this process, ends.
The programs that `run` and `popen` start see its devices. A test that uses libibverbs in its own
process runs under `rocemu run -- python3 -m pytest` instead, and asks for Fabric.current().

What is said to the NIC is docs/control.md; Fabric.request() says anything of it.

PYTEST_DONT_REWRITE: there is no assertion here, and pytest would warn if this was imported before.
"""
import collections
import contextlib
import ctypes
import dataclasses
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

Rule = collections.namedtuple("Rule", "name on matched fired")
Clock = collections.namedtuple("Clock", "kind held now next")  # times in seconds; next may be None


@dataclasses.dataclass
class Frame:
    """A function of a stack. Unknown strings are empty, and an unknown line is 0."""
    function: str
    file: str
    line: int
    module: str  # the program or library


@dataclasses.dataclass
class Place:
    """A call of a program, its place, and its time on the NIC's clock, in seconds."""
    what: str   # "posted"
    call: str   # "ibv_post_recv"
    time: float
    stack: list  # of Frames, the innermost first


@dataclasses.dataclass
class Report:
    """A wrong use of verbs. docs/sanitizer.md describes the rules."""
    rule: str
    severity: str  # "error" or "warning"
    message: str
    process: str   # "server#1"
    places: list   # of Places; the last is the mistake
    count: int     # how often it was found

    @classmethod
    def from_json(cls, report):
        places = [Place(**{**place, "stack": [Frame(**frame) for frame in place["stack"]]})
                  for place in report["places"]]
        return cls(**{**report, "places": places})

    def __str__(self):
        lines = [f"{self.severity} [{self.rule}]: {self.message}"]
        for place in self.places:
            frame = place.stack[0] if place.stack else Frame("", "", 0, "")
            where = f"{frame.file}:{frame.line}" if frame.line else frame.module
            lines.append(f"    {place.what}  {frame.function}  {where}  {place.call}  "
                         f"at {place.time:.3f} s")
        return "\n".join(lines)

    def _identity(self):
        """Returns a text that is equal for equal mistakes at the same places."""
        return repr((self.rule, self.process.rpartition("#")[0],
                     [(place.what, place.call, place.stack) for place in self.places]))


class Error(Exception):
    """The NIC refused a request, did not answer or could not be started; the text has the reason."""


class Hang(Error):
    """No program can continue, or the time limit of the Fabric is over; the text lists what each thread
    of the test and of its programs waits for. Raised in the main thread, whatever it executes."""


class _Watch:
    """Memory that the `rocemu run` that keeps our NIC shares with us (emulator/abi/test_watch.h), and
    the signal by which it reports a hang."""
    SIZE, THREADS, HEADER = 65536, 64, struct.Struct("=iII")

    def __init__(self):
        self.fd = os.memfd_create("rocemu-test-watch")
        os.ftruncate(self.fd, self.SIZE)
        self.memory = mmap.mmap(self.fd, self.SIZE)
        self.report_fd = os.dup(2)  # for what no exception can say
        self.lock = threading.Lock()
        # Only the main thread can install a signal handler in Python. Without one a hang ends the process.
        self.signal = signal.SIGABRT
        if threading.current_thread() is threading.main_thread():
            self.signal = signal.SIGRTMAX - 3
            self.before = signal.signal(self.signal, self.raise_hang)
        self.HEADER.pack_into(self.memory, 0, self.signal, 0, 0)

    def raise_hang(self, *_):
        _, _, length = self.HEADER.unpack_from(self.memory)
        begin = 16 + 4 * self.THREADS
        raise Hang(self.memory[begin:begin + length].decode(errors="replace"))

    def descriptors(self):
        return f"{self.fd},{self.report_fd}"

    def close(self):
        if self.signal != signal.SIGABRT:
            signal.signal(self.signal, self.before)
        self.memory.close()
        os.close(self.fd)
        os.close(self.report_fd)


def _nic_of_run():
    """Returns the NIC's directory of the `rocemu run` that this process is in, if the process takes turns there. Such a
    process cannot have a second virtual clock."""
    directory = os.environ.get("ROCEMU_DIR")
    takes_turns = hasattr(ctypes.CDLL(None), "rocemu_turns_on_crash")
    return directory if directory and takes_turns else None


def command():
    """Returns the `rocemu` to use: $ROCEMU_COMMAND, the one that was installed with this file, or the one in PATH."""
    here = pathlib.Path(os.path.abspath(__file__)).parents[3] / "bin" / "rocemu"
    for candidate in (os.environ.get("ROCEMU_COMMAND"), here, shutil.which("rocemu")):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Error("there is no rocemu: put it into PATH, or its name into ROCEMU_COMMAND")


def free_port():
    """Returns an unused TCP port, for a server that a test starts."""
    with socket.socket() as holder:
        holder.bind(("", 0))
        return holder.getsockname()[1]


Exploration = collections.namedtuple("Exploration", "status report")


def explore(arguments, output, *options, timeout=None):
    """`rocemu explore`: which faults break the command `arguments`. What it finds is put into the
    directory `output`, which an earlier exploration may have left. `options` are those of the
    command line, such as "--only", "verbs". Gives the exit status, 0 or 1 if there is a finding
    that counts, and the report as a dict; Error if the command cannot be explored."""
    result = subprocess.run(
        [command(), "explore", "--json", "--force", "--output", str(output), *options, "--",
         *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=timeout, check=False)
    try:
        return Exploration(result.returncode, json.loads(result.stdout))
    except json.JSONDecodeError:
        raise Error(result.stderr.strip()) from None


# ---- pytest: `pytest_plugins = ["rocemu"]` in conftest.py ------------------------------------------

def pytest_configure(config):
    config.addinivalue_line(
        "markers", "rocemu_explore(*options, output=None): run this test under a NIC, in a process "
        "of its own, and once more for each fault that can befall it (rocemu explore); it fails if "
        "one makes it hang or crash, or pass although what it prints is wrong")


def pytest_pyfunc_call(pyfuncitem):
    marker = pyfuncitem.get_closest_marker("rocemu_explore")
    if marker is None or os.environ.get("ROCEMU_EXPLORED"):
        return None  # pytest itself calls it
    name = pyfuncitem.nodeid
    output = marker.kwargs.get("output") or os.path.join(
        "rocemu-findings", "".join(c if c.isalnum() else "_" for c in name))
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    # Inside, the variable lets the test be an ordinary one.
    found = explore(["env", "ROCEMU_EXPLORED=1", sys.executable, "-m", "pytest", "-q", "-s", "-p",
                     "no:cacheprovider", "--rootdir", pyfuncitem.config.rootpath,
                     os.path.join(pyfuncitem.config.rootpath, name)],
                    output, *marker.args)
    if found.status != 0:
        raise AssertionError("\n" + "\n".join(
            f"{one['verdict']} {one['sentence']}\n  reproduce: {one['reproduce']}"
            for one in found.report["findings"]))
    return True


class Control:
    """The control socket of a NIC: one JSON object per line in each direction."""

    def __init__(self, directory, timeout=120):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(os.path.join(directory, "control"))
        except OSError as error:
            self.socket.close()
            raise Error(f"no NIC listens in {directory}: {error}") from error
        self.lines = self.socket.makefile("rb")

    def request(self, name, /, **arguments):
        """Returns the NIC's reply as a dict. Raises Error if the NIC refuses the request."""
        try:
            self.socket.sendall(json.dumps({"command": name, **arguments}).encode() + b"\n")
            line = self.lines.readline()
        except OSError as error:
            raise Error(f"the NIC does not answer '{name}': {error}") from error
        if not line:
            raise Error(f"the NIC ended before it answered '{name}'")
        reply = json.loads(line)
        if not reply.pop("ok"):
            raise Error(reply["error"])
        return reply

    def close(self):
        self.lines.close()
        self.socket.close()


class _Program(subprocess.Popen):
    """A process; the watch knows its waits as waits for a program, whatever their timeout."""

    def __init__(self, watch, *arguments, log=False, **keywords):
        self._watch, self._log, self._last_log = watch, None, None
        if log:
            self._log = tempfile.TemporaryFile()
            keywords["stdout"] = keywords["stderr"] = self._log
        super().__init__(*arguments, **keywords)

    @property
    def name(self):
        """The file name of the program."""
        arguments = [self.args] if isinstance(self.args, (str, bytes, os.PathLike)) else self.args
        return os.path.basename(os.fsdecode(arguments[0]))

    def log(self):
        """What the program has printed so far, on both outputs. Only for programs started with log=True."""
        if self._last_log is not None:
            return self._last_log
        if self._log is None:
            raise Error(f"the output of {self.name} is not kept: popen(log=True)")
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def _close_log(self):
        """Keeps what has been printed, without the file."""
        if self._log is not None:
            self._last_log = self.log()
            self._log.close()
            self._log = None

    @property
    def has_log(self):
        return self._log is not None

    @contextlib.contextmanager
    def _waiting(self):
        watch = self._watch
        if watch is None or watch.memory.closed:
            yield
            return
        thread, place = threading.get_native_id(), None
        places = struct.Struct(f"={watch.THREADS}i")
        with watch.lock:
            threads = places.unpack_from(watch.memory, 16)
            # A wait inside a wait, such as communicate() makes, counts as one.
            if thread not in threads and 0 in threads:
                place = threads.index(0)
                struct.pack_into("=i", watch.memory, 16 + 4 * place, thread)
        try:
            yield
        finally:
            if place is not None:
                struct.pack_into("=i", watch.memory, 16 + 4 * place, 0)

    def wait(self, timeout=None):
        with self._waiting():
            return super().wait(timeout)

    def communicate(self, input=None, timeout=None):
        with self._waiting():
            return super().communicate(input, timeout)


class Fabric:
    """A private NIC.

    devices: how many, or a list such as ["mlx5_0=10.0.0.1", "mlx5_1=10.0.0.2"].
    clock: "real" or "lockstep". scenario: a file, or the name of one that comes with
    rocemu, or a list of such. record: True, or a directory: needed for events(), capture() and
    timeline().
    profile: the NIC that the devices show, by its name or file (rocemu profile list).
    capture: a file for all frames. options: further ones of `rocemu run`.
    timeout: how long the Fabric may live, in real seconds, before that counts as a hang; else
    $ROCEMU_TIMEOUT ("90", "2m"), or without limit.
    sanitize: True, or rules ("cq-overrun", "-object-leaked", "all", or a list): reports() has the
    wrong uses of verbs.
    adversarial: True, or classes ("placement,order", or a list): the NIC does what the
    specification allows and NICs seldom do (docs/adversarial.md); seed chooses among it.

    A deadlock in lockstep, and the end of the timeout, raise Hang in the main thread.

    Under `rocemu run --lockstep` this is the NIC of that run, with its clock, its recording and its
    watch for hangs; what is asked for here and differs is an Error.
    """
    _is_joined = False

    def __init__(self, devices=None, clock="real", scenario=None, seed=None, record=False,
                 capture=None, options=(), timeout=None, sanitize=False, adversarial=False, profile=None):
        if clock not in ("real", "lockstep"):
            raise Error(f"clock={clock!r} is neither 'real' nor 'lockstep', which has the virtual clock")
        if profile is not None:
            options = [*options, "--profile", os.fspath(profile)]
        directory = _nic_of_run()
        if directory:
            self._join(directory, devices, scenario, seed, capture, options, sanitize, adversarial)
            return
        self._watch = _Watch()
        arguments = [command(), "run", "--private", f"--for-test={self._watch.descriptors()}"]
        if isinstance(devices, int):
            arguments += ["--devices", str(devices)]
        elif devices:
            arguments += [f"--device={device}" for device in devices]
        arguments += ["--lockstep"] if clock == "lockstep" else []
        several = isinstance(scenario, (list, tuple))
        for one in scenario if several else [scenario] if scenario else []:
            arguments += ["--scenario", os.fspath(one)]
        arguments += ["--seed", str(seed)] if seed is not None else []
        # A `rocemu run --keep-on-failure` around us has a place for recordings.
        is_kept = record is True and bool(os.environ.get("ROCEMU_KEEP"))
        self._scratch = (tempfile.TemporaryDirectory(prefix="rocemu-")
                         if record is True and not is_kept else None)
        self.recording = self._scratch.name if self._scratch else None if is_kept else record
        arguments += ["--record", os.fspath(self.recording)] if self.recording else []
        arguments += ["--capture", os.fspath(capture)] if capture else []
        limit = timeout if timeout is not None else os.environ.get("ROCEMU_TIMEOUT")
        arguments += ["--timeout", str(limit)] if limit else []
        for option, value in (("--sanitize", sanitize), ("--adversarial", adversarial)):
            if value:
                names = "" if value is True else value if isinstance(value, str) else ",".join(value)
                arguments.append(f"{option}={names}" if names else option)
        # It lives as long as the pipe to it is open: ours alone, so that it never outlives us.
        keeper = ["sh", "-c", 'echo "$ROCEMU_DIR"; echo "$LD_PRELOAD"; echo "$ROCEMU_SANITIZER_DIR"; '
                  "exec cat"]
        self._programs = []
        self._begin_reports()
        self._said = tempfile.TemporaryFile("w+")  # by the NIC, on standard error
        self._keeper = subprocess.Popen([*arguments, *options, "--", *keeper], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self._said,
                                        pass_fds=(self._watch.fd, self._watch.report_fd))
        self.directory = self._keeper.stdout.readline().rstrip("\n")
        preload = self._keeper.stdout.readline().rstrip("\n")
        self.environment = {"ROCEMU_DIR": self.directory, "LD_PRELOAD": preload}
        findings = self._keeper.stdout.readline().rstrip("\n")
        if findings:
            self.environment["ROCEMU_SANITIZER_DIR"] = findings
        self._control = None
        if not preload:
            try:
                self.close()
            except Error as error:
                raise Error(f"rocemu could not start a NIC: {error}") from None
            raise Error("rocemu could not start a NIC, and did not say why")
        try:
            self._control = Control(self.directory)
        except Error:
            self.close()
            raise
        if is_kept:
            self.recording = self.request("sync")["record"]

    def _join(self, directory, devices, scenario, seed, capture, options, sanitize, adversarial):
        self._take(directory)
        self._is_joined = True
        there = [device["name"] for device in self.show()["fabric"]["devices"]]
        wanted = (there if devices is None else [f"rocemu{n}" for n in range(devices)]
                  if isinstance(devices, int) else [one.partition("=")[0] for one in devices])
        unmet = (f"--device for each of {', '.join(wanted)} (it has {', '.join(there)})"
                 if wanted != there else "--seed" if seed is not None else
                 "--capture" if capture else "--adversarial" if adversarial else
                  "--sanitize" if sanitize and not self._is_sanitized() else " ".join(options))
        if unmet:
            self.close()
            raise Error("the test runs in a `rocemu run`, whose NIC this Fabric uses; give that "
                        f"`rocemu run` {unmet}")
        try:
            self.recording = self.request("sync")["record"]
        except Error:
            pass  # the run does not record
        if self._is_sanitized():  # what the run has found before is not ours
            self._before = self._taken = self._counts(self._all_reports())
        several = isinstance(scenario, (list, tuple))
        for one in scenario if several else [scenario] if scenario else []:
            injected = subprocess.run([command(), "inject", os.fspath(one)], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, check=False)
            if injected.returncode != 0:
                self.close()
                raise Error(injected.stderr.strip())

    def _take(self, directory):
        self.directory, self.environment = directory, {}
        self.recording = self._scratch = self._keeper = self._said = self._watch = None
        self._programs = []
        self._begin_reports()
        self._control = Control(directory)

    @classmethod
    def current(cls):
        """Returns the NIC under which this process runs, by `rocemu run`. Closing it has no effect on the NIC."""
        directory = os.environ.get("ROCEMU_DIR")
        if not directory:
            raise Error("this process has no NIC; start it by `rocemu run -- COMMAND`")
        fabric = cls.__new__(cls)
        fabric._take(directory)
        return fabric

    def close(self):
        """Ends the programs that popen() started and that still run, and then the NIC. Raises Error with the NIC's
        message if it had failed."""
        self._end_programs()
        if self._control is not None:
            if self._is_sanitized():
                self._last_reports = self._all_reports()
            if self._is_joined:
                self.clear()  # the run has the NIC on
            self._control.close()
            self._control = None
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.stdin.close()
            keeper.stdout.close()
            status = keeper.wait()
        if self._scratch is not None:
            self._scratch.cleanup()
        if keeper is None:
            return
        self._watch.close()
        with self._said:
            self._said.seek(0)
            said = self._said.read()
        if status != 0:
            raise Error(said.strip() or f"the NIC ended with status {status}")
        sys.stderr.write(said)

    def _end_programs(self):
        running = [program for program in self._programs if program.poll() is None]
        for program in running:
            program.terminate()
        deadline = time.monotonic() + 5
        for program in running:
            try:
                program.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        for program in self._programs:
            program._close_log()
        self._programs.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- Programs -------------------------------------------------------------------------------

    def _environment(self, env):
        return {**(os.environ if env is None else env), **self.environment}

    def run(self, arguments, env=None, input=None, capture_output=False, timeout=None, check=False,
            **keywords):
        """subprocess.run of a program that sees the devices. Raises Hang if no program can continue. If
        the time is over, or the program fails and `check` is true, the exception has the logs of the other
        programs as a note."""
        if input is not None:
            keywords["stdin"] = subprocess.PIPE
        if capture_output:
            keywords["stdout"] = keywords["stderr"] = subprocess.PIPE
        with self._start(arguments, env, keywords) as program:
            try:
                output, errors = program.communicate(input, timeout=timeout)
            except subprocess.TimeoutExpired as expired:
                program.kill()
                expired.output, expired.stderr = program.communicate()
                raise self._with_logs(expired)
            except BaseException as error:
                program.kill()
                raise self._with_logs(error) if isinstance(error, Hang) else error
        result = subprocess.CompletedProcess(program.args, program.returncode, output, errors)
        if check and result.returncode != 0:
            raise self._with_logs(subprocess.CalledProcessError(result.returncode, result.args, output, errors))
        return result

    def _logs(self, lines=40):
        """The last lines that the programs of popen(log=True) have printed, each with its state."""
        text = ""
        for program in self._programs:
            if not program.has_log:
                continue
            status = program.poll()
            state = "it runs" if status is None else f"it ended with status {status}"
            tail = program.log().splitlines()[-lines:] or ["(nothing)"]
            text += f"\n{program.name} (process {program.pid}, {state}) printed:\n" + "\n".join(
                f"    {line}" for line in tail)
        return text

    def _with_logs(self, error):
        """The exception, with the logs of the other programs as a note where Python has notes."""
        logs = self._logs().lstrip("\n")
        if logs and hasattr(error, "add_note"):
            error.add_note(logs)
        return error

    def _start(self, arguments, env, keywords):
        return _Program(self._watch, arguments, env=self._environment(env), **keywords)

    def popen(self, arguments, env=None, log=False, **keywords):
        """subprocess.Popen of a program that sees the devices. It ends with the NIC, at the latest. Its
        wait() and communicate() raise Hang if no program can continue.

        log: keep what the program prints, on both outputs. Its method log() returns that, and the errors
        of wait_listening(), wait_for_log() and run() show the end of it."""
        program = self._start(arguments, env, {**keywords, "log": log})
        self._programs.append(program)
        return program

    def wait_listening(self, port, timeout=30):
        """Waits until a program listens at the port, by rdma_listen(3) or by TCP. Raises Error after that
        time, or when all programs of popen() have ended."""
        deadline = time.monotonic() + timeout
        while not self.request("listening", port=port)["listening"]:
            if self._programs and all(one.poll() is not None for one in self._programs):
                statuses = ", ".join(str(one.returncode) for one in self._programs)
                raise Error(f"no program can listen at port {port}: the programs ended ({statuses}){self._logs()}")
            if time.monotonic() > deadline:
                raise Error(f"no program listens at port {port} after {timeout} s{self._logs()}")
            time.sleep(0.01)

    def wait_for_log(self, program, text, timeout=30):
        """Waits until a program of popen(log=True) has printed the text. Returns what it has printed so far.
        Raises Error after that time, or when the program has ended without printing it."""
        deadline = time.monotonic() + timeout
        while True:
            has_ended = program.poll() is not None
            log = program.log()
            if text in log:
                return log
            if has_ended:
                raise Error(f"{program.name} ended without printing {text!r}{self._logs()}")
            if time.monotonic() > deadline:
                raise Error(f"{program.name} has not printed {text!r} after {timeout} s{self._logs()}")
            time.sleep(0.01)

    # ---- The NIC as a whole -----------------------------------------------------------------------

    def set_port(self, device, up):
        """Plugs the cable of the device in, or pulls it out."""
        self.request("set", device=device, port="up" if up else "down")

    def remove_device(self, device):
        """Removes the device permanently."""
        self.request("set", device=device, removed=True)

    def pause(self):
        """Stops all frames until resume(). step() lets single frames arrive."""
        self.request("pause")

    def step(self, frames=1):
        """Lets this number of frames arrive. Returns for each the text, and the QPs before and after."""
        return self.request("step", frames=frames)["frames"]

    def resume(self):
        self.request("resume")

    def _of_recording(self, *options):
        """Returns the output of `rocemu timeline` for the recording so far."""
        if not self.recording:
            raise Error("that is made of a recording: Fabric(record=True)")
        self.request("sync")
        result = subprocess.run([command(), "timeline", os.fspath(self.recording), *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                check=False)
        if result.returncode != 0:
            raise Error(result.stderr.strip())
        return result.stdout

    def timeline(self, file):
        """Writes the recording so far as a page that any browser opens."""
        self._of_recording("--html", os.fspath(file))

    def capture(self, file):
        """Writes the recorded frames so far to a pcap file."""
        self._of_recording("--pcap", os.fspath(file))

    # ---- Faults ---------------------------------------------------------------------------------

    def request(self, name, /, **arguments):
        """Sends any request of docs/control.md. Returns the answer as a dict."""
        return self._control.request(name, **arguments)

    def load(self, scenario):
        """Adds all rules of a scenario, in YAML, to the present rules, and returns their names."""
        return self.request("inject", scenario=scenario)["rules"]

    def add(self, rule):
        """Adds one rule, such as '{on: frame, opcode: ACK, do: drop}', and returns its name."""
        return self.request("inject", rule=rule)["rules"][0]

    def clear(self, name=None):
        """Removes all rules, or one."""
        self.request("clear", **({} if name is None else {"name": name}))

    def rules(self):
        """Returns the rules in force, and for each how often it was matched and has acted."""
        return [Rule(**one) for one in self.request("rules")["rules"]]

    # ---- Wrong uses of verbs --------------------------------------------------------------------

    def _begin_reports(self):
        self._before, self._taken = {}, {}  # how often each was found before this Fabric, or taken
        self._last_reports = None           # when the Fabric is closed

    def _is_sanitized(self):
        try:
            return bool(self.request("sanitizer")["directory"])
        except Error:
            return False

    def _all_reports(self):
        if self._last_reports is not None:
            return self._last_reports
        if self._control is None:
            raise Error("reports need a NIC: Fabric(sanitize=True)")
        result = subprocess.run(
            [command(), "show", "--misuses", "--json", "--dir", self.directory],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Error(result.stderr.strip())
        return [Report.from_json(one) for one in json.loads(result.stdout)["reports"]]

    @staticmethod
    def _counts(reports):
        return {one._identity(): one.count for one in reports}

    @staticmethod
    def _since(reports, counts):
        more = [(one, one.count - counts.get(one._identity(), 0)) for one in reports]
        return [dataclasses.replace(one, count=count) for one, count in more if count > 0]

    def reports(self):
        """Returns the wrong uses of verbs so far, as Reports; also when the Fabric is closed. Those of a thread that
        waits forever are included when its process has ended."""
        return self._since(self._all_reports(), self._before)

    def take_reports(self):
        """Returns the reports since the last call, or since the beginning. The pytest plugin does not fail a test for
        reports that were taken."""
        reports = self._all_reports()
        taken, self._taken = self._taken, self._counts(reports)
        return self._since(reports, taken)

    # ---- Time -----------------------------------------------------------------------------------

    def _clock(self, reply):
        following = None if reply["next_ns"] is None else reply["next_ns"] / 1e9
        return Clock(reply["clock"], reply["held"], reply["now_ns"] / 1e9, following)

    def clock(self):
        """Returns the NIC's time, in seconds, and the time of the next event."""
        return self._clock(self.request("clock"))

    def hold(self, held=True):
        """Stops virtual time until advance(), or hold(False)."""
        return self._clock(self.request("clock", held=held))

    def advance(self, seconds):
        """Advances virtual time, and executes everything that is due until then."""
        return self._clock(self.request("advance", ns=round(seconds * 1e9)))

    def wait_until_idle(self, timeout=30):
        """Waits until nothing is in flight and no program waits for an answer. Raises Error after that time."""
        deadline = time.monotonic() + timeout
        while not self.request("idle")["idle"]:
            if time.monotonic() > deadline:
                raise Error(f"the NIC is not idle after {timeout} s")
            time.sleep(0.001)

    # ---- What there is and was ------------------------------------------------------------------

    def show(self):
        """Returns all objects, like `rocemu show --json`."""
        return self.request("show")

    def device(self, name):
        """Returns the part of show() about one device."""
        for device in self.show()["fabric"]["devices"]:
            if device["name"] == name:
                return device
        raise Error(f"there is no device '{name}'")

    def counters(self, device):
        return self.device(device)["counters"]

    def events(self, what=None, **fields):
        """Returns the events and frames of the recording so far that have that kind and these fields, as dicts:
        events("frame", opcode="RC Acknowledge")."""
        return [event for event in map(json.loads, self._of_recording("--events").splitlines())
                if what in (None, event["what"]) and
                all(event.get(key) == value for key, value in fields.items())]
