"""Tests that the first twenty schedules and `rocemu explore` find the planted races (race.h), and that explore
reports between which two calls a thread was stopped."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from test_races import RACES, status

from rocemu import BIN, ROCEMU, rocemu_run, side_by_side

# The comment in each program has the race's depth. PCT guarantees only that one schedule in 256 finds a race of depth 2
# with four threads and a window of 64 steps, but these programs are smaller.
SCHEDULES = 20


class Found(unittest.TestCase):
    def test_twenty_schedules_show_each(self):
        def check(name):
            self.assertTrue(any(status(name, "wrong", number)[0] != 0 for number in range(1, SCHEDULES + 1)), name)
        side_by_side(self, check, RACES, at_once=2)

    def explore(self, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(
                [ROCEMU, "explore", "--only", "cm", "--schedules", "60", "--output", folder + "/found", *options, "--",
                 BIN / "races" / name, "wrong"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            self.assertEqual(result.returncode, 1, result.stdout)
            report = json.loads(pathlib.Path(folder, "found", "report.json").read_text())
        return report["findings"]

    def test_explore_says_where_a_lost_wake_up_is(self):
        for _ in range(3):
            findings = self.explore("lost_wake_up")
            self.assertEqual([finding["verdict"] for finding in findings], ["HANG"])
            self.assertIn("thread 1 of lost_wake_up is stopped between ibv_poll_cq and ibv_req_notify_cq",
                          findings[0]["sentence"])

    def test_the_stops_of_a_finding_repeat_it(self):
        for name in ("lost_wake_up", "free_list"):
            line = self.explore(name)[0]["reproduce"]
            schedule = line.split("--schedule ")[1].split()[0]
            self.assertIn("/", schedule)
            for _ in range(2):
                self.assertNotEqual(status(name, "wrong", schedule)[0], 0, line)
            self.assertEqual(status(name, "right", schedule)[0], 0, line)


    def test_a_thread_that_was_stopped_for_good_is_named(self):
        """In this program, the other thread ends the process while the stopped thread cannot continue."""
        self.assertIn("thread 1 of atomic_wait is stopped after futex", self.explore("atomic_wait")[0]["sentence"])


if __name__ == "__main__":
    unittest.main()
