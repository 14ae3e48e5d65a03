"""Tests each verdict with a program."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support import ROCEMU, TIMEOUT, VICTIM, ExploreTest

FAULT = "explore_victim#1's 1st reg_mr fails with ENOMEM"


class Verdicts(ExploreTest):
    def judge(self, manner, verdict, status, *arguments):
        report = self.report("--only", "verbs", *arguments, command=[VICTIM, manner],
                             status=status)
        [result] = [one for one in report["results"] if one["fault"] == FAULT]
        self.assertEqual(result["verdict"], verdict, result)
        return report, result

    def finding(self, report):
        [finding] = [one for one in report["findings"] if FAULT in one["triggers"]]
        self.assertEqual(finding["confirmed"], finding["repetitions"])
        return finding

    def test_calls_of_other_places_are_not_alike(self):
        """Every place in the program from which a call is made is tried. A loop counts as one place, however
        many calls it makes."""
        report = self.report("--only", "verbs:reg_mr", status=1,
                             command=[VICTIM, "registers in many places"])
        tried = [int(re.search(r"(\d+)(st|nd|rd|th) reg_mr", one["fault"])[1])
                 for one in report["results"] if one["fault"].endswith("fails with ENOMEM")]
        self.assertEqual(sorted(tried), [*range(1, 12), 12, 13, 15, 19, 27, 43, 51, 52])
        [crash] = [one for one in report["findings"] if one["verdict"] == "CRASH"]
        self.assertIn("explore_victim#1's 7th reg_mr fails with ENOMEM", crash["triggers"])

    def test_places_in_a_program_that_was_executed_are_known(self):
        report = self.report("--only", "verbs:reg_mr", status=1, command=[VICTIM, "executes itself"])
        [crash] = [one for one in report["findings"] if one["verdict"] == "CRASH"]
        self.assertTrue([one for one in crash["triggers"] if "7th reg_mr fails with ENOMEM" in one])

    def test_calls_of_a_second_context_are_tried(self):
        report = self.report("--only", "verbs:reg_mr", status=1,
                             command=[VICTIM, "uses a second context"])
        [crash] = [one for one in report["findings"] if one["verdict"] == "CRASH"]
        self.assertIn(FAULT, crash["triggers"])
        self.assertEqual(report["verdicts"]["NOT REACHED"], 0)

    def test_a_list_of_work_requests_is_one_call(self):
        report = self.report("--only", "verbs:post_recv", status=1, command=[VICTIM, "posts a list"])
        self.assertEqual({one["fault"].split("'s ")[1].split(" post_recv")[0]
                          for one in report["results"]}, {"1st", "2nd"})
        [wrong] = [one for one in report["findings"] if one["verdict"] == "WRONG"]
        self.assertIn("'the last is not posted' instead of 'the last is posted'", wrong["sentence"])
        self.assertEqual(report["verdicts"]["NOT REACHED"], 0)

    def test_ibv_bind_mw_is_a_verb_of_its_own(self):
        """The request of ibv_bind_mw(3) is recorded like one of ibv_post_send(3), but it is a separate verb."""
        report = self.report("--only", "verbs:post_send,verbs:bind_mw", status=1,
                             command=[VICTIM, "binds a window"])
        self.assertEqual({one["fault"].split("'s ")[1].split(" fails")[0]
                          for one in report["results"]}, {"1st post_send", "1st bind_mw"})
        [wrong] = [one for one in report["findings"] if one["verdict"] == "WRONG"]
        self.assertIn("1st bind_mw fails", wrong["sentence"])
        self.assertEqual(report["verdicts"]["NOT REACHED"], 0)

    def test_any_name_of_a_program(self):
        name = self.scratch / 'a "b\\c'
        shutil.copy(VICTIM, name)
        report = self.report("--only", "verbs:reg_mr", status=0, command=[str(name), "reports"])
        self.assertEqual(report["verdicts"]["NOT REACHED"], 0)

    def test_a_choice_that_leaves_nothing_is_a_mistake(self):
        # verbs:open_xrcd is a verb, which the program does not call
        for option in (("--process", "nobody"), ("--only", "verbs:open_xrcd")):
            status, out, err = self.explore(*option, command=[VICTIM, "reports"])
            self.assertEqual((status, out), (3, ""))
            self.assertIn("fault points of explore_victim#1", err)
            self.assertIn(f"{' '.join(option)} matches no fault point of the baseline; there are ", err)
        status, out, err = self.explore("--only", "verbs:regmr", command=[VICTIM, "reports"])
        self.assertEqual((status, out), (2, ""))
        self.assertIn("did you mean 'reg_mr'?", err)

    def test_a_second_attempt_survives(self):
        report, _ = self.judge("survives", "SURVIVED", 0, "--fail-on", "hang,crash,wrong,leak")
        self.assertFalse([one for one in report["findings"] if one["verdict"] != "LEAK"])

    def test_a_message_and_a_status_report(self):
        _, result = self.judge("reports", "REPORTED", 0)
        self.assertIn("cannot register memory: Cannot allocate memory", result["detail"])

    def test_a_wait_for_ever_hangs(self):
        report, result = self.judge("hangs", "HANG", 1)
        self.assertIn("explore_victim#1 blocks in ibv_get_cq_event (CQ 1)", result["detail"])
        finding = self.finding(report)
        self.assertIn("ibv_get_cq_event", finding["sentence"])
        # The command that the report gives for reproduction has the same result.
        again = subprocess.run(finding["reproduce"].replace("rocemu", ROCEMU, 1), shell=True,
                               cwd=self.scratch, env=self.environment, timeout=TIMEOUT,
                               capture_output=True, text=True, check=False)
        self.assertEqual(again.returncode, 123, again.stderr)

    def test_one_that_has_not_ended_its_line_is_seen(self):
        """Such a program prints dots for its progress, for example."""
        for manner, verdict in (("hangs", "HANG"), ("crashes", "CRASH")):
            report = self.report("--only", "verbs", "--force", status=1,
                                 command=["sh", "-c", 'printf ... >&2; exec "$0" "$1"', VICTIM, manner])
            self.assertIn(verdict, [one["verdict"] for one in report["findings"]])

    def test_a_run_without_end_hangs(self):
        _, result = self.judge("never ends", "HANG", 1, "--run-timeout", "1s")
        self.assertIn("without end", result["detail"])

    def test_output_without_end_hangs(self):
        _, result = self.judge("floods", "HANG", 1)
        self.assertIn("without end", result["detail"])

    def test_a_signal_crashes(self):
        report, result = self.judge("crashes", "CRASH", 1)
        self.assertIn("explore_victim#1 received SIGSEGV", result["detail"])
        folder = self.scratch / "rocemu-findings" / str(self.finding(report)["number"])
        for name in ("scenario.yaml", "journal", "events.jsonl", "trace.pcap", "stdout", "stderr",
                     "report.txt"):
            self.assertTrue((folder / name).exists(), name)

    def stacks_of(self, manner, options=()):
        report, _ = self.judge(manner, {"hangs": "HANG"}.get(manner, "CRASH"), 1, *options)
        finding = self.finding(report)
        folder = self.scratch / "rocemu-findings" / str(finding["number"])
        return finding, folder

    @unittest.skipUnless(shutil.which("eu-stack") or shutil.which("gdb"), "nothing reads stacks")
    def test_stacks_tell_where_it_crashed_and_hung(self):
        finding, folder = self.stacks_of("crashes", ["--force"])
        self.assertEqual(finding["stacks"], ["explore_victim#1: main"])
        self.assertRegex((folder / "stacks.txt").read_text(),
                         r"^pid \d+ \(explore_victim\), which crashes:\n")
        self.assertIn("main", (folder / "stacks.txt").read_text())
        finding, folder = self.stacks_of("hangs", ["--force"])
        [stack] = finding["stacks"]
        self.assertRegex(stack, r"^explore_victim#1: .*ibv_get_cq_event < (registered < )?main$")
        self.assertIn("ibv_get_cq_event", (folder / "stacks.txt").read_text())
        self.assertIn("stack: " + stack, (folder / "report.txt").read_text())

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_cores_are_kept_on_request(self):
        _, folder = self.stacks_of("crashes", ["--cores"])
        [core] = folder.glob("core.*")
        self.assertEqual(core.read_bytes()[:4], b"\x7fELF")

    def test_without_a_tool_the_report_says_how_to_get_one(self):
        empty = self.scratch / "bin"
        empty.mkdir()
        self.environment["PATH"] = str(empty)
        code, out, err = self.explore("--only", "verbs:reg_mr", command=[VICTIM, "crashes"])
        self.assertEqual(code, 1, out + err)
        self.assertIn("no stacks of threads: neither eu-stack (Debian's package elfutils) nor gdb "
                      "is installed", out)

    def test_a_crash_behind_a_shell_is_seen(self):
        report = self.report("--only", "verbs", status=1,
                             command=["sh", "-c", f"{VICTIM} crashes; true"])
        [result] = [one for one in report["results"] if one["fault"] == FAULT]
        self.assertEqual(result["verdict"], "CRASH")

    def test_other_output_is_wrong(self):
        _, result = self.judge("wrong", "WRONG", 1)
        self.assertIn("'registered 0 bytes' instead of 'registered 4096 bytes'", result["detail"])

    def test_what_the_oracle_refuses_is_wrong(self):
        report = self.report("--only", "verbs", "--oracle", "! grep -q ENOMEM $ROCEMU_RUN/scenario.yaml",
                             command=[VICTIM, "survives"], status=1)
        [result] = [one for one in report["results"] if one["fault"] == FAULT]
        self.assertEqual(result["verdict"], "WRONG")

    def test_objects_that_stay_leak(self):
        report, result = self.judge("leaks", "LEAK", 0)
        self.assertIn("explore_victim#1 PD 1 more", result["detail"])
        self.assertEqual(self.finding(report)["verdict"], "LEAK")
        self.judge("leaks", "LEAK", 1, "--fail-on", "leak", "--force")

    def test_a_long_sleep_is_slow(self):
        _, result = self.judge("slow", "SLOW", 0)
        self.assertIn("600.0 s of virtual time", result["detail"])

    def test_a_known_finding_does_not_fail(self):
        report, _ = self.judge("hangs", "HANG", 1)
        known = self.scratch / "known.json"
        known.write_text(json.dumps(report))
        self.judge("hangs", "HANG", 0, "--force", "--known", str(known))

    def test_reports_are_what_their_readers_expect(self):
        self.judge("hangs", "HANG", 1)
        folder = self.scratch / "rocemu-findings"
        suite = xml.etree.ElementTree.parse(folder / "report.xml").getroot().find("testsuite")
        self.assertGreater(int(suite.get("failures")), 0)
        sarif = json.loads((folder / "report.sarif").read_text())
        self.assertEqual(sarif["version"], "2.1.0")
        self.assertTrue(sarif["runs"][0]["results"])
        html = (folder / "report.html").read_text()
        self.assertIn("ibv_get_cq_event", html)
        self.assertNotIn("http", html.replace("http://www.w3.org", ""))

    def test_python_has_the_report(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "testing" / "python"))
        import rocemu  # pylint: disable=import-outside-toplevel
        os.environ["ROCEMU_COMMAND"] = ROCEMU
        found = rocemu.explore([VICTIM, "crashes"], self.scratch / "python", "--only", "verbs")
        self.assertEqual(found.status, 1)
        self.assertIn("CRASH", [one["verdict"] for one in found.report["findings"]])
        with self.assertRaisesRegex(rocemu.Error, "uses no RDMA"):
            rocemu.explore([VICTIM, "uses no RDMA"], self.scratch / "none")


if __name__ == "__main__":
    unittest.main()
