"""Tests that an error that a program reports by its exit status counts, even if the shell or
another parent hides it."""
import json
import pathlib
import sys
import unittest

from support import VICTIM, ExploreTest

FAULT = "explore_victim#1's 1st reg_mr fails with ENOMEM"


class Statuses(ExploreTest):
    def verdict(self, *command, environment=()):
        self.environment.update(environment)
        code, out, err = self.explore("--json", "--force", "--only", "verbs:reg_mr", "--repeat", "1",
                                      command=command)
        self.assertIn(code, (0, 1), out + err)
        report = json.loads(out)
        [result] = [one for one in report["results"] if one["fault"] == FAULT]
        return result["verdict"], result["detail"]

    def shell(self, script, verdict):
        with self.subTest(script):
            found, detail = self.verdict("sh", "-c", script.replace("V ", f"{VICTIM} "))
            self.assertEqual(found, verdict, detail)
            return detail

    def test_of_two_programs_each_counts(self):
        detail = self.shell("V reports & V survives; wait", "REPORTED")
        self.assertIn("explore_victim#1 exits with 1: cannot register memory", detail)
        # the fault occurs in the first program
        self.shell("V survives & V reports; wait", "SURVIVED")
        self.shell("V reports & p=$!; V survives; c=$?; wait $p && exit $c", "REPORTED")

    def test_of_a_pipeline_each_counts(self):
        self.shell("V reports | cat", "REPORTED")

    def test_of_a_program_under_timeout(self):
        self.shell("timeout 5 V reports & wait", "REPORTED")

    def test_of_a_program_that_a_shell_executes(self):
        self.shell("(exec V reports) & wait", "REPORTED")
        self.shell("exec V reports", "REPORTED")

    def test_of_an_orphan(self):
        self.shell("(V reports &); sleep 1", "REPORTED")

    def test_of_a_shell_that_ends_at_an_error(self):
        self.shell("set -e; V reports; V reports", "REPORTED")

    def test_of_a_child_that_a_program_forks(self):
        self.shell("V forks & wait", "REPORTED")

    def test_of_a_program_that_python_starts(self):
        script = "import subprocess, sys; subprocess.run(sys.argv[1:], check=False)"
        self.assertEqual(self.verdict(sys.executable, "-c", script, VICTIM, "reports")[0],
                         "REPORTED")

    def test_of_a_program_that_a_test_starts(self):
        test = pathlib.Path(self.scratch, "test_it.py")
        test.write_text("import subprocess, unittest\n"
                        "class It(unittest.TestCase):\n"
                        "    def test(self):\n"
                        f"        subprocess.run(['{VICTIM}', 'reports'], check=False)\n")
        self.assertEqual(self.verdict(sys.executable, "-m", "unittest", "-q", "test_it",
                                      environment={"PYTHONPATH": str(self.scratch)})[0], "REPORTED")

    def test_of_a_program_with_another_output(self):
        self.shell("V 'wrong and reports' & wait", "REPORTED")

    def test_of_a_program_that_hides_its_error(self):
        self.shell("V wrong & wait", "WRONG")

    def test_that_is_the_baselines_says_nothing(self):
        self.shell("V wrong & sh -c 'sleep 1; exit 3'; wait", "WRONG")
        self.shell("V reports & sh -c 'sleep 1; exit 3'; wait", "REPORTED")

    def test_a_signal_of_the_parent_says_nothing(self):
        self.shell("sleep 1000 & s=$!; V wrong; kill $s; wait $s; true", "WRONG")
        self.shell("sleep 1000 & s=$!; V reports; kill $s; wait $s; true", "REPORTED")

    def test_a_crash_stays_one_beside_a_report(self):
        self.shell("V crashes & sh -c 'sleep 1; exit 3'; wait", "CRASH")


if __name__ == "__main__":
    unittest.main()
