"""Runs programs and measures their costs; computes medians of alternating rounds."""
import os
import pathlib
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = SOURCE / "build" / "release"
BIN = BUILD / "bin"
WITHOUT_FAULTS = SOURCE / "build" / "release-without-faults"
ROCEMU = str(BIN / "rocemu")
TIMEOUT = 300  # seconds, far longer than any program takes

os.environ["ROCEMU_BIN"] = str(BIN)
sys.path.insert(0, str(SOURCE / "tests" / "system"))
from rocemu import CM_PAIR, PAIR, free_port  # noqa: E402  (the module needs ROCEMU_BIN)


class Failed(Exception):
    """Raised if a measured program failed."""


def start(*command, **keywords):
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                            **keywords)


def finish(process):
    """Waits for the process and returns its output. When this returns or raises, the process has ended."""
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failed(f"{process.args} took too long:\n{process.communicate()[0]}") from None
    if process.returncode != 0:
        raise Failed(f"{process.args} failed:\n{output}")
    return output


def run(*command, **keywords):
    return finish(start(*command, **keywords))


def both(server, client, wait=0.3, **keywords):
    """Runs a server and its client, and returns the client's output. For servers that do not show whether they
    already listen."""
    serving = start(*server, **keywords)
    try:
        time.sleep(wait)
        output = run(*client, **keywords)
        finish(serving)
        return output
    finally:
        serving.kill()


def seconds(*command, **keywords):
    before = time.monotonic()
    run(*command, **keywords)
    return time.monotonic() - before


class ProcessorTime:
    """Measures the processor time, in seconds, of the processes that end inside the `with` block."""

    def __enter__(self):
        self._before = self._now()
        self.seconds = 0.0
        return self

    def __exit__(self, *_):
        self.seconds = self._now() - self._before

    @staticmethod
    def _now():
        times = os.times()
        return times.children_user + times.children_system


def median_of(values):
    """Returns the median of numbers, or of dicts of numbers the median for each key."""
    if isinstance(values[0], dict):
        return {key: statistics.median(value[key] for value in values) for key in values[0]}
    return statistics.median(values)


def medians(rounds, **measures):
    """Returns the medians of several measurements. Each round runs all of them in turn, so that a machine whose
    speed drifts affects all equally."""
    results = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            results[name].append(measure())
    return {name: median_of(values) for name, values in results.items()}
