"""Tests the option `--adversarial`: its values, recordings, and the answers of ibv_query_qp_data_in_order(3)."""
import pathlib
import tempfile
import unittest

from test_programs import BIN, run, subprocess


def rocemu(*arguments):
    return subprocess.run([BIN / "rocemu", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=120, check=False)


class Options(unittest.TestCase):
    def test_refuses_a_class_that_there_is_not(self):
        result = run("last_byte", "--adversarial=placement,latency")
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("--adversarial has no class 'latency'; use placement, late-read, undefined, order, atomicity, "
                      "relaxed, or all", result.stdout)

    def test_refuses_an_empty_class(self):
        for value in ("placement,", ",placement", "placement,,order", ","):
            result = run("last_byte", f"--adversarial={value}")
            self.assertEqual(result.returncode, 2, value)
            self.assertIn("--adversarial has no class ''", result.stdout)
        self.assertIn("has no value after '='", run("last_byte", "--adversarial=").stdout)

    def test_a_class_that_is_off_changes_nothing(self):
        for seed in range(10):
            result = run("last_byte", "--adversarial=order,atomicity,relaxed,undefined", "--seed", str(seed))
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_recording_replays(self):
        """The classes are in the journal's header, so the replayed engine acts in the same way."""
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(4):
                recording = pathlib.Path(folder) / str(seed)
                run("sequence_lock", "--adversarial", "--seed", str(seed), "--record", recording)
                self.assertIn('"adversarial":63', (recording / "journal").read_bytes()[:4096].decode(errors="replace"))
                result = rocemu("replay", recording)
                self.assertEqual(result.returncode, 0, result.stdout)

    def test_two_runs_are_the_same_to_the_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            recordings = [pathlib.Path(folder) / name for name in ("a", "b")]
            for recording in recordings:
                run("sequence_lock", "--adversarial", "--seed", "7", "--record", recording)
            result = rocemu("diff", *recordings)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_works_on_the_real_clock(self):
        command = [BIN / "rocemu", "run", "--private", "--adversarial", "--", BIN / "adversarial" / "last_byte_right"]
        for _ in range(5):
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                                    check=False)
            self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
