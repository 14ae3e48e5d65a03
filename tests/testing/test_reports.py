"""Tests reports of misuses of verbs as values: with rocemu.Fabric, with the pytest plugin, and with the
C++ Fabric in a run."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

BUILD = pathlib.Path(os.environ["ROCEMU_BUILD"])
sys.path.insert(0, str(BUILD / "share" / "rocemu" / "python"))
import rocemu  # noqa: E402

WRONG = BUILD / "bin" / "sanitizer" / "mr_deregistered_in_use"
RIGHT = BUILD / "bin" / "sanitizer" / "mr_deregistered_in_use_right"
BAD_END = BUILD / "bin" / "sanitizer" / "bad_end"
TIMEOUT = 300


class Fabric(unittest.TestCase):
    def test_reports_are_dataclasses_with_what_the_json_has(self):
        for clock in ("real", "lockstep"):
            with self.subTest(clock), rocemu.Fabric(sanitize=True, clock=clock) as fabric:
                self.assertEqual(fabric.run([RIGHT]).returncode, 0)
                self.assertEqual(fabric.reports(), [])
                self.assertEqual(fabric.run([WRONG]).returncode, 0)
                report, = fabric.reports()
                self.assertEqual((report.rule, report.severity, report.process, report.count),
                                 ("mr-deregistered-in-use", "error", "mr_deregistered#2", 1))
                self.assertIn("while receive 1 on QP", report.message)
                posted, deregistered = report.places
                self.assertEqual((posted.what, posted.call), ("posted", "ibv_post_recv"))
                self.assertGreaterEqual(deregistered.time, posted.time)
                self.assertEqual(deregistered.stack[0].function, "main")
                self.assertTrue(deregistered.stack[0].file.endswith("mr_deregistered_in_use.c"))
                self.assertIn("ibv_dereg_mr", str(report))

    def test_reports_are_there_while_the_program_runs_and_when_the_fabric_is_closed(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            program = fabric.popen([BAD_END, "wait"], stdin=subprocess.PIPE)
            self.addCleanup(program.stdin.close)
            while not fabric.reports():
                self.assertIsNone(program.poll())
            self.assertEqual([one.count for one in fabric.reports()], [1])
        self.assertEqual([one.rule for one in fabric.reports()], ["mr-deregistered-in-use"])

    def test_of_a_program_that_is_killed_in_the_middle_they_are_kept(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            self.assertEqual(fabric.run([BAD_END, "kill"]).returncode, -9)
            self.assertEqual([one.rule for one in fabric.reports()], ["mr-deregistered-in-use"])

    def test_of_processes_and_their_children(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            fabric.run(["sh", "-c", f"{WRONG} & {WRONG} & ({WRONG}) ; wait"])
            self.assertEqual([one.count for one in fabric.reports()], [3])

    def test_of_a_second_fabric_of_the_process_too(self):
        with rocemu.Fabric(sanitize=True) as first, rocemu.Fabric(sanitize=True) as second:
            second.run([WRONG])
            self.assertEqual([one.rule for one in second.reports()], ["mr-deregistered-in-use"])
            self.assertEqual(first.reports(), [])

    def test_of_programs_that_threads_of_the_test_start(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            threads = [threading.Thread(target=fabric.run, args=([WRONG],)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([one.count for one in fabric.reports()], [4])

    def test_a_million_repetitions_are_one_report(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            self.assertEqual(fabric.run([BAD_END, "repeat", "1000000"]).returncode, 0)
            self.assertEqual([(one.rule, one.count) for one in fabric.reports()],
                             [("refused-limit", 1000000)])

    def test_taken_reports_are_given_once_and_counted_from_then_on(self):
        with rocemu.Fabric(sanitize=True) as fabric:
            for times in (2, 1):
                for _ in range(times):
                    fabric.run([WRONG])
                self.assertEqual([one.count for one in fabric.take_reports()], [times])
                self.assertEqual(fabric.take_reports(), [])
            self.assertEqual([one.count for one in fabric.reports()], [3])

    def test_only_the_rules_that_are_asked_for_are_looked_for(self):
        for rules in ("cq-overrun", "-mr-deregistered-in-use", ["cq-overrun", "cq-too-small"]):
            with self.subTest(rules), rocemu.Fabric(sanitize=rules) as fabric:
                fabric.run([WRONG])
                self.assertEqual(fabric.reports(), [])

    def test_an_unknown_rule_is_an_error_that_names_the_one_that_was_meant(self):
        with self.assertRaisesRegex(rocemu.Error, "there is no rule 'cq-overun'; did you mean 'cq-overrun'"):
            rocemu.Fabric(sanitize="cq-overun")

    def test_a_report_file_that_cannot_be_written_is_an_error(self):
        with self.assertRaisesRegex(rocemu.Error, "cannot write --sanitize-report"):
            rocemu.Fabric(sanitize=True, options=["--sanitize-report", "/nowhere/r.json"])

    def test_suppressed_reports_are_none(self):
        with tempfile.NamedTemporaryFile("w", prefix="rocemu-") as file:
            file.write("mr-deregistered-in-use:post_receive\n")
            file.flush()
            with rocemu.Fabric(sanitize=True, options=["--sanitize-suppressions", file.name]) as fabric:
                fabric.run([WRONG])
                self.assertEqual(fabric.reports(), [])

    def test_without_the_option_reports_are_an_error(self):
        with rocemu.Fabric() as fabric:
            with self.assertRaisesRegex(rocemu.Error, "start it with --sanitize"):
                fabric.reports()


IN_RUN = f"""
import sys
sys.path.insert(0, {str(BUILD / "share" / "rocemu" / "python")!r})
import rocemu
with rocemu.Fabric.current() as outer:
    outer.run([{str(WRONG)!r}])
