"""Tests `rocemu run --expect`: which files remain of a run that was not as expected, and which other files the
command can write."""
import json
import pathlib
import unittest

from rocemu import ROCEMU, pingpong_pair, rocemu_run, run, temporary_directory


class GoldenRuns(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.golden = self.directory / "golden"
        self.actual = self.directory / "actual"
        made = self.run_it("--update")
        self.assertEqual(made.returncode, 0, made.stdout)

    def run_it(self, *options, messages="10"):
        return rocemu_run(*pingpong_pair("-n", messages),
                          options=("--lockstep", "--expect", self.golden, *options))

    def assert_whole(self, recording):
        result = run(ROCEMU, "replay", recording)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("no difference", result.stdout)
        self.assertNotIn("cut off", result.stdout)
        self.assertEqual({entry.name for entry in recording.iterdir()},
                         {"journal", "events.jsonl", "trace.pcap"})

    def test_a_run_that_is_not_as_expected_is_kept_where_told(self):
        result = self.run_it("--actual", self.actual, messages="11")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(str(self.actual), result.stdout)
        self.assert_whole(self.actual)
        self.assertEqual(run(ROCEMU, "diff", self.golden, self.actual).returncode, 1)

    def test_without_a_place_the_user_is_told_how_to_keep_the_run(self):
        result = self.run_it(messages="11")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("--actual DIR", result.stdout)

    def test_of_a_run_as_expected_nothing_is_left_not_even_of_an_earlier_one(self):
        self.run_it("--actual", self.actual, messages="11")
        self.assertTrue(self.actual.exists())
        (self.actual / "notes").write_text("mine")
        result = self.run_it("--actual", self.actual)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([entry.name for entry in self.actual.iterdir()], ["notes"])
        (self.actual / "notes").unlink()
        self.assertEqual(self.run_it("--actual", self.actual).returncode, 0)
        self.assertFalse(self.actual.exists())

    def test_it_is_recorded_and_captured_alongside(self):
        record, capture = self.directory / "record", self.directory / "capture.pcap"
        both = ("--record", record, "--capture", capture)
        for messages, status in (("10", 0), ("11", 1)):
            with self.subTest(messages=messages):
                result = self.run_it(*both, messages=messages)
                self.assertEqual(result.returncode, status, result.stdout)
                self.assert_whole(record)
                self.assertEqual(capture.read_bytes(), (record / "trace.pcap").read_bytes())
        result = self.run_it("--actual", self.actual, *both, messages="11")
        self.assertEqual(result.returncode, 1, result.stdout)
        for name in ("journal", "events.jsonl", "trace.pcap"):
            self.assertEqual((record / name).read_bytes(), (self.actual / name).read_bytes())

    def test_what_is_expected_is_made_anew_and_recorded_alongside(self):
        record = self.directory / "record"
        result = self.run_it("--update", "--record", record, messages="12")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assert_whole(record)
        self.assert_whole(self.golden)
        same = run(ROCEMU, "diff", record, self.golden)
        self.assertEqual(same.returncode, 0, same.stdout)

    def test_options_that_contradict_each_other_are_refused(self):
        for options, reason in (
                (("--expect", self.golden, "--update", "--actual", self.actual), "--actual"),
                (("--actual", self.actual), "--expect"),
                (("--expect", self.golden, "--actual", self.golden), "--actual"),
                (("--expect", self.golden, "--record", self.golden), "--record")):
            result = rocemu_run("true", options=("--lockstep", *options))
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(reason, result.stdout)
        self.assert_whole(self.golden)


class TruncatedRecordings(unittest.TestCase):
    """Tests truncated recordings: the missing end is not a difference between runs."""

    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.golden = self.directory / "golden"
        result = self.run_it("--update")
        self.assertEqual(result.returncode, 0, result.stdout)

    def run_it(self, *options):
        return rocemu_run(*pingpong_pair("-n", "10"),
                          options=("--lockstep", "--expect", self.golden, *options))

    def cut(self, size):
        journal = self.golden / "journal"
        contents = journal.read_bytes()
        journal.write_bytes(contents[:size(contents)])
        return journal

    @staticmethod
    def end_of_the_last_record_but_one(contents):
        """Truncates a journal at the place where it ends if a daemon is killed between two records."""
        at = ends = 12
        while at < len(contents):
            ends, length = at, int.from_bytes(contents[at:at + 4], "little")
            if length == 0xffffffff:
                break
            at += 8 + length
        return ends

    def test_one_that_is_cut_off_is_called_so_with_place_and_remedy(self):
        for name, size in (("within a record", lambda contents: len(contents) * 2 // 3),
                           ("between two records", self.end_of_the_last_record_but_one)):
            with self.subTest(name):
                self.assertEqual(self.run_it("--update").returncode, 0)
                journal = self.cut(size)
                result = self.run_it()
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertRegex(result.stdout, rf"{journal}: cut off at byte \d+")
                self.assertNotIn("(no more)", result.stdout)
                self.assertNotIn("the recordings first differ", result.stdout)
                self.assertIn("--update", result.stdout)

    def test_diff_and_replay_call_it_so_too(self):
        other = self.directory / "other"
        result = rocemu_run(*pingpong_pair("-n", "10"), options=("--lockstep", "--record", other))
        self.assertEqual(result.returncode, 0, result.stdout)
        same = run(ROCEMU, "diff", self.golden, other)
        self.assertEqual(same.returncode, 0, same.stdout)
        journal = self.cut(self.end_of_the_last_record_but_one)
        for pair in ((self.golden, other), (other, self.golden)):
            result = run(ROCEMU, "diff", *pair)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertRegex(result.stdout, rf"{journal}: cut off at byte \d+")
        result = run(ROCEMU, "replay", self.golden)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"cut off at byte \d+")

    def test_where_it_parts_before_it_is_cut_off_that_is_said_first(self):
        other = self.directory / "other"
        result = rocemu_run("ibv_devinfo", options=("--lockstep", "--record", other))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.cut(lambda contents: len(contents) * 2 // 3)
        result = run(ROCEMU, "diff", self.golden, other)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("the recordings first differ at line", result.stdout)

    def test_an_empty_journal_is_cut_off_too(self):
        for size in (0, 5, 10, 13, 100):
            with self.subTest(size=size):
                self.assertEqual(self.run_it("--update").returncode, 0)
                self.cut(lambda contents, size=size: size)
                result = self.run_it()
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(f"cut off at byte {size}", result.stdout)
                self.assertIn("--update", result.stdout)

    def test_a_recording_whose_nic_was_killed_is_cut_off(self):
        recording = self.directory / "killed"
        kill = "kill -9 $(pgrep -P $PPID -x rocemud)"
        result = rocemu_run("sh", "-c", f"ibv_devinfo > {self.directory}/out; {kill}",
                            options=("--lockstep", "--record", recording))
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, rf"{recording}/journal: cut off at byte \d+")
        for line in (recording / "events.jsonl").read_text().splitlines():
            json.loads(line)


if __name__ == "__main__":
    unittest.main()
