"""Tests the pytest plugin: a passing test leaves no files, and a failing test leaves its recording and timeline."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ROCEMU_BUILD"])
TIMEOUT = 300
TESTS = """
import pytest

def pingpong(fabric, port):
    server = fabric.popen(["ibv_rc_pingpong", "-g", "0", "-d", "rocemu0", "-p", port])
    fabric.wait_listening(int(port))
    client = fabric.run(["ibv_rc_pingpong", "-g", "0", "-d", "rocemu1", "-p", port, "localhost"])
    return client.returncode, server

@pytest.mark.rocemu(clock="lockstep", scenario="rnr-recovers")
def test_passes(fabric):
    status, server = pingpong(fabric, "PORT1")
    assert (status, server.wait(60)) == (0, 0)
    assert fabric.rules()[0].fired == 6

@pytest.mark.rocemu(clock="lockstep", scenario="retry-exceeded")
def test_fails(fabric):
    assert pingpong(fabric, "PORT2")[0] == 0

def test_programs_end_with_the_nic(fabric):
    assert fabric.popen(["sleep", "1000"]).poll() is None

def test_nobody_listens(fabric):
    import rocemu
    fabric.popen(["false"])
    with pytest.raises(rocemu.Error, match="the programs ended"):
        fabric.wait_listening(1)
