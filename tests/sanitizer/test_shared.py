"""Tests `rocemu up --sanitize`: the reports about all programs that join the NIC."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import ROCEMU, program

WRONG = program("mr_deregistered_in_use")


class Shared(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": scratch.name}
        self.addCleanup(self.rocemu, "down")

    def rocemu(self, *arguments):
        return subprocess.run([ROCEMU, *map(str, arguments)], env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=240, check=False)

    def up(self, *options):
        result = self.rocemu("up", "--sanitize", *options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_down_prints_and_writes_the_reports_of_all_runs(self):
        report = self.scratch / "report.json"
        self.assertIn("rocemu show --misuses", self.up("--sanitize-report", report))
        # The status of `rocemu run` is that of its command, since the report may be about a program of
        # another run.
        for name in (WRONG, program("list_posted_again"), WRONG):
            self.assertEqual(self.rocemu("run", "--", name).returncode, 0)
        down = self.rocemu("down")
        self.assertEqual(down.returncode, 1, down.stdout)
        self.assertIn("rocemu: error [mr-deregistered-in-use]: mr_deregistered#1", down.stderr)
        self.assertIn("This was found 2 times.", down.stderr)
        self.assertIn("2 errors in 2 rules", down.stderr)
        found = json.loads(report.read_text(encoding="utf-8"))["reports"]
        self.assertEqual([(one["rule"], one["count"]) for one in found],
                         [("mr-deregistered-in-use", 2), ("list-posted-again", 1)])
        self.assertEqual(os.listdir(self.scratch), ["report.json"])

    def test_show_prints_what_was_found_so_far(self):
        self.up()
        self.assertEqual(self.rocemu("show", "--misuses").stdout, "no misuse was found\n")
        self.rocemu("run", "--", WRONG)
        text = self.rocemu("show", "--misuses").stdout
        self.assertTrue(text.startswith("error [mr-deregistered-in-use]: mr_deregistered#1"), text)
        self.assertTrue(text.endswith("1 error in 1 rule; rocemu explain mr-deregistered-in-use\n"))
        found = json.loads(self.rocemu("show", "--misuses", "--json").stdout)
        self.assertEqual([one["process"] for one in found["reports"]], ["mr_deregistered#1"])

    def test_show_of_a_nic_that_looks_for_none_says_so(self):
        self.assertEqual(self.rocemu("up").returncode, 0)
        result = self.rocemu("show", "--misuses")
        self.assertEqual(result.returncode, 1)
        self.assertIn("start it with --sanitize", result.stderr)
        self.assertEqual(self.rocemu("run", "--", WRONG).returncode, 0)
        self.assertEqual(self.rocemu("down").returncode, 0)

    def test_reports_are_kept_though_the_nic_was_killed(self):
        self.up()
        self.rocemu("run", "--", WRONG)
        os.kill(json.loads(self.rocemu("show", "--json").stdout)["pid"], 9)
        down = self.rocemu("down")
        self.assertIn("1 error in 1 rule", down.stderr)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_a_warning_is_no_failure(self):
        self.up()
        self.rocemu("run", "--", program("qp_destroyed_in_use"))
        down = self.rocemu("down")
        self.assertEqual(down.returncode, 0, down.stderr)
        self.assertIn("1 warning in 1 rule", down.stderr)

    def test_a_nic_that_is_up_keeps_its_rules(self):
        self.up()
        result = self.rocemu("up", "--sanitize=cq-overrun")
        self.assertEqual(result.returncode, 1)
        self.assertIn("keeps its options", result.stderr)
        self.rocemu("run", "--", WRONG)
        self.assertIn("[mr-deregistered-in-use]", self.rocemu("down").stderr)

    def test_wrong_options_start_nothing(self):
        for words, *options in (
                ("there is no rule 'cq-overun'; did you mean 'cq-overrun'?", "--sanitize=cq-overun"),
                ("needs --sanitize", "--sanitize-report", "x.json"),
                ("has an unknown extension", "--sanitize", "--sanitize-report", "x"),
                ("cannot write --sanitize-report", "--sanitize", "--sanitize-report",
                 self.scratch / "none" / "x.json"),
                ("--sanitize-suppressions: cannot read the list of suppressions", "--sanitize", "--sanitize-suppressions",
                 self.scratch / "none")):
            with self.subTest(words):
                result = self.rocemu("up", *options)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, result.stderr)
                self.assertEqual(os.listdir(self.scratch), [])

    def test_suppressions_and_rules_hold_for_all_runs(self):
        file = self.scratch / "suppressions"
        file.write_text("mr-deregistered-in-use:post_receive\n", encoding="utf-8")
        self.up("--sanitize-suppressions", file)
        self.rocemu("run", "--", WRONG)
        self.assertEqual((self.rocemu("show", "--misuses").stdout, self.rocemu("down").stderr),
                         ("no misuse was found\n", ""))


if __name__ == "__main__":
    unittest.main()
