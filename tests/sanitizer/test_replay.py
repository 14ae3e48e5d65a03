"""Tests that `rocemu replay --sanitize` reports the misuses in a run that was recorded without
--sanitize."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from support import CLOCKS, LOCKSTEP, ROCEMU, program, rocemu_run, sanitized, side_by_side

# Of the rules that `rocemu run --sanitize` reports for each program, those that the NIC alone can
# check.
WRONG = {
    "cq_overrun": {"cq-overrun"},
    "protection_explained": {"protection-explained"},
    "receive_queue_empty": {"receive-queue-empty"},
    "remote_write_race": {"remote-write-race", "receive-queue-empty"},
    "rkey_stale": {"rkey-stale"},
    "ud_grh_ignored": {"ud-grh-ignored"},
}
RULES = set().union(*WRONG.values())
WARNINGS = {"receive-queue-empty", "ud-grh-ignored"}


class Replay(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def record(self, name, options=LOCKSTEP):
        recording = self.directory / (name + "-".join(options))
        rocemu_run(program(name), options=("--record", recording, *options))
        return recording

    def replay(self, *arguments):
        return subprocess.run([ROCEMU, "replay", *arguments], text=True, check=False, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def judge(self, recording, option="--sanitize"):
        """Replays the recording. Returns the exit status and the reports."""
        result = self.replay(option, "--json", recording)
        self.assertTrue(json.loads(result.stdout)["same"])
        return result.returncode, json.loads(result.stdout)["reports"]

    def test_a_recording_has_the_reports_of_the_run_that_the_nic_alone_sees(self):
        def check(case):
            name, clock = case
            _, of_run = sanitized(program(name), options=clock)
            status, reports = self.judge(self.record(name, clock))
            self.assertEqual({report["rule"] for report in reports}, WRONG[name], reports)
            self.assertEqual({report["rule"] for report in of_run} & RULES, WRONG[name])
            self.assertEqual(status, int(not WRONG[name] <= WARNINGS))
            for report in reports:
                self.assertEqual(report["severity"],
                                 "warning" if report["rule"] in WARNINGS else "error")
                self.assertEqual(report["process"], f"{name[:15]}#1")
                self.assertIn("CQ " if name == "cq_overrun" else "QP ", report["message"])
                self.assertEqual([place["stack"] for place in report["places"]],
                                 [[]] * len(report["places"]))
        side_by_side(self, check, [(name, clock) for name in WRONG for clock in CLOCKS])

    def test_a_recording_of_its_right_twin_has_none(self):
        def check(case):
            name, clock = case
            self.assertEqual(self.judge(self.record(name + "_right", clock)), (0, []))
        side_by_side(self, check, [(name, clock) for name in WRONG for clock in CLOCKS])

    def test_a_report_names_calls_and_the_request_that_failed(self):
        recording = self.record("rkey_stale")
        result = self.replay("--sanitize", recording)
        self.assertRegex(
            result.stderr,
            r"(?m)^rocemu: error \[rkey-stale\]: rkey_stale#1 refused QP \d+, which asked QP \d+ to "
            r"write 4096 bytes: the region of R_Key 0x[0-9a-f]+ was deregistered; wr_id 0 of QP \d+ "
            r"completed with REM_ACCESS_ERR\n"
            r"    deregistered R_Key 0x[0-9a-f]+  ibv_dereg_mr  at 0\.\d{3} s\n"
            r"    Deregister a region only after .*\n"
            r"1 error in 1 rule; rocemu explain rkey-stale$")
        self.assertRegex(result.stdout, r"^\d+ steps, \d+ frames: no difference\n$")
        self.assertEqual(result.returncode, 1)

    def test_reports_go_to_the_file_that_is_asked_for(self):
        report = self.directory / "report.json"
        self.replay("--sanitize", "--sanitize-report", report, self.record("rkey_stale"))
        [one] = json.loads(report.read_text(encoding="utf-8"))["reports"]
        self.assertEqual(one["rule"], "rkey-stale")

    def test_without_the_option_nothing_is_judged(self):
        result = self.replay(self.record("rkey_stale"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("reports", json.loads(self.replay("--json", self.record("rkey_stale")).stdout))

    def test_only_the_rules_that_are_asked_for_are_looked_for(self):
        recording = self.record("rkey_stale")
        self.assertEqual(self.judge(recording, "--sanitize=cq-overrun"), (0, []))
        result = self.replay("--sanitize=posted-after-error", recording)
        self.assertEqual(result.returncode, 2)
        self.assertIn("selects no rule that a replay can check without the program; use cq-overrun, ", result.stderr)

    def test_a_cq_that_a_scenario_overruns_is_no_mistake_of_the_program(self):
        scenario = self.directory / "overrun.yaml"
        scenario.write_text("rules:\n  - {on: completion, nth: 2, total: 1, do: overrun}\n",
                            encoding="utf-8")
        options = ("--scenario", scenario, *LOCKSTEP, "--timeout", "20s")
        _, reports = sanitized(program("cq_overrun_right"), options=options)
        self.assertEqual(reports, [])
        recording = self.directory / "overrun"
        rocemu_run(program("cq_overrun_right"), options=("--record", recording, *options))
        self.assertEqual(self.judge(recording), (0, []))


if __name__ == "__main__":
    unittest.main()