"""


def free_port():
    import socket
    with socket.socket() as holder:
        holder.bind(("", 0))
        return str(holder.getsockname()[1])


class Plugin(unittest.TestCase):
    def test_processes_of_xdist_do_not_meet(self):
        try:
            import xdist  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest-xdist: apt-get install python3-pytest-xdist")
        tests = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_each_has_a_nic(fabric, number):
    assert fabric.run(["ibv_devinfo", "-d", "rocemu1"]).returncode == 0
    fabric.add("{name: mine, on: cm, do: drop}")
    assert [rule.name for rule in fabric.rules()] == ["mine"]
    assert number != 5
"""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_many.py").write_text(tests)
            said = self.pytest(project, "-n", "4")
            self.assertIn("1 failed, 7 passed", said)
            kept = [one.name for one in (project / "rocemu-failed").iterdir()]
            self.assertEqual(kept, ["test_many.py_test_each_has_a_nic_5"])

    def test_a_test_runs_once_with_each_profile(self):
        tests = """
def test_shows_the_nic(fabric, rocemu_profile):
    shown = fabric.run(["ibv_devices"])
    assert shown.returncode == 0
    assert rocemu_profile != "qedr"
"""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_nics.py").write_text(tests)
            said = self.pytest(project, "--rocemu-profile", "mlx5-cx5", "--rocemu-profile", "qedr")
            self.assertIn("1 failed, 1 passed", said)
            self.assertIn("FAILED test_nics.py::test_shows_the_nic[qedr]", said)
            names = subprocess.run([BUILD / "bin" / "rocemu", "profile", "list", "--names"], text=True, check=True,
                                   stdout=subprocess.PIPE).stdout.split()
            self.assertIn(f"1 failed, {len(names) - 1} passed", self.pytest(project, "--rocemu-profile", "all"))
            self.assertIn("1 passed", self.pytest(project))

    def test_a_test_runs_once_with_each_scenario(self):
        tests = """
import pytest

def test_passes(fabric, rocemu_scenario):
    assert [rule.on for rule in fabric.rules()] == {None: [], "rtu-lost": ["cm"], "mine.yaml": ["frame"]}[rocemu_scenario]

@pytest.mark.parametrize("rocemu_scenario", ["rtu-lost"])
def test_has_its_own(fabric):
    assert fabric.rules()[0].on == "cm"

def test_has_no_nic():
    pass
"""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_faults.py").write_text(tests)
            (project / "mine.yaml").write_text("rules: [{on: frame, do: drop}]\n")
            self.assertIn("3 passed", self.pytest(project))
            said = self.pytest(project, "-vv", "--rocemu-scenario", "rtu-lost", "--rocemu-scenario", "mine.yaml")
            self.assertIn("4 passed", said)
            self.assertIn("test_passes[mine.yaml] PASSED", said)
            self.assertIn("6 passed", self.pytest(project, "--rocemu-scenario", "rtu-lost", "--rocemu-scenario",
                                                  "mine.yaml", "--rocemu-profile", "rxe", "--rocemu-profile", "qedr",
                                                  "-k", "passes or own"))

    def test_a_failed_test_shows_what_its_programs_printed(self):
        tests = """
import subprocess
import pytest
import rocemu

LOUD = ["sh", "-c", "echo the server is ready; echo an error >&2; exec sleep 1000"]

def test_wait_times_out(fabric):
    fabric.popen(LOUD, log=True)
    fabric.wait_listening(1, timeout=0.5)

def test_assertion(fabric):
    server = fabric.popen(LOUD, log=True)
    assert "ready" in fabric.wait_for_log(server, "an error")
    assert False

def test_check(fabric):
    server = fabric.popen(LOUD, log=True)
    fabric.wait_for_log(server, "an error")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        fabric.run(["false"], check=True)
    assert not hasattr(failed.value, "__notes__") or "the server is ready" in failed.value.__notes__[0]
    with pytest.raises(subprocess.TimeoutExpired):
        fabric.run(["sleep", "1000"], timeout=0.2)
    with pytest.raises(rocemu.Error, match="sh has not printed 'never' after 0.1 s(?s:.*)it runs(?s:.*)ready"):
        fabric.wait_for_log(server, "never", timeout=0.1)
    fabric.close()
    assert server.log() == "the server is ready\\nan error\\n"

def test_ended(fabric):
    quiet = fabric.popen(["true"], log=True)
    with pytest.raises(rocemu.Error, match=r"true ended without printing 'x'\\n.*ended with status 0"):
        fabric.wait_for_log(quiet, "x")
    with pytest.raises(rocemu.Error, match="is not kept"):
        fabric.popen(["true"]).log()
"""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_logs.py").write_text(tests)
            said = self.pytest(project, "-W", "error")
            self.assertIn("2 failed, 2 passed", said)
            self.assertRegex(said, r"no program listens at port 1 after 0.5 s\nE?\s*sh \(process \d+, it runs\) printed:"
                                   r"\nE?\s*the server is ready\nE?\s*an error")
            self.assertRegex(said, r"rocemu: output of sh-\d+ -+\nthe server is ready\nan error")
            [log] = (project / "rocemu-failed" / "test_logs.py_test_assertion").glob("*.log")
            self.assertEqual(log.read_text(), "the server is ready\nan error\n")

    def test_a_test_that_hangs_is_named_and_fails_with_the_report(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest: apt-get install python3-pytest")
        tests = """
import pytest

@pytest.mark.rocemu(clock="lockstep")
def test_waits(fabric):
    fabric.run(["rping", "-s", "-a", "127.0.0.1", "-p", "PORT"])

@pytest.mark.rocemu(timeout=1)
def test_takes_too_long(fabric):
    fabric.run(["sleep", "1000"])

def test_devices(fabric):
    assert fabric.run(["ibv_devices"]).returncode == 0
"""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_mine.py").write_text(tests.replace("PORT", free_port()))
            # With -W error, a warning that the plugin causes would be an error.
            said = self.pytest(project, "-W", "error")
            self.assertIn("2 failed, 1 passed", said)
            self.assertIn("FAILED test_mine.py::test_waits - rocemu.Hang: deadlock at", said)
            self.assertRegex(said, r"(?s)Hang: deadlock at .*waiting threads:.*rping.*"
                                   r"rdma_get_cm_event: event channel of .*listening")
            self.assertRegex(said, "FAILED test_mine.py::test_takes_too_long - rocemu.Hang: the time")

    @staticmethod
    def pytest(project, *options):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
        environment["PYTHONPATH"] = str(BUILD / "share" / "rocemu" / "python")
        environment["ROCEMU_COMMAND"] = str(BUILD / "bin" / "rocemu")
        return subprocess.run([sys.executable, "-m", "pytest", "-q", *options], cwd=project, text=True,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIMEOUT, check=False).stdout

    def test_what_fails_leaves_its_timeline(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest: apt-get install python3-pytest")
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_mine.py").write_text(
                TESTS.replace("PORT1", free_port()).replace("PORT2", free_port()))
            self.assertIn("1 failed, 3 passed", self.pytest(project))
            kept = project / "rocemu-failed"
            self.assertEqual([one.name for one in kept.iterdir()], ["test_mine.py_test_fails"])
            page = (kept / "test_mine.py_test_fails" / "timeline.html").read_text()
            self.assertIn("RETRY_EXC_ERR", page)
            self.assertTrue((kept / "test_mine.py_test_fails" / "recording" / "journal").exists())


if __name__ == "__main__":
    unittest.main()
