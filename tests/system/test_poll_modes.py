"""Tests ROCEMU_POLL and --busy-poll: how programs and the NIC wait must not change what programs see."""
import re
import unittest

from rocemu import BIN, PAIR, free_port, rocemu_run, run

PINGPONG = ["ibv_rc_pingpong", "-g", "0", "-n", "200"]


class PollModes(unittest.TestCase):
    def pingpong(self, mode):
        port = str(free_port())
        side = ["env", f"ROCEMU_POLL={mode}", *PINGPONG, "-p", port]
        return rocemu_run(*PAIR, port, *side, "--", *side, "localhost")

    def test_each_mode_runs_a_program(self):
        for mode in ("adaptive", "yield", "spin"):
            with self.subTest(mode):
                result = self.pingpong(mode)
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertIn("200 iters in", result.stdout)
                self.assertNotIn("ROCEMU_POLL", result.stdout)

    def test_a_mode_that_there_is_not_is_named_once_for_each_process(self):
        result = self.pingpong("sometimes")
        self.assertEqual(result.returncode, 0, result.stdout)
        line = "ROCEMU_POLL=sometimes is not adaptive, yield or spin; using adaptive"
        self.assertEqual(result.stdout.count(line), 2, result.stdout)

    def test_an_empty_mode_is_named(self):
        result = self.pingpong("")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("ROCEMU_POLL is empty; unset it, or set it to adaptive, "
                                             "yield or spin; using adaptive\n"), 2, result.stdout)

    def sleeps(self, how, most):
        """Returns how many of 50,000 empty polls sleep while other threads need the processor."""
        result = rocemu_run(BIN / "polls_that_sleep", how, "50000", str(most), options=("--timeout", "100"))
        self.assertEqual(result.returncode, 0, result.stdout)
        return int(re.search(r"(\d+) sleeps", result.stdout)[1])

    def test_few_of_the_polls_that_find_nothing_sleep(self):
        # Each empty poll earns time for sleeps (docs/design/waiting.md), at most 1.5 us with up to two threads
        # that yield. A sleep costs 850 us, or 100 us if the program polls several queues. The first 64 polls of
        # one queue may look like polls of several.
        earned = 850 + 50000 * 1.5
        for how, most in (("one", 9 + earned / 850), ("extended", 9 + earned / 850), ("several", earned / 100)):
            with self.subTest(how):
                self.assertLessEqual(self.sleeps(how, most=int(most)), most)

    def test_threads_that_share_a_lock_and_a_processor_both_have_it(self):
        result = rocemu_run(BIN / "polls_that_sleep", "lock", "20", options=("--timeout", "100"))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("both had the lock", result.stdout)

    def test_a_nic_that_never_sleeps_runs_a_program(self):
        port = str(free_port())
        side = [*PINGPONG, "-p", port]
        result = run(BIN / "rocemu", "run", "--busy-poll", "--", *PAIR, port, *side, "--", *side,
                     "localhost")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_nic_that_never_sleeps_has_no_virtual_clock(self):
        result = run(BIN / "rocemu", "run", "--busy-poll", "--lockstep", "--", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--busy-poll works only on the real clock", result.stdout)


if __name__ == "__main__":
    unittest.main()
