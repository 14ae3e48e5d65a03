"""Tests that a recording contains each failed verb with the errno that the program got, whether the provider,
the daemon or the engine refused it."""
import errno
import json
import pathlib
import re
import unittest

from rocemu import BIN, ROCEMU, rocemu_run, run, temporary_directory

REFUSALS = "Errno.IsWhatTheVerb*:Errno.IsSetWhen*:Errno.IsEnoent*"
# Functions whose verb has another name in recordings (emulator/abi/operations.h), and functions whose refusals
# are not recorded: posts, polls and requests for notification.
OTHER_NAMES = {"create_cq_ex": "create_cq", "create_srq_ex": "create_srq", "create_qp_ex": "create_qp",
               "alloc_null_mr": "reg_mr", "reg_dm_mr": "reg_mr", "reg_dmabuf_mr": "reg_mr",
               "import_mr": "query_mr", "import_pd": "query_pd"}
LEFT_OUT = {"post_send", "post_recv", "post_srq_recv", "bind_mw", "wr_complete", "start_poll",
            "next_poll", "poll_cq", "req_notify_cq"}


class Recorded(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.recording = pathlib.Path(directory.name) / "recording"

    def failed_verbs(self):
        lines = (self.recording / "events.jsonl").read_text().splitlines()
        return [(event["verb"], event["error"]) for event in map(json.loads, lines)
                if event["what"] == "verb" and "error" in event]

    def check_each_refusal(self, *options):
        result = rocemu_run(BIN / "man_page_tests", f"--gtest_filter={REFUSALS}",
                            options=(*options, "--record", self.recording))
        self.assertEqual(result.returncode, 0, result.stdout)
        told = [(name, int(error))
                for name, error in re.findall(r"^refused: ibv_(\w+) (\d+)$", result.stdout, re.M)]
        wanted = [(OTHER_NAMES.get(name, name), error) for name, error in told
                  if name not in LEFT_OUT]
        self.assertGreater(len({name for name, _ in wanted}), 30)
        self.assertEqual(self.failed_verbs(), wanted)

    def test_each_verb_with_the_errno_that_the_program_got(self):
        self.check_each_refusal()

    def test_the_same_in_lockstep(self):
        self.check_each_refusal("--lockstep")

    def test_a_timeline_shows_ebusy_for_a_pd_in_use(self):
        self.check_each_refusal("--lockstep")
        timeline = run(ROCEMU, "timeline", self.recording, check=True).stdout
        self.assertRegex(timeline, rf"dealloc_pd.*{errno.errorcode[errno.EBUSY]}")
        self.assertNotRegex(timeline, r"free_dm.*ENOENT.*EBUSY")

    def test_a_rule_still_decides_otherwise(self):
        scenario = self.recording.with_name("scenario.yaml")
        scenario.write_text("rules: [{on: verb, verb: alloc_mw, nth: 2, do: {errno: EIO}}]")
        result = rocemu_run(
            BIN / "man_page_tests", "--gtest_filter=Errno.IsSetWhenTheProviderCreatesNothing",
            options=("--lockstep", "--record", self.recording, "--scenario", scenario))
        self.assertIn("ibv_alloc_mw", result.stdout)
        self.assertIn(("alloc_mw", errno.EIO), self.failed_verbs())


if __name__ == "__main__":
    unittest.main()
