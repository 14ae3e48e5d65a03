"""Runs programs that rely on behavior that the specification does not define, and their correct twins
(programs/CLASS/NAME.c).

A wrong one passes by default, and fails with `--adversarial=CLASS` within 20 seeds. A correct one passes with
all classes on. ROCEMU_ADVERSARIAL_SEEDS sets the number of seeds for each correct program (default 12)."""
import concurrent.futures
import os
import pathlib
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
SEEDS_TO_FAIL = 20
SEEDS_TO_PASS = int(os.environ.get("ROCEMU_ADVERSARIAL_SEEDS", "12"))
PROGRAMS = sorted((HERE / "programs").glob("*/*.c"))


def run(program, *options):
    command = [BIN / "rocemu", "run", "--private", "--lockstep", *options, "--", BIN / "adversarial" / program]
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=120, check=False)


def each_seed(program, classes, count):
    """Yields (seed, exit status, output) for each run."""
    def one(seed):
        result = run(program, classes, "--seed", str(seed))
        return seed, result.returncode, result.stdout
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(one, range(count))


class Programs(unittest.TestCase):
    def test_each_class_has_three(self):
        classes = {}
        for source in PROGRAMS:
            classes.setdefault(source.parent.name, []).append(source.stem)
        self.assertEqual(sorted(classes), ["atomicity", "late_read", "order", "placement", "relaxed", "undefined"])
        for name, programs in classes.items():
            self.assertGreaterEqual(len(programs), 3, name)

    def test_all_pass_by_default(self):
        for source in PROGRAMS:
            for program in (source.stem, source.stem + "_right"):
                with self.subTest(program):
                    result = run(program)
                    self.assertEqual(result.returncode, 0, result.stdout)

    def test_wrong_ones_fail_within_20_seeds(self):
        for source in PROGRAMS:
            with self.subTest(source.stem):
                option = f"--adversarial={source.parent.name.replace('_', '-')}"
                for seed in range(SEEDS_TO_FAIL):
                    result = run(source.stem, option, "--seed", str(seed))
                    if result.returncode != 0:
                        break
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("failed: ", result.stdout)
                # Another run with this seed must be the same.
                again = run(source.stem, option, "--seed", str(seed))
                self.assertEqual((again.returncode, again.stdout), (result.returncode, result.stdout))

    def test_right_ones_pass_with_all_classes(self):
        for source in PROGRAMS:
            with self.subTest(source.stem):
                for seed, status, output in each_seed(source.stem + "_right", "--adversarial", SEEDS_TO_PASS):
                    self.assertEqual(status, 0, f"seed {seed}: {output}")


if __name__ == "__main__":
    unittest.main()
