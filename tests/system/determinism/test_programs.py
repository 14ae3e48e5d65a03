"""Tests that each run of a program in lockstep is the same, byte for byte, for programs of all kinds and
however busy the machine is. ROCEMU_DETERMINISM_RUNS=50 runs each program more often; half of the runs are
beside a load."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import PROGRAM_CASES  # noqa: E402
from runs import assert_same  # noqa: E402
from rocemu import BIN, AtOnce, rocemu_run  # noqa: E402

RUNS = int(os.environ.get("ROCEMU_DETERMINISM_RUNS", "4"))


class Programs(unittest.TestCase):
    def test_one_that_loads_slowly_keeps_its_place(self):
        command = ('LD_PRELOAD="$LD_PRELOAD:$0" /bin/echo first & /bin/echo second; wait')
        result = rocemu_run("sh", "-c", command, BIN / "libloads_slowly.so", options=["--lockstep"])
        self.assertEqual(result.stdout, "first\nsecond\n")


for _case in PROGRAM_CASES:
    setattr(Programs, f"test_{_case.subject}_{_case.name}",
            lambda self, case=_case: assert_same(self, case, RUNS))


def load_tests(_loader, tests, _pattern):
    return AtOnce(tests)


if __name__ == "__main__":
    unittest.main()
