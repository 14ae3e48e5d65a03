"""Tests a daemon that is stopped again and again for 0.1 s, which is longer than the ACK timeout of perftest's
QPs (67 ms). On a fabric without loss, no connection may break, and nothing may be sent again."""
import os
import signal
import time
import unittest

from rocemu import PAIR, AtOnce, free_port
from shared_daemon import SharedDaemon

# ROCEMU_STOP_ROUNDS=1000 runs more.
ROUNDS = int(os.environ.get("ROCEMU_STOP_ROUNDS", "50"))
STOPPED, RUNNING = 0.1, 0.02  # seconds
PROGRAMS = [
    "ib_read_bw -s 65536 -o 16",
    "ib_write_bw -s 65536 -t 64",
    "ib_atomic_bw -o 16",
    "ib_send_lat -c UD -s 1024",
]


class StoppedDaemon(SharedDaemon):
    def counters(self):
        fabric = self.fabric()["fabric"]
        return {(device["name"], name): count for device in fabric["devices"]
                for name, count in device["counters"].items()}

    def start_pair(self, command, seconds):
        port = str(free_port())
        common = [*command.split(), "-F", "-p", port, "-D", str(seconds)]
        return self.start(*PAIR, port, *common, "-d", "rocemu0", "--", *common, "-d", "rocemu1",
                          "localhost")

    def check(self, command):
        pid = self.fabric()["pid"]
        seconds = int(ROUNDS * (STOPPED + RUNNING)) + 1
        pair = self.start_pair(command, seconds)
        self.wait_until(lambda: self.objects() >= 6, "the QPs")
        for _ in range(ROUNDS):
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(STOPPED)
            finally:
                os.kill(pid, signal.SIGCONT)
            time.sleep(RUNNING)
        said = pair.communicate()[0]
        self.assertEqual(pair.returncode, 0, said)
        after = self.counters()
        for device in ("rocemu0", "rocemu1"):
            self.assertGreater(after[device, "frames_in"], ROUNDS, said)
            self.assertEqual(after[device, "ack_timeouts"], 0, said)
            self.assertEqual(after[device, "retransmitted_frames"], 0, said)


def add_test(command):
    name = command.split()[0]
    setattr(StoppedDaemon, f"test_{name}_survives", lambda self: self.check(command))


for each in PROGRAMS:
    add_test(each)


def load_tests(_loader, tests, _pattern):
    """Runs all tests at the same time, each with a separate daemon, since the programs mostly wait."""
    return AtOnce(tests)


if __name__ == "__main__":
    unittest.main()
