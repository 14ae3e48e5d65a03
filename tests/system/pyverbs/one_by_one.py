#!/usr/bin/python3
"""Runs a copy of rdma-core's tests under `rocemu run`, each in a separate process with a time limit:
one_by_one.py DIRECTORY RESULTS LIMIT [TEXT...]

DIRECTORY holds the package `tests`. Appends a line to RESULTS for each test: result, ID, reason. If
there are TEXTs, runs only tests whose ID contains one of them. The output of a failed test goes to
standard error. This program does not fail if a test does.
"""
import ctypes
import importlib
import json
import multiprocessing
import os
import select
import signal
import sys
import traceback
import unittest

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def all_tests(suite):
    for member in suite:
        if isinstance(member, unittest.TestSuite):
            yield from all_tests(member)
        else:
            yield member


def load(directory):
    sys.path[:0] = [directory, os.path.join(directory, "tests")]
    sys.argv[1:] = []  # the tests would read these arguments as their own options
    importlib.import_module("args_parser").parser.parse_args()
    loader = unittest.TestLoader()
    for module in importlib.import_module("tests").__test_modules__:
        yield from all_tests(loader.loadTestsFromModule(module))


def outcome(test):
    """Runs the test in this process. Returns its result, the reason in one line, and the complete
    text."""
    if ".test_rdmacm." in test.id() and not os.path.exists("/dev/infiniband/rdma_cm"):
        # these tests would fail, since they do not check this
        return "SKIP", "no /dev/infiniband/rdma_cm", ""
    result = unittest.TestResult()
    try:
        test.run(result)
    except BaseException:  # every exception, even an exit, must become a line of the results
        result.errors.append((test, traceback.format_exc()))
    for name, those in (("ERROR", result.errors), ("FAIL", result.failures),
                        ("SKIP", result.skipped)):
        if those:
            story = those[0][1].strip()
            reason = story.splitlines()[-1] if story else ""
            return name, " ".join(reason.split()), story if name != "SKIP" else ""
    return "PASS", "", ""


def run_alone(test, limit):
    """Runs the test in a separate process group, and kills all processes of this group afterwards."""
    readable, writable = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.setpgid(0, 0)
        os.close(readable)
        os.write(writable, json.dumps(outcome(test)).encode()[:60000])
        os._exit(0)
    os.close(writable)
    # The child's end of the pipe closes when the child has written its result or died. But the
    # child's own children may keep it open.
    ready, _, _ = select.select([readable], [], [], limit)
    said = os.read(readable, 65536) if ready else b""
    os.close(readable)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not ready:
        return "TIMEOUT", f"still running after {limit} s", ""
    if not said:
        return "CRASH", f"wait status {status:#x}", ""
    return json.loads(said)


def main():
    directory, results, limit, *texts = sys.argv[1:]
    # These tests were written for the start method "fork", which was Python's default until 3.13.
    multiprocessing.set_start_method("fork")
    with open(results, "w", buffering=1) as lines:
        for test in load(directory):
            if texts and not any(text in test.id() for text in texts):
                continue
            result, reason, story = run_alone(test, float(limit))
            if story:
                print(f"== {test.id()}\n{story}", file=sys.stderr, flush=True)
            print(result, test.id(), reason, sep="\t", file=lines)


if __name__ == "__main__":
    main()
