"""ROCEMU_POLL and --busy-poll: how programs and the NIC wait changes nothing that programs see."""
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
        line = "ROCEMU_POLL=sometimes is none of adaptive, yield and spin; using adaptive"
        self.assertEqual(result.stdout.count(line), 2, result.stdout)

    def test_an_empty_mode_is_named(self):
        result = self.pingpong("")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("ROCEMU_POLL is empty; unset it, or set it to adaptive, "
                                             "yield or spin; using adaptive\n"), 2, result.stdout)

    def test_a_nic_that_never_sleeps_runs_a_program(self):
        port = str(free_port())
        side = [*PINGPONG, "-p", port]
        result = run(BIN / "rocemu", "run", "--busy-poll", "--", *PAIR, port, *side, "--", *side,
                     "localhost")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_nic_that_never_sleeps_has_no_virtual_clock(self):
        result = run(BIN / "rocemu", "run", "--busy-poll", "--lockstep", "--", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--busy-poll is for the real clock", result.stdout)


if __name__ == "__main__":
    unittest.main()
