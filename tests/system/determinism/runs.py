"""Runs a case in lockstep many times, half of the runs beside a load, and compares exit status, outputs,
recording and capture of all runs."""
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rocemu import ROCEMU, TIMEOUT, descendants, has_virtual_cycles, kill, temporary_directory  # noqa: E402

# The number of load processes: 2 unless many runs are requested, since other tests then run at the same time, some
# of them on the real clock.
LOAD = "4" if "ROCEMU_DETERMINISM_RUNS" in os.environ else "2"
# The time limit of a run in seconds. Some runs make thousands of connections.
PATIENCE = "200" if "ROCEMU_DETERMINISM_RUNS" in os.environ else "60"
# Recordings and reports contain these numbers, which the operating system chooses
PID = re.compile(rb'("pid":|\bpid |\bthread )\d+(, \d+)*')


class Load:
    """Processes that load the processors while any test needs a load."""

    def __init__(self):
        self._lock = threading.Lock()
        self._users = 0
        self._process = None

    @contextlib.contextmanager
    def __call__(self):
        with self._lock:
            if self._users == 0:
                self._process = subprocess.Popen(["stress-ng", "--quiet", "--cpu", LOAD])
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._process.terminate()
                    self._process.wait()


load = Load()


@dataclasses.dataclass
class Run:
    """The files that one run wrote, by name."""
    parts: dict
    seconds: float

    @property
    def failed(self):
        return self.parts["status"] != b"0"

    def story(self):
        return "\n".join(f"{name}: {self.parts[name].decode(errors='replace')}"
                         for name in ("status", "stdout", "stderr"))


def observe(directory, environment, over):
    """Sends requests to the NIC from outside, again and again, until the run has ended."""
    while not over.is_set():
        if not any((directory / "rocemu").glob("run-*")):
            over.wait(0.001)
            continue
        subprocess.run([ROCEMU, "show"], env=environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)


def run_once(case, directory, clock=("--lockstep",)):
    """Runs the case once and returns its Run. Leaves no files in the directory."""
    directory = pathlib.Path(directory)
    recording, capture = directory / "recording", directory / "capture.pcap"
    # The directory in which an observer finds the NIC. It is not below `directory`, since socket names must be
    # short.
    runtime = pathlib.Path(tempfile.mkdtemp(prefix="nic", dir="/dev/shm"))
    options = ["--private", "--timeout", PATIENCE, *clock, "--record", recording, *case.options]
    if case.captured:
        options += ["--capture", capture]
    if case.scenario:
        scenario = directory / "scenario.yaml"
        scenario.write_text(case.scenario)
        options += ["--scenario", scenario]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    over = threading.Event()
    observer = threading.Thread(target=observe, args=(runtime, environment, over))
    if case.observed:
        observer.start()
    begin = time.monotonic()
    with subprocess.Popen(list(map(str, [ROCEMU, "run", *options, "--", *case.command])),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment) as process:
        try:
            stdout, stderr = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            for pid in [*descendants(process.pid), process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    kill(pid)
            stdout, stderr = process.communicate()
    seconds = time.monotonic() - begin
    over.set()
    if case.observed:
        observer.join()
    parts = {"status": str(process.returncode).encode(), "stdout": stdout, "stderr": stderr}
    for path in (recording / "events.jsonl", recording / "trace.pcap", capture):
        with contextlib.suppress(FileNotFoundError):
            parts[path.name] = path.read_bytes()
    parts = {name: PID.sub(rb"\g<1>0", text) for name, text in parts.items()}
    if case.measures and not has_virtual_cycles():
        parts["stdout"] = parts["stderr"] = b"(not compared)"
    shutil.rmtree(runtime)
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Run(parts, seconds)


def difference(first, other):
    """Describes the first difference of two runs; returns "" if there is none."""
    differing = [name for name in sorted({*first.parts, *other.parts})
                 if first.parts.get(name) != other.parts.get(name)]
    if not differing:
        return ""
    words = [f"differ: {', '.join(differing)}"]
    for name in ("status", "stdout", "stderr", "events.jsonl"):
        if name in differing:
            lines = [run.parts.get(name, b"").decode(errors="replace").splitlines()
                     for run in (first, other)]
            number = next((i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1]),
                          min(map(len, lines)))
            words.append(f"{name}, line {number + 1}:")
            words += [f"  {run}: {part[number] if number < len(part) else '(no more)'}"
                      for run, part in zip(("first", "other"), lines)]
    return "\n".join(words)


def repeat(case, count, loaded=None):
    """Yields `count` runs. Half of them run beside a load; if `loaded` is given, all or none do."""
    with temporary_directory() as directory:
        for number in range(count):
            beside = number >= (count + 1) // 2 if loaded is None else loaded
            with load() if beside else contextlib.nullcontext():
                yield run_once(case, directory)


def assert_same(test, case, count):
    first = None
    for number, run in enumerate(repeat(case, count)):
        test.assertFalse(run.failed, f"run {number}: {run.story()}")
        first = first or run
        test.assertEqual(difference(first, run), "", f"run {number} of {case.name}")
