"""Tests that explorations that are interrupted or divided finally have the same report."""
import json
import signal
import subprocess
import time
import unittest

from support import ROCEMU, TIMEOUT, VICTIM, ExploreTest

COMMAND = ["sh", "-c", f"{VICTIM} crashes; true"]


class TheSameReport(ExploreTest):
    def whole(self):
        report = self.report("--output", "whole", command=COMMAND, status=1)
        return self.without_folder(report)

    def without_folder(self, report):
        for finding in report["findings"]:
            finding["reproduce"] = ""
        return report

    def interrupted_by(self, number):
        whole = self.whole()
        process = self.start("--output", "part", "--jobs", "1", command=COMMAND)
        results = self.scratch / "part" / "results.jsonl"
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and (
                not results.exists() or results.read_text().count("\n") < 4):
            time.sleep(0.005)
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)
        if number == signal.SIGINT:
            self.assertEqual(process.returncode, 130, err)
            self.assertRegex(out, r"interrupted: \d+ faults were not tried \(verb \d+\).*; --resume "
                                  "continues from here")
        report = self.report("--output", "part", "--resume", command=COMMAND, status=1)
        self.assertEqual(self.without_folder(report), whole)

    def test_after_ctrl_c(self):
        self.interrupted_by(signal.SIGINT)

    def test_after_kill_9(self):
        self.interrupted_by(signal.SIGKILL)

    def test_for_any_number_of_jobs(self):
        whole = self.whole()
        for jobs in ("1", "3"):
            report = self.report("--output", "jobs" + jobs, "--jobs", jobs, command=COMMAND,
                                 status=1)
            self.assertEqual(self.without_folder(report), whole)

    def test_in_shards(self):
        whole = self.whole()
        for part in ("1", "2", "3"):
            self.explore("--shard", part + "/3", "--output", "part" + part, command=COMMAND)
        merged = subprocess.run([ROCEMU, "explore", "merge", "--json", "--output", "merged",
                                 "part1", "part2", "part3"], cwd=self.scratch,
                                env=self.environment, timeout=TIMEOUT, capture_output=True,
                                text=True, check=False)
        self.assertEqual(merged.returncode, 1, merged.stderr)
        self.assertEqual(self.without_folder(json.loads(merged.stdout)), whole)
        self.assertTrue((self.scratch / "merged" / "1" / "scenario.yaml").exists())


if __name__ == "__main__":
    unittest.main()
