"""Tests commands that cannot be explored, and folders that cannot be written."""
import os
import pathlib
import shutil
import subprocess
import unittest

from support import ROCEMU, VICTIM, ExploreTest


class BadInput(ExploreTest):
    def refused(self, *arguments, command, words, status=3):
        code, out, err = self.explore(*arguments, command=command)
        self.assertEqual(code, status, out + err)
        for word in words:
            self.assertIn(word, err)
        self.assertNotIn("terminate", err)
        return err

    @unittest.skipIf(len(os.sched_getaffinity(0)) == 1, "there is one processor only")
    def test_a_command_that_sees_that_it_is_kept_on_one_processor(self):
        seen = f"test $(env -i nproc) = {len(os.sched_getaffinity(0))}"
        code, out, err = self.explore("--only", "verbs:alloc_pd", "--fail-on", "none",
                                      command=["sh", "-c", f"'{VICTIM}' crashes && {seen}"])
        self.assertEqual(code, 0, out + err)
        self.assertIn("the command fails on one processor, so its runs use all processors", err)

    def test_a_command_that_fails(self):
        self.refused(command=[VICTIM, "fails without a fault"],
                     words=["fails without any fault, with status 3", "nothing works here"])
        self.assertFalse((self.scratch / "rocemu-findings").exists())

    def test_the_command_to_look_at_has_the_devices_of_the_runs(self):
        err = self.refused("--profile", "mana", "--devices", "3", command=[VICTIM, "fails without a fault"], words=[])
        self.assertRegex(err, r"inspect it with: rocemu run --lockstep .*--profile mana -- \S+ 'fails without a fault'\n")
        self.assertRegex(err, r"inspect it with: rocemu run --lockstep .*--devices 3 ")

    def test_a_command_that_hangs(self):
        self.refused(command=[VICTIM, "hangs without a fault"],
                     words=["hangs without any fault", "waits for a pipe"])

    def test_a_command_that_never_ends(self):
        self.refused("--run-timeout", "1s", command=[VICTIM, "never ends without a fault"],
                     words=["has not ended after 1 s without any fault", "--run-timeout"])
        self.nothing_is_left("never ends without a fault")

    def test_a_command_without_rdma(self):
        self.refused(command=[VICTIM, "uses no RDMA"],
                     words=["uses no RDMA", "rocemu doctor"])

    def test_no_such_command(self):
        self.refused(command=["./there-is-none"], words=["there-is-none"], status=127)

    def test_no_command(self):
        self.refused(command=[], words=["no command given"], status=2)

    def test_options_that_are_none(self):
        for arguments, words in ((["--shard", "5/4"], ["1/4"]),
                                 (["--only", "verb,framez"], ["framez", "frames"]),
                                 (["--fail-on", "panic"], ["panic", "crash"]),
                                 (["--record", "x"], ["--record"]),
                                 (["--budget", "soon"], ["soon"])):
            self.refused(*arguments, command=[VICTIM], words=words, status=2)

    def test_a_mistyped_verb_is_answered_with_the_nearest(self):
        self.refused("--only", "verbs:reg_mrr,verbs:alloc_pd", command=[VICTIM], status=2,
                     words=["explore: --only: there is no verb 'reg_mrr'; did you mean 'reg_mr'?"])

    def test_names_that_match_nothing_are_reported_with_those_that_do(self):
        err = self.explore("--list", "--only", "verbs:reg_mr,completions:NOSUCH", command=[VICTIM])[2]
        self.assertRegex(err, r"rocemu: warning: explore: --only completions:NOSUCH matches no fault point of the "
                              r"baseline; there (are completions:\w+|is none of this kind)")
        self.assertNotIn("reg_mr matches no", err)
        err = self.explore("--list", "--process", "explore_victim,srever", command=[VICTIM])[2]
        self.assertIn("rocemu: warning: explore: --process srever matches no fault point of the baseline; there are "
                      "explore_victim#1", err)
        self.assertNotIn("--process explore_victim matches", err)

    def test_a_command_that_cannot_be_executed_has_the_status_that_the_help_lists(self):
        file = self.scratch / "not-executable"
        file.write_text("#!/bin/sh\n")
        self.refused(command=["./not-executable"], words=["cannot run './not-executable'"], status=126)
        self.refused(command=["nosuchcmd"], words=["cannot run 'nosuchcmd'"], status=127)
        shown = subprocess.run([ROCEMU, "explore", "--help"], text=True, capture_output=True, check=True).stdout
        status = " ".join(shown[shown.index("Exit status"):].split())
        for words in ("126 if COMMAND cannot be executed", "127 if there is no such COMMAND"):
            self.assertIn(words, status)

    def test_an_existing_folder_is_not_touched(self):
        folder = self.scratch / "rocemu-findings"
        folder.mkdir()
        (folder / "thesis.tex").write_text("mine")
        self.refused(command=[VICTIM], words=["rocemu-findings", "--output"])
        self.assertEqual([one.name for one in folder.iterdir()], ["thesis.tex"])

    def test_findings_of_before_are_not_replaced_unasked(self):
        self.explore("--only", "verbs", command=[VICTIM])
        self.refused("--only", "verbs", command=[VICTIM], words=["--resume", "--force"])

    def test_results_of_another_command_are_not_gone_on_with(self):
        self.explore("--only", "verbs", command=[VICTIM])
        self.refused("--resume", "--only", "verbs", command=[VICTIM, "reports"],
                     words=["from another command"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_named_and_what_was_found_is_kept(self):
        self.explore("--only", "verbs", command=[VICTIM])
        results = self.scratch / "rocemu-findings" / "results.jsonl"
        found = results.read_bytes()
        (results.parent / "results.jsonl.new").symlink_to("/dev/full")
        self.refused("--resume", "--only", "verbs", command=[VICTIM],
                     words=["No space left on device", "results.jsonl"])
        self.assertEqual(results.read_bytes(), found)

    def test_shards_that_are_damaged_are_refused_by_name(self):
        self.explore("--only", "verbs", "--output", "one", command=[VICTIM])
        results, plan = self.scratch / "one" / "results.jsonl", self.scratch / "one" / "plan.json"
        for file, words in ((results, ["one/results.jsonl", "line 2"]), (plan, ["one/plan.json"])):
            whole = file.read_text()
            damaged = {results: whole.replace('"key"', '"yek"'), plan: "{}"}[file]
            file.write_text(damaged)
            done = subprocess.run([ROCEMU, "explore", "merge", "one", "--output", "all"],
                                  cwd=self.scratch, env=self.environment, text=True,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            file.write_text(whole)
            shutil.rmtree(self.scratch / "all", ignore_errors=True)

    def test_a_daemon_that_stays_is_ended(self):
        code, out, err = self.explore("--only", "verbs", command=[VICTIM, "leaves a daemon"])
        self.assertIn(code, (0, 1), out + err)
        self.nothing_is_left("leaves a daemon")

    def test_the_list_runs_nothing(self):
        code, out, err = self.explore("--list", command=[VICTIM])
        self.assertEqual(code, 0, err)
        self.assertIn("{on: verb, process: \"explore_victim#1\", verb: reg_mr, nth_total: 1, total: 1, "
                      "do: {errno: ENOMEM}}", out)
        self.assertFalse((self.scratch / "rocemu-findings").exists())


if __name__ == "__main__":
    unittest.main()
