"""Runs random programs twice in lockstep. The programs have several processes and threads, and wait in
all ways; both runs must be the same. ROCEMU_RANDOM_PROGRAMS=5000 requests more than a few programs,
ROCEMU_RANDOM_SEED=N other ones.
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
