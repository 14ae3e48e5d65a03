"""Tests small resource limits: rocemu reports which limit is too small, and what to do."""
import subprocess
import unittest

from support import BIN, ROCEMU, CommandTest

LIMITS = {  # option of ulimit, and the text that rocemu prints
    "-n 12": "a process may have 12 file descriptors at most",
    "-n 32": "a process may have 32 file descriptors at most",
    "-Sn 12": "a process may have 12 file descriptors, and",
    "-s 24": "stacks may have 24 KiB",  # with a smaller limit, the dynamic loader crashes
    "-f 0": "files may have 0 KiB",
}


class SmallLimits(CommandTest):
    def run_with(self, limit, *command):
        # Output goes to a pipe, to which the limit of file sizes does not apply.
        return subprocess.run(["bash", "-c", f'ulimit {limit} && exec "$@"', "bash",
                               *map(str, command)], env=self.environment, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False)

    def test_are_named_with_what_to_do(self):
        for limit, text in LIMITS.items():
            for command in (["run", "--private", "--", "ibv_devices"], ["up"]):
                with self.subTest(limit, command=command):
                    result = self.run_with(limit, ROCEMU, *command)
                    self.assertEqual(result.returncode, 1)
                    self.assertRegex(result.stderr, r"\Arocemu: [^\n]+\n\Z")
                    self.assertIn(f"no NIC can be started: {text}", result.stderr)
                    self.assertIn("raise it: ulimit -", result.stderr)

    def test_are_named_by_rocemud_and_the_doctor(self):
        for limit, text in LIMITS.items():
            with self.subTest(limit):
                daemon = self.run_with(limit, BIN / "rocemud", "--dir", self.scratch / "dir")
                self.assertEqual(daemon.returncode, 1)
                self.assertIn(text, daemon.stderr)
                doctor = self.run_with(limit, ROCEMU, "doctor")
                self.assertIn(text, doctor.stdout + doctor.stderr)
                self.assertEqual(doctor.returncode, 1)

    def test_that_are_just_large_enough_are_no_obstacle(self):
        for limit in ("-n 128", "-s 64", "-f 1024"):
            result = self.run_with(limit, ROCEMU, "run", "--private", "--", "ibv_devinfo", "-d",
                                   "rocemu0")
            self.assertEqual((result.returncode, result.stderr), (0, ""), limit)


if __name__ == "__main__":
    unittest.main()
