"""Runs programs with one planted race each (race.h): schedule 0 does not show the race, and the correct twin
passes in every schedule."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "system"))
from rocemu import BIN, rocemu_run, side_by_side  # noqa: E402

RACES = ("abba", "atomic_wait", "early_flag", "early_signal", "early_teardown", "free_list", "handler_after_ack",
         "last_reference", "late_table", "lost_wake_up", "shared_counter", "two_pollers")
# ROCEMU_SCHEDULES=1000 runs more.
MANY = int(os.environ.get("ROCEMU_SCHEDULES", "24"))


def status(name, way, schedule):
    result = rocemu_run(BIN / "races" / name, way, options=("--lockstep", "--schedule", str(schedule)))
    return result.returncode, result.stdout


class Races(unittest.TestCase):
    def test_the_list_is_complete(self):
        self.assertEqual({path.stem for path in HERE.glob("*.c*")} - {"race"}, set(RACES))

    def test_the_order_of_starts_shows_none(self):
        def check(name):
            self.assertEqual(status(name, "wrong", 0)[0], 0)
        side_by_side(self, check, RACES, at_once=2)

    def test_the_right_twins_pass_in_each_schedule(self):
        def check(case):
            name, schedule = case
            code, text = status(name, "right", schedule)
            self.assertEqual(code, 0, text)
        side_by_side(self, check, [(name, schedule) for name in RACES for schedule in range(MANY)], at_once=2)


if __name__ == "__main__":
    unittest.main()
