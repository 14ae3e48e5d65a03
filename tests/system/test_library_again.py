"""Runs each scenario that comes with rocemu repeatedly in lockstep: all runs must be the same, although half of them
run beside processes that use the processor. If the connection manager chooses the PSNs, captures must be the same,
byte for byte."""
import os
import pathlib
import re
import subprocess
import unittest

from library_programs import COMMANDS
from rocemu import ROCEMU, rocemu_run, run, temporary_directory

# ROCEMU_LOCKSTEP_RUNS=50 runs more.
RUNS = int(os.environ.get("ROCEMU_LOCKSTEP_RUNS", "2"))


# A server that would never end is killed when its client has ended. Lockstep does not determine when: the test kills it
# at some real time. Nothing else may differ.
KILLED = re.compile(r"  \d+ detach client=\S+\n(  \d+ close_event_channel channel=\d+\n)?"
                    r"(\S+: \d+ close_event_channel channel=\d+\n){2}\s*\Z")


class Again(unittest.TestCase):
    def check(self, name):
        command = COMMANDS[name]()
        with temporary_directory() as directory:
            recordings = [pathlib.Path(directory) / str(number) for number in range(RUNS)]
            statuses = set()
            for number, recording in enumerate(recordings):
                hogs = subprocess.Popen(["stress-ng", "--quiet", "--cpu", "4"]) if number % 2 else None
                try:
                    result = rocemu_run(*command, options=(
                        "--lockstep", "--strict", "--scenario", name, "--record", recording))
                finally:
                    if hogs is not None:
                        hogs.terminate()
                        hogs.wait()
                statuses.add(result.returncode)
                self.assertEqual(len(statuses), 1, result.stdout)
                if number == 0:
                    continue
                comparison = run(ROCEMU, "diff", recordings[0], recording)
                if "CM_PAIR_KILLS_SERVER=1" not in command or not KILLED.search(comparison.stdout):
                    self.assertEqual(comparison.returncode, 0, f"run {number}: {comparison.stdout}")
                if "cm_pair.py" in " ".join(command):
                    self.assertEqual((recordings[0] / "trace.pcap").read_bytes(),
                                     (recording / "trace.pcap").read_bytes(), f"run {number}")


def add_test(name):
    setattr(Again, "test_" + name.replace("-", "_"), lambda self: self.check(name))


for each in COMMANDS:
    add_test(each)


if __name__ == "__main__":
    unittest.main()
