"""Random programs of processes and threads, which wait in all ways, have in lockstep the same run twice.

ROCEMU_RANDOM_PROGRAMS=5000 asks for more than a few, ROCEMU_RANDOM_SEED=N for others.
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from random_programs import failures, report  # noqa: E402

COUNT = int(os.environ.get("ROCEMU_RANDOM_PROGRAMS", "20"))
FIRST_SEED = int(os.environ.get("ROCEMU_RANDOM_SEED", "0"))
AT_ONCE = 4


class RandomPrograms(unittest.TestCase):
    def test_twice_the_same(self):
        seed, why = next(failures(FIRST_SEED, FIRST_SEED + COUNT, AT_ONCE), (None, ""))
        if seed is not None:
            self.fail(report(seed, why))


if __name__ == "__main__":
    unittest.main()
