"""Tests explorations that end early, and findings that do not repeat."""
import json
import re
import signal
import time
import unittest

from support import TIMEOUT, VICTIM, ExploreTest


class EndsEarly(ExploreTest):
    def test_the_budget_bounds_the_whole_command(self):
        """The budget also holds if a run hangs, which could take four minutes by itself and be
        repeated."""
        begin = time.monotonic()
        report = self.report("--only", "verbs:reg_mr", "--jobs", "1", "--run-timeout", "240s",
                             "--budget", "20s", command=[VICTIM, "never ends"], status=0)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(report["stopped"], "the time of --budget is over")
        self.assertTrue(report["not_tried"])
        self.assertEqual(len(report["not_tried"]) + len(report["results"]), report["faults"])
        page = (self.scratch / "rocemu-findings" / "report.html").read_text()
        self.assertIn("faults were not tried", page)

    def test_what_ctrl_c_leaves_can_be_reproduced(self):
        process = self.start("--only", "verbs", "--jobs", "1", command=[VICTIM, "crashes"])
        results = self.scratch / "rocemu-findings" / "results.jsonl"
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and not (
                results.exists() and "received SIGSEGV" in results.read_text()):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("finding 1  CRASH", out)
        files = re.findall(r"--scenario (\S+)", out)
        self.assertTrue(files, out)
        for file in files:
            self.assertTrue((self.scratch / file).exists(), file)
        report = json.loads((self.scratch / "rocemu-findings" / "report.json").read_text())
        self.assertEqual(len(report["findings"]), len(files))


class ComesOnce(ExploreTest):
    def test_what_no_repetition_confirms_is_no_finding(self):
        """The first six runs are without faults; the seventh prints a line that no other run
        prints."""
        script = (f"n=$(($(cat count 2>&- || echo 0) + 1)); echo $n > count; {VICTIM} survives; "
                  "[ $n -ne 7 ] || echo odd")
        report = self.report("--only", "verbs:reg_mr", "--jobs", "1", command=["sh", "-c", script],
                             status=0)
        self.assertEqual(report["findings"], [])
        [once] = report["not_repeatable"]
        self.assertEqual((once["verdict"], once["confirmed"], once["repetitions"]), ("WRONG", 0, 2))
        text = (self.scratch / "rocemu-findings" / "report.txt").read_text()
        self.assertIn("not repeatable 1  WRONG", text)
        self.assertIn("confirmed by 0 of 2 repetitions", text)

    def test_a_different_duration_is_not_a_wrong_result(self):
        """A test runner prints the duration of its test, which is longer if the test waits for a
        retry."""
        report = self.report("--only", "verbs:reg_mr", command=[VICTIM, "survives and says when"],
                             status=0)
        self.assertEqual(report["verdicts"]["WRONG"], 0, report["results"])
        self.assertGreater(report["verdicts"]["SURVIVED"], 0, report["results"])


if __name__ == "__main__":
    unittest.main()
