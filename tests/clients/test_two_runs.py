"""Tests the most frequent mistake: two `rocemu run` are two separate NICs."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import unittest

from pair import listening
from rocemu import BIN, PAIR, ROCEMU, free_port, kill, run, temporary_directory


class TwoRuns(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": directory.name}
        self.shared = f"{directory.name}/rocemu/shared"

    def start(self, *command):
        process = subprocess.Popen([ROCEMU, "run", "--", *command], env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGTERM)
        return process

    def run_here(self, *command):
        return run(ROCEMU, "run", "--", *command, env=self.environment)

    def assert_explained(self, output, server, what):
        self.assertIn(what, output)
        self.assertIn(f"Is its peer under another `rocemu run` (pid {server.pid}: ", output)
        self.assertIn("Start a NIC for both programs with `rocemu up`", output)

    def test_a_client_that_meets_itself_is_told(self):
        port = str(free_port())
        common = ["ibv_rc_pingpong", "-g", "0", "-p", port]
        server = self.start(*common)
        while not listening(int(port)):
            self.assertIsNone(server.poll())
        result = self.run_here(*common, "127.0.0.1")
        self.assertNotEqual(result.returncode, 0)
        self.assert_explained(result.stdout, server, "connects its QP 17 to that same QP")

    def test_a_run_that_has_nothing_to_do_with_it_is_not_named(self):
        server = self.start("sleep", "1000")
        base = pathlib.Path(self.shared).parent
        while not any(base.glob("run-*/control")):
            self.assertIsNone(server.poll())
        result = self.run_here("rping", "-c", "-a", "127.0.0.1", "-C", "1", "-p", "7174")
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("another `rocemu run`", result.stdout)
        port = str(free_port())
        meets_itself = run(ROCEMU, "run", "--", *PAIR, port, "ibv_rc_pingpong", "-g", "0", "-p", port,
                           "--", "ibv_rc_pingpong", "-g", "0", "-p", port, "localhost",
                           env=self.environment)
        self.assertEqual(meets_itself.returncode, 0, meets_itself.stdout)
        self.assertNotIn("another `rocemu run`", meets_itself.stdout)

    def test_alone_nothing_is_said(self):
        result = self.run_here("rping", "-c", "-a", "127.0.0.1", "-C", "1", "-p", "7174")
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("another `rocemu run`", result.stdout)

    def test_a_shared_nic_that_died_is_missed(self):
        self.assertEqual(run(ROCEMU, "up", env=self.environment).returncode, 0)
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(f"{self.shared}/control")
            control.sendall(b'{"command":"version"}\n')
            pid = json.loads(control.recv(65536))["pid"]
            kill(pid)
            while control.recv(1):  # its end
                pass
        result = self.run_here("true")
        self.assertEqual(result.returncode, 0)
        self.assertIn("the shared NIC has died", result.stdout)
        self.assertIn("this run has a private NIC", result.stdout)
        self.assertEqual(run(ROCEMU, "down", env=self.environment).returncode, 0)
        self.assertNotIn("has died", self.run_here("true").stdout)


class Keys(unittest.TestCase):
    PROGRAM = """
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.mr import MR
from verbs_enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE
context = Context(name="rocemu0")
mr = MR(PD(context), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
print("equal" if mr.lkey == mr.rkey else "different")
"""

    def test_an_lkey_in_place_of_an_rkey_is_named_in_the_log(self):
        result = run(ROCEMU, "run", "--private", "--", f"{BIN}/man_page_tests",
                     "--gtest_filter=Keys.*")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("it names the L_Key of a region where its R_Key"), 1)
        self.assertIn("with --same-keys they are equal here", result.stdout)

    def test_an_l_key_of_a_region_without_an_r_key_is_not_named(self):
        for options in (["--same-keys"], []):
            result = run(ROCEMU, "run", "--private", *options, "--", f"{BIN}/man_page_tests",
                         "--gtest_filter=Keys.TheLKeyOfARegionWithoutAnRKeyDoesNotGiveVendorError22")
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertNotIn("--same-keys", result.stdout)

    def test_same_keys_makes_them_equal(self):
        for options, expected in (([], "different\n"), (["--same-keys"], "equal\n")):
            result = run(ROCEMU, "run", "--private", *options, "--", "/usr/bin/python3", "-c",
                         self.PROGRAM)
            self.assertEqual(result.stdout, expected)


if __name__ == "__main__":
    unittest.main()