with rocemu.Fabric(sanitize=True) as fabric:
    assert fabric.reports() == []
    fabric.run([{str(WRONG)!r}])
    assert [one.count for one in fabric.reports()] == [1]
"""


class InRun(unittest.TestCase):
    @staticmethod
    def rocemu_run(*words, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
        return subprocess.run([BUILD / "bin" / "rocemu", "run", *words], text=True, check=False,
                              env={**environment, **variables}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT)

    def test_a_fabric_has_the_reports_since_it_was_made(self):
        result = self.rocemu_run("--lockstep", "--sanitize", "--", "/usr/bin/python3", "-c", IN_RUN)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("This was found 2 times.", result.stdout)
        self.assertNotIn("Traceback", result.stdout)

    def test_a_run_that_looks_for_no_misuse_is_an_error(self):
        result = self.rocemu_run("--lockstep", "--", "/usr/bin/python3", "-c", IN_RUN)
        self.assertIn("give that `rocemu run` --sanitize", result.stdout)

    def test_of_c_plus_plus_in_lockstep(self):
        program = BUILD / "bin" / "testing_reports_tests"
        result = self.rocemu_run("--lockstep", "--sanitize", "--", program)
        self.assertIn("[  PASSED  ] 7 tests", result.stdout)
        result = self.rocemu_run("--lockstep", "--", program)
        self.assertIn("give --sanitize to that `rocemu run`", result.stdout)

    def test_a_test_of_googletest_fails_that_does_not_take_its_reports(self):
        program = BUILD / "bin" / "testing_reports_tests"
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
        result = subprocess.run(
            [program, "--gtest_filter=*MakeATestFail*"], text=True, check=False,
            env={**environment, "ROCEMU_TEST_MISUSE": "1", "ROCEMU_COMMAND": str(BUILD / "bin" / "rocemu")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("[  FAILED  ] Reports.MakeATestFail", result.stdout)
        self.assertIn("error [mr-deregistered-in-use]: mr_deregistered#1", result.stdout)


TESTS = f"""
import pytest

def test_is_right(fabric):
    assert fabric.run(["{RIGHT}"]).returncode == 0

def test_is_wrong(fabric):
    assert fabric.run(["{WRONG}"]).returncode == 0

def test_expects_it(fabric):
    fabric.run(["{WRONG}"])
    assert [one.rule for one in fabric.take_reports()] == ["mr-deregistered-in-use"]

def test_a_program_that_it_leaves_is_wrong(fabric):
    import subprocess
    program = fabric.popen(["sh", "-c", "trap {WRONG} TERM; echo ready; read never"], text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == "ready\\n"

@pytest.mark.rocemu(sanitize="cq-overrun")
def test_looks_for_another_rule(fabric):
    fabric.run(["{WRONG}"])

@pytest.mark.rocemu(sanitize=False)
def test_looks_for_none(fabric):
    fabric.run(["{WRONG}"])

@pytest.mark.rocemu(sanitize=True)
def test_looks_always(fabric):
    fabric.run(["{WRONG}"])

def test_warns(fabric):
    fabric.run(["{WRONG.parent / 'qp_destroyed_in_use'}"])
"""


class Plugin(unittest.TestCase):
    def pytest(self, *options):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest: apt-get install python3-pytest")
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            project = pathlib.Path(scratch)
            (project / "conftest.py").write_text('pytest_plugins = ["pytest_rocemu"]\n')
            (project / "test_mine.py").write_text(TESTS)
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
            environment["PYTHONPATH"] = str(BUILD / "share" / "rocemu" / "python")
            environment["ROCEMU_COMMAND"] = str(BUILD / "bin" / "rocemu")
            return subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-rA", *options], cwd=project, text=True,
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT,
                check=False).stdout

    def test_an_error_fails_the_test_that_made_it_and_is_in_its_section(self):
        said = self.pytest("--rocemu-sanitize")
        for name in ("is_right", "expects_it", "looks_for_another_rule", "looks_for_none", "warns"):
            self.assertIn(f"PASSED test_mine.py::test_{name}", said)
        for name in ("is_wrong", "looks_always"):
            self.assertIn(f"FAILED test_mine.py::test_{name}", said)
        self.assertIn("rocemu --sanitize", said)
        self.assertRegex(said, r"error \[mr-deregistered-in-use\]: mr_deregistered#1 [^\n]*\n"
                               r"    posted  post_receive  [^\n]*pair.c:\d+  ibv_post_recv  at ")
        self.assertIn("warning [qp-destroyed-in-use]", said)

    def test_what_a_program_does_that_the_test_has_left_is_an_error_of_its_end(self):
        said = self.pytest("--rocemu-sanitize", "-k", "leaves")
        self.assertRegex(said, "(ERROR|FAILED) test_mine.py::test_a_program_that_it_leaves")

    def test_without_the_option_only_marked_tests_are_judged(self):
        said = self.pytest("-k", "not expects")
        self.assertIn("1 failed, 6 passed", said)
        self.assertIn("FAILED test_mine.py::test_looks_always", said)

    def test_rules_may_be_given(self):
        said = self.pytest("--rocemu-sanitize=cq-overrun", "-k", "not expects")
        self.assertIn("1 failed, 6 passed", said)

    def test_wrong_rules_are_named(self):
        self.assertIn("there is no rule 'cq-overun'; did you mean",
                      self.pytest("--rocemu-sanitize=cq-overun"))
        self.assertIn("put it behind the paths", self.pytest("--rocemu-sanitize", "test_mine.py"))


if __name__ == "__main__":
    unittest.main()
