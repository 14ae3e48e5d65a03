"""Tests wrong uses of verbs that the runs of `rocemu explore --sanitize` show."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest
import xml.etree.ElementTree

from support import ROCEMU, TIMEOUT, ExploreTest

MISUSER = os.environ["ROCEMU_MISUSER"]
SOURCE = pathlib.Path(__file__).with_name("misuser.c")
# The line in which the program posts.
POST = next(number for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1)
            if line.endswith("// wrong"))


def misuses(report):
    return [finding for finding in report["findings"] if finding["verdict"] == "MISUSE"]


class Misuse(ExploreTest):
    def judge(self, manner, status, *arguments, only="work_requests"):
        return self.report("--only", only, "--sanitize", *arguments, command=[MISUSER, manner],
                           status=status)

    def assert_is_the_misuse(self, report):
        [finding] = misuses(report)
        self.assertIn("error [posted-after-error]: misuser#1 posted", finding["sentence"])
        self.assertIn(", after misuser#1's 1st SEND work request", finding["sentence"])
        self.assertIn(f"send_all() misuser.c:{POST} < main()", finding["stacks"][-1])
        self.assertEqual(finding["severity"], "error")
        self.assertGreater(len(finding["triggers"]), 1)
        of_trigger = [one for one in report["results"] if one["fault"] in finding["triggers"]]
        self.assertEqual({one["verdict"] for one in of_trigger}, {"MISUSE"})
        self.assertEqual(report["verdicts"]["MISUSE"], len(of_trigger))
        return finding

    def test_a_misuse_on_the_path_of_an_error_is_found_and_repeated_and_in_every_report(self):
        finding = self.assert_is_the_misuse(self.judge("posts on", 1))
        self.assertEqual(finding["confirmed"], finding["repetitions"])
        again = subprocess.run(shlex.split(finding["reproduce"].replace("rocemu", ROCEMU, 1)),
                               cwd=self.scratch, env=self.environment, text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT)
        self.assertIn("--sanitize ", finding["reproduce"])
        self.assertIn("rocemu: error [posted-after-error]: misuser#1 posted", again.stdout)
        self.assert_reports_have_it(self.scratch / "rocemu-findings")
        (self.scratch / "rocemu-findings" / "report.json").rename(self.scratch / "known.json")
        self.judge("posts on", 0, "--resume", "--known", "known.json")

    def test_a_misuse_on_the_path_of_an_error_is_found_on_the_real_clock(self):
        self.assert_is_the_misuse(self.judge("posts on", 1, "--real-clock"))

    def test_its_right_twin_is_silent_at_every_fault(self):
        report = self.judge("stops", 0, "--fail-on", "misuse",
                            only="verbs:destroy_qp,verbs:dereg_mr,work_requests,completions")
        self.assertEqual(misuses(report), [])
        self.assertEqual(report["verdicts"]["MISUSE"], 0)

    def test_without_the_option_nothing_is_looked_for(self):
        report = self.report("--only", "work_requests", command=[MISUSER, "posts on"], status=0)
        self.assertEqual(report["verdicts"]["MISUSE"], 0)

    def test_a_misuse_without_any_fault_is_reported_once(self):
        report = self.judge("always", 1)
        [finding] = misuses(report)
        self.assertIn("error [mr-deregistered-in-use]: misuser#1 ", finding["sentence"])
        self.assertTrue(finding["sentence"].endswith(", without any fault"), finding["sentence"])
        self.assertEqual(finding["triggers"], [])
        self.assertEqual(report["verdicts"]["MISUSE"], 0)
        self.assertNotIn("--scenario", finding["reproduce"])
        self.assertEqual((finding["confirmed"], finding["repetitions"]), (2, 2))

    def test_a_warning_is_found_and_does_not_fail(self):
        [finding] = misuses(self.judge("asks", 0))
        self.assertIn("warning [refused-limit]", finding["sentence"])
        self.assertEqual(finding["severity"], "warning")

    def test_only_the_rules_that_are_asked_for_are_looked_for(self):
        report = self.report("--only", "work_requests", "--sanitize=-posted-after-error",
                             command=[MISUSER, "posts on"], status=0)
        self.assertEqual(misuses(report), [])

    def test_what_is_suppressed_is_not_found(self):
        file = self.scratch / "suppressions"
        file.write_text("posted-after-error:send_all\n", encoding="utf-8")
        self.assertEqual(misuses(self.judge("posts on", 0, "--sanitize-suppressions", file)), [])

    def assert_reports_have_it(self, folder):
        self.assertRegex((folder / "report.txt").read_text(encoding="utf-8"),
                         r"(?m)^finding 1  MISUSE error \[posted-after-error\]: misuser#1 posted ")
        suite = xml.etree.ElementTree.parse(folder / "report.xml").getroot()[0]
        failures = [case.find("failure") for case in suite if case.find("failure") is not None]
        self.assertEqual(int(suite.get("failures")), len(failures))
        self.assertEqual({failure.get("type") for failure in failures}, {"MISUSE"})
        sarif = json.loads((folder / "report.sarif").read_text(encoding="utf-8"))
        [result] = sarif["runs"][0]["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("MISUSE", "error"))
        self.assertIn("MISUSE", [rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]])
        page = (folder / "report.html").read_text(encoding="utf-8")
        self.assertIn('<span class="MISUSE">MISUSE</span>', page)
        self.assertIn('<a href="1/misuse.json">misuses</a>', page)
        [kept] = json.loads((folder / "1" / "misuse.json").read_text(encoding="utf-8"))["reports"]
        self.assertEqual(kept["rule"], "posted-after-error")

    def test_shards_are_merged_into_the_report_of_one_machine(self):
        whole = self.judge("always", 1, "--output", "whole")
        for shard in (1, 2):
            self.judge("always", 0, "--shard", f"{shard}/2", "--output", f"part{shard}",
                       "--fail-on", "none")
        merged = subprocess.run([ROCEMU, "explore", "merge", "--json", "--output", "all", "part1",
                                 "part2"], cwd=self.scratch, env=self.environment, text=True,
                                check=False, stdout=subprocess.PIPE, timeout=TIMEOUT)
        self.assertEqual(merged.returncode, 1)
        places = [[finding["place"] for finding in report["findings"]]
                  for report in (whole, json.loads(merged.stdout))]
        self.assertEqual(places[0], places[1])

    def test_results_of_other_rules_are_not_resumed(self):
        self.judge("stops", 0)
        code, _, err = self.explore("--only", "work_requests", "--sanitize=cq-overrun", "--resume",
                                    command=[MISUSER, "stops"])
        self.assertEqual(code, 3, err)
        self.assertIn("other options", err)

    def test_an_unknown_rule_is_wrong_usage(self):
        code, _, err = self.explore("--sanitize=cq-overun", command=["true"])
        self.assertEqual(code, 2)
        self.assertTrue(re.search("did you mean 'cq-overrun'", err), err)


if __name__ == "__main__":
    unittest.main()
