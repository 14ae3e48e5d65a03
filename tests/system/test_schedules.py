"""Tests `rocemu run --schedule N`: other orders of the threads and the NIC, and threads that are stopped between two
calls."""
import os
import pathlib
import unittest

from rocemu import BIN, CM_PAIR, ROCEMU, free_port, rocemu_run, run, side_by_side, temporary_directory

DEADLOCK = 123
# The bound of stops in docs/design/turns.md: the six intervals together miss a given point with a probability of 0.504,
# so the 20 of 40 schedules that stop threads miss it with one of at most 0.504^3 * 6/7 * 30/31 = 11 %. The program
# reaches the point once for each of five messages.
FEW = range(1, 41)
# rping's main thread closes the event channel that its other thread reads. If rping fails because of that, it is
# rping's own bug.
RPINGS_OWN_RACE = (255, "rdma_get_cm_event: Bad file descriptor")
# ROCEMU_SCHEDULES=200 runs more.
MANY = range(1, 1 + int(os.environ.get("ROCEMU_SCHEDULES", "60")))
PARTIES = ((), ("processes",))  # threads, and processes


class LostWakeUp(unittest.TestCase):
    def status(self, schedule, *arguments):
        result = rocemu_run(BIN / "lost_wake_up", *arguments, options=("--lockstep", "--schedule", str(schedule)))
        self.assertIn(result.returncode, (0, DEADLOCK), result.stdout)
        return result.returncode

    def test_the_order_of_starts_does_not_show_it(self):
        for parties in PARTIES:
            self.assertEqual(self.status(0, "wrong", *parties), 0)

    def test_some_schedule_shows_it(self):
        for parties in PARTIES:
            statuses = [self.status(schedule, "wrong", *parties) for schedule in FEW]
            self.assertIn(DEADLOCK, statuses, parties)

    def test_the_right_order_never_hangs(self):
        def check(case):
            schedule, parties = case
            self.assertEqual(self.status(schedule, "right", *parties), 0)
        side_by_side(self, check, [(schedule, parties) for schedule in MANY for parties in PARTIES], at_once=2)


class Start(unittest.TestCase):
    def test_a_second_is_enough_for_a_server_to_start(self):
        def check(schedule):
            server = f"ib_send_bw -F -p {free_port()} -n 20"
            command = f"{server} & sleep 1; {server} 127.0.0.1 && wait $!"
            result = rocemu_run("sh", "-c", command, options=("--lockstep", "--timeout", "30s", "--schedule",
                                                              str(schedule)))
            self.assertEqual(result.returncode, 0, result.stdout)
        side_by_side(self, check, range(1, 15), at_once=2)


class SameRun(unittest.TestCase):
    def test_a_schedule_has_the_same_run_each_time(self):
        port = str(free_port())
        rping = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "5"]
        programs = {"wake-up": [BIN / "lost_wake_up", "right", "processes"], "threads": [BIN / "four_threads"],
                    "rping": [*CM_PAIR, port, *rping, "-s", "--", *rping, "-c"]}

        def check(case):
            name, schedule = case
            with temporary_directory() as directory:
                runs = [pathlib.Path(directory) / str(i) for i in range(3)]
                said = [rocemu_run(*programs[name], options=("--lockstep", "--schedule", str(schedule), "--record", one))
                        for one in runs]
                code, text = said[0].returncode, said[0].stdout
                self.assertEqual({(one.returncode, one.stdout) for one in said}, {(code, text)})
                if code == RPINGS_OWN_RACE[0] and name == "rping":
                    self.assertIn(RPINGS_OWN_RACE[1], text)
                else:
                    self.assertEqual(code, 0, text)
                for again in runs[1:]:
                    compared = run(ROCEMU, "diff", runs[0], again)
                    self.assertEqual(compared.returncode, 0, compared.stdout)
                    self.assertEqual((runs[0] / "trace.pcap").read_bytes(), (again / "trace.pcap").read_bytes())
        side_by_side(self, check, [(name, schedule) for name in programs for schedule in range(1, 9)], at_once=2)


if __name__ == "__main__":
    unittest.main()
