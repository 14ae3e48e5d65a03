"""Tests `--adversarial --sanitize`: if the NIC causes a failure, the sanitizer reports its cause; for correct
programs, it reports nothing."""
import re
import unittest

from test_programs import BIN, PROGRAMS, run

SEEDS = 20


def judged(program, seed):
    """Returns the output of a run with all classes and all rules that are on by default."""
    return run(program, "--adversarial", "--sanitize", "--seed", str(seed)).stdout


class Sanitizer(unittest.TestCase):
    def assert_named(self, program, rule):
        """Checks that a run with one of the seeds reports the rule."""
        for seed in range(SEEDS):
            output = judged(program, seed)
            if f"error [{rule}]" in output:
                return
        self.fail(output)

    def test_names_the_buffer_that_was_filled_too_early(self):
        """The buffer is named even if the program finds wrong data and ends before it polls the completion."""
        for program in ("paced_reuse", "other_completion", "unsignaled_ring"):
            with self.subTest(program):
                self.assert_named(program, "send-buffer-modified")

    def test_names_a_lost_wake_up_and_racing_writes(self):
        for program, rule in (("lost_wakeup", "lost-wakeup"), ("remote_write_race", "remote-write-race")):
            with self.subTest(program):
                self.assert_named(BIN / "sanitizer" / program, rule)
                for seed in range(3):
                    self.assertNotIn("rocemu: error", judged(BIN / "sanitizer" / f"{program}_right", seed))

    def test_blames_no_right_program(self):
        for source in PROGRAMS:
            for seed in range(2):
                with self.subTest(source.stem, seed=seed):
                    rules = set(re.findall(r"^rocemu: error \[(.*?)\]", judged(source.stem + "_right", seed), re.M))
                    # Programs of the class `undefined` fail on purpose, so an explanation of the failure is allowed.
                    self.assertEqual(rules - {"protection-explained"}, set())


if __name__ == "__main__":
    unittest.main()
