"""Runs the scenarios of the library with stock programs: in lockstep, each run must be the same.

ROCEMU_DETERMINISM_RUNS=20 runs each scenario with each program that often; otherwise each scenario is run with
one program, twice.
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import Case, perftest, stock_commands  # noqa: E402
from runs import difference, repeat  # noqa: E402
from rocemu import HERE, AtOnce  # noqa: E402

RUNS = int(os.environ.get("ROCEMU_DETERMINISM_RUNS", "0"))
SCENARIOS = sorted(path.stem for path in (HERE.parent.parent / "scenarios").glob("*.yaml"))


# With rnr-exceeded, the program sends again for two minutes, which is perftest's own limit. With as many messages
# as in other scenarios, it would send nine million frames.
FEW_MESSAGES = {("ib_send_bw_e", "rnr-exceeded"): perftest("ib_send_bw", "-e", "-n", "5", "-s", "64")}


def cases():
    for number, scenario in enumerate(SCENARIOS):
        commands = list(stock_commands().items())
        for name, command in commands if RUNS else [commands[number % len(commands)]]:
            yield Case(f"{name}_{scenario.replace('-', '_')}", "Library",
                       FEW_MESSAGES.get((name, scenario), command),
                       options=("--scenario", scenario),
                       measures=name == "ib_send_bw_e")


class Library(unittest.TestCase):
    """Programs may fail, since most scenarios make them fail."""

    def check(self, case):
        first = None
        for number, run in enumerate(repeat(case, RUNS or 2)):
            self.assertNotEqual(run.parts["status"], b"124", run.story())
            first = first or run
            self.assertEqual(difference(first, run), "", f"run {number} of {case.name}")


for _case in cases():
    setattr(Library, f"test_{_case.name}", lambda self, case=_case: self.check(case))


def load_tests(_loader, tests, _pattern):
    return AtOnce(tests)


if __name__ == "__main__":
    unittest.main()
