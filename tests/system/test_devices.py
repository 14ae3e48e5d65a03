"""Tests what stock tools print about devices and about errors on them."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

from rocemu import BIN, ROCEMU, pingpong_pair, rocemu_run, run


class Devices(unittest.TestCase):
    def test_ibv_devices_lists_two(self):
        result = rocemu_run("ibv_devices")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(re.findall(r"rocemu\d+", result.stdout), ["rocemu0", "rocemu1"])

    def test_as_many_devices_as_asked_for(self):
        result = rocemu_run("ibv_devices", options=("--devices", "5"))
        self.assertEqual(len(re.findall(r"rocemu\d+", result.stdout)), 5, result.stdout)

    def test_devices_of_other_names_and_addresses(self):
        result = rocemu_run("ibv_devinfo", "-v",
                            options=("--device", "mlx5_0=127.0.0.9", "--device", "mlx5_1"))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(re.findall(r"hca_id:\s+(\S+)", result.stdout), ["mlx5_0", "mlx5_1"])
        self.assertIn("::ffff:127.0.0.9", result.stdout)

    def test_ibv_devinfo_describes_an_active_roce_port(self):
        result = rocemu_run("ibv_devinfo", "-v")
        self.assertEqual(result.returncode, 0, result.stdout)
        for expected in (r"state:\s+PORT_ACTIVE \(4\)", r"link_layer:\s+Ethernet",
                         r"active_mtu:\s+4096 \(5\)", r"max_mtu:\s+4096 \(5\)",
                         r"GID\[\s*0\]:\s+::ffff:127\.0\.0\.1, RoCE v2",
                         r"GID\[\s*1\]:\s+::1, RoCE v2",
                         r"GID\[\s*0\]:\s+::ffff:127\.0\.0\.2, RoCE v2"):
            self.assertRegex(result.stdout, expected)

    def test_without_rocemu_run_there_is_no_device(self):
        outside = {name: value for name, value in os.environ.items()
                   # the variables that `rocemu run` sets
                   if name not in ("LD_PRELOAD", "ROCEMU_DIR")}
        result = run("ibv_devices", env=outside)
        self.assertNotIn("rocemu", result.stdout)

    def test_a_program_may_remove_its_environment_before_its_first_verb(self):
        """The program uses libibverbs after clearenv(3) or unsetenv(3), as some servers do, and opens a device."""
        program = ("import ctypes, sys\n"
                   "libc, count = ctypes.CDLL(None), ctypes.c_int()\n"
                   "libc.clearenv() if sys.argv[1] == 'all' else libc.unsetenv(sys.argv[1].encode())\n"
                   "verbs = ctypes.CDLL('libibverbs.so.1')\n"
                   "verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)\n"
                   "verbs.ibv_open_device.argtypes = [ctypes.c_void_p]\n"
                   "verbs.ibv_open_device.restype = ctypes.c_void_p\n"
                   "devices = verbs.ibv_get_device_list(ctypes.byref(count))\n"
                   "print(count.value, count.value and bool(verbs.ibv_open_device(devices[0])))\n")
        for removed in ("all", "ROCEMU_DIR", "LD_PRELOAD"):
            for clock in ((), ("--lockstep",)):
                with self.subTest(removed, clock=clock):
                    result = rocemu_run(sys.executable, "-c", program, removed, options=clock)
                    self.assertEqual((result.returncode, result.stdout), (0, "2 True\n"))

    def test_ibv_asyncwatch_sees_nothing_of_another_process(self):
        script = ("ibv_asyncwatch -d rocemu0 > watched.txt & watcher=$!;"
                  "until grep -q 'async event FD' watched.txt; do sleep 0.01; done;"
                  f"{BIN}/overrun_cq rocemu0; status=$?;"
                  "kill $watcher; wait $watcher; cat watched.txt; rm watched.txt; exit $status")
        import tempfile
        with tempfile.TemporaryDirectory() as directory:
            result = rocemu_run("stdbuf", "-oL", "sh", "-c", script, cwd=directory)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("IBV_EVENT_CQ_ERR", result.stdout)
        self.assertIn("ibv_poll_cq returned -", result.stdout)
        self.assertNotIn("event_type", result.stdout)

    def test_a_program_that_links_librocemu_needs_no_preload(self):
        """Nothing but ROCEMU_DIR tells the program where the daemon is."""
        command = f"LD_PRELOAD= {BIN}/list_devices_linked"
        result = rocemu_run("sh", "-c", command)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.split(), ["rocemu0", "rocemu1"])


class Show(unittest.TestCase):
    def show(self):
        result = rocemu_run("sh", "-c", f"{ROCEMU} show --json")
        self.assertEqual(result.returncode, 0, result.stdout)
        return json.loads(result.stdout)

    def test_json_names_the_devices_and_their_gids(self):
        devices = self.show()["fabric"]["devices"]
        self.assertEqual([device["name"] for device in devices], ["rocemu0", "rocemu1"])
        self.assertEqual(devices[1]["gids"][0], "127.0.0.2")
        self.assertEqual(devices[0]["qps"], [])

    def test_counters_account_for_every_frame(self):
        pair = " ".join(pingpong_pair("-n", "100", "-s", "64"))
        result = rocemu_run("sh", "-c", f"{pair} > /dev/null && {ROCEMU} show --json")
        self.assertEqual(result.returncode, 0, result.stdout)
        counters = json.loads(result.stdout)["fabric"]["devices"][0]["counters"]
        self.assertEqual(counters["frames_out"], 400)  # 200 messages and their 200 acknowledgements
        self.assertEqual(counters["frames_in"], 400)
        self.assertEqual(counters["retransmitted_frames"], 0)
        self.assertEqual([name for name, value in counters.items()
                          if name.startswith("dropped") and value], [])


if __name__ == "__main__":
    unittest.main()
