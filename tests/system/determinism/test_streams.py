"""Tests that reads of a full TCP stream have the same results in each run in lockstep, if the machine has
little other work. With more work, the kernel delivers the loopback interface's packets later
(docs/reference/lockstep.md)."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import STREAM_CASE  # noqa: E402
from runs import difference, repeat  # noqa: E402

RUNS = int(os.environ.get("ROCEMU_DETERMINISM_RUNS", "10"))


class Streams(unittest.TestCase):
    def test_reads_find_the_same_sizes(self):
        first, *others = repeat(STREAM_CASE, RUNS, loaded=False)
        self.assertFalse(first.failed, first.story())
        self.assertIn(b"reads: 8192", first.parts["stdout"])
        for run in others:
            self.assertEqual(difference(first, run), "")


if __name__ == "__main__":
    unittest.main()
