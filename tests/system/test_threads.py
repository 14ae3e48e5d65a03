"""What other tests do, with each device in a thread of its own (--threads)."""
import json
import unittest

import rocemu
import test_capture
import test_diagnosis
import test_pingpong
import test_pingpong_transports
import test_rdmacm
from rocemu import HERE, ROCEMU, free_port, rocemu_run

rocemu.EVERY_RUN_HAS = ["--threads"]


class Pingpong(test_pingpong.Pingpong):
    pass


class UcPingpong(test_pingpong_transports.UcPingpong):
    pass


class UdPingpong(test_pingpong_transports.UdPingpong):
    pass


class SrqPingpong(test_pingpong_transports.SrqPingpong):
    pass


class XsrqPingpong(test_pingpong_transports.XsrqPingpong):
    pass


class Capture(test_capture.Capture):
    pass


class Connected(test_rdmacm.Connected):
    test_perftest = None  # has a scenario, which needs one thread


class Datagrams(test_rdmacm.Datagrams):
    pass


class Refused(test_rdmacm.Refused):
    pass


class PortEvents(test_diagnosis.PortEvents):
    pass


class Rdma(test_diagnosis.Rdma):
    pass


class Perftest(unittest.TestCase):
    def test_between_two_devices(self):
        for program in ("ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_atomic_lat", "ib_send_bw",
                        "ib_send_bw -c UD", "ib_write_bw -q 16"):
            with self.subTest(program):
                port = str(free_port())
                common = [*program.split(), "-p", port, "-n", "1000", "-F"]
                result = rocemu_run(*rocemu.PAIR, port, *common, "-d", "rocemu0", "--", *common,
                                    "-d", "rocemu1", "localhost")
                self.assertEqual(result.returncode, 0, result.stdout)


class OneNic(unittest.TestCase):
    """A NIC of several threads is one to those who look at it."""

    def test_show_has_the_objects_of_all_devices(self):
        script = """
import json, subprocess, sys
from rocemu import ROCEMU
tools = [subprocess.Popen(["ibv_asyncwatch", "-d", device], stdout=subprocess.PIPE)
         for device in ("rocemu0", "rocemu1")]
for tool in tools: tool.stdout.readline()
sys.stdout.buffer.write(subprocess.run([ROCEMU, "show", "--json"], stdout=subprocess.PIPE).stdout)
for tool in tools: tool.kill()
"""
        result = rocemu_run("/usr/bin/python3", "-c", script, cwd=HERE)
        self.assertEqual(result.returncode, 0, result.stdout)
        clients = json.loads(result.stdout)["clients"]
        watching = [one for one in clients if one["comm"] == "ibv_asyncwatch"]
        self.assertEqual(len(watching), 2, result.stdout)
        self.assertEqual(len({one["id"] for one in clients}), len(clients), result.stdout)

    def test_many_devices(self):
        for device in ("rocemu0", "rocemu63"):
            port = str(free_port())
            common = ["ibv_rc_pingpong", "-p", port, "-g", "0", "-c"]
            result = rocemu_run(*rocemu.PAIR, port, *common, "-d", "rocemu7", "--", *common, "-d",
                                device, "localhost", options=("--devices", "64"))
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_what_needs_one_thread_is_refused(self):
        for option in (["--lockstep"], ["--clock", "virtual"], ["--record", "r"],
                       ["--scenario", "cm-reject"], ["--udp", "--device", "a=127.0.0.1"]):
            result = rocemu_run("true", options=option)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn("needs one thread; leave out --threads", result.stdout)

    def test_a_rule_is_refused_where_there_are_threads(self):
        result = rocemu_run(ROCEMU, "inject", "{on: frame, do: drop}")
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn("start it without --threads", result.stdout)


if __name__ == "__main__":
    unittest.main()
