"""Tests the exploration of GoogleTest tests, with ROCEMU_EXPLORE."""
import json
import os
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, ExploreTest


class GoogleTest(ExploreTest):
    def run_tests(self, pattern, status):
        done = subprocess.run([os.environ["ROCEMU_EXPLORED_TESTS"], f"--gtest_filter={pattern}"],
                              cwd=self.scratch, timeout=TIMEOUT, text=True, check=False,
                              env={**self.environment, "ROCEMU_COMMAND": ROCEMU},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_one_that_copes_with_every_fault_passes(self):
        self.run_tests("Buffer.IsRegistered:Others.*", 0)
        report = json.loads((self.scratch / "rocemu-findings" / "Buffer_IsRegistered" /
                             "report.json").read_text())
        self.assertGreater(report["verdicts"]["REPORTED"], 0)

    def test_one_that_crashes_fails_and_says_how_to_repeat_it(self):
        said = self.run_tests("Buffer.IsBelievedToBeRegistered", 1)
        self.assertIn("CRASH explored_tests#1 received SIGSEGV after explored_tests#1's 1st reg_mr "
                      "fails with ENOMEM", said)
        self.assertIn("reproduce: rocemu run --lockstep --scenario "
                      "rocemu-findings/Buffer_IsBelievedToBeRegistered/1/scenario.yaml", said)

    def test_what_cannot_be_explored_throws(self):
        self.assertIn("uses no RDMA", self.run_tests("Explore.*", 0))


if __name__ == "__main__":
    unittest.main()
