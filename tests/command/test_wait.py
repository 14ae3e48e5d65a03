"""Tests `rocemu wait`, and the output of other commands with --json."""
import json
import unittest

from support import ROCEMU, CommandTest


class Wait(CommandTest):
    def test_for_a_listener_by_tcp_and_by_rdma_listen(self):
        port = self.free_port()
        for server in (f"ibv_rc_pingpong -g 0 -p {port}", f"rping -s -a 127.0.0.1 -p {port}"):
            with self.subTest(server):
                script = f"{server} >/dev/null & {ROCEMU} wait --listening {port}; status=$?; kill $!; exit $status"
                result = self.rocemu("run", "--", "sh", "-c", script)
                self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_in_lockstep(self):
        port = self.free_port()
        pair = (f"ibv_rc_pingpong -g 0 -n 5 -p {port} -d rocemu0 >/dev/null & {ROCEMU} wait --listening {port} && "
                f"ibv_rc_pingpong -g 0 -n 5 -p {port} -d rocemu1 localhost >/dev/null && wait $!")
        result = self.rocemu("run", "--lockstep", "--", "bash", "-c", pair)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_in_lockstep_sees_a_late_server_within_half_a_second(self):
        port = self.free_port()
        for late in (0.1, 2, 25):
            script = (f"(sleep {late}; exec ibv_rc_pingpong -g 0 -p {port} >/dev/null) & "
                      f"{ROCEMU} wait --listening {port} --json; status=$?; kill %1; exit $status")
            result = self.rocemu("run", "--lockstep", "--", "bash", "-m", "-c", script)
            self.assertEqual(result.returncode, 0, result.stderr)
            waited = json.loads(result.stdout)["waited_s"]
            self.assertGreaterEqual(waited, late - 0.001)
            self.assertLessEqual(waited, late + max(0.02, min(late / 8 + 0.02, 0.51)))

    def test_in_lockstep_for_minutes_in_vain(self):
        result = self.rocemu("run", "--lockstep", "--", ROCEMU, "wait", "--listening", str(self.free_port()), "--timeout",
                             "5m")
        self.assertEqual(result.returncode, 1, result.stderr)

    def test_in_vain_is_a_failure(self):
        port = self.free_port()
        result = self.rocemu("run", "--", ROCEMU, "wait", "--listening", str(port), "--timeout", "0.1s")
        self.assert_one_line(result, 1, f"no program listens at port {port} after 0.1s")
        result = self.rocemu("run", "--", ROCEMU, "wait", "--listening", port, "--timeout", "0.1")
        self.assert_one_line(result, 1, f"no program listens at port {port} after 0.1 s")
        self.assert_one_line(self.rocemu("wait", "--device-ready", "--timeout", "0.1"), 1, "no NIC is running")

    def test_for_a_device(self):
        result = self.rocemu("run", "--", ROCEMU, "wait", "--device-ready", "rocemu1", "--json")
        self.assertLess(json.loads(result.stdout)["waited_s"], 5)
        self.assert_one_line(self.rocemu("run", "--", ROCEMU, "wait", "--device-ready", "x"), 1,
                             "no device 'x'")
        script = f"{ROCEMU} set rocemu0 port down; {ROCEMU} wait --device-ready rocemu0 --timeout 0.1s"
        self.assert_one_line(self.rocemu("run", "--", "sh", "-c", script), 1, "rocemu0 is not ready")

    def test_wrong_usage(self):
        for arguments in ((), ("--listening", "70000"), ("--listening", "1", "--device-ready"),
                          ("--listening", "1", "rocemu0")):
            self.assertEqual(self.rocemu("wait", *arguments).returncode, 2)

    @staticmethod
    def free_port():
        import socket
        with socket.socket() as holder:
            holder.bind(("", 0))
            return holder.getsockname()[1]


class Json(CommandTest):
    def json_of(self, *arguments, status=0, env=None):
        result = self.rocemu(*arguments, env=env)
        self.assertEqual(result.returncode, status, result.stderr)
        return json.loads(result.stdout)

    def test_of_a_shared_nic(self):
        started = self.json_of("up", "--json")
        self.assertEqual((started["already"], started["devices"]), (False, ["rocemu0", "rocemu1"]))
        self.assertTrue(self.json_of("up", "--json")["already"] is True)
        self.assertEqual(self.json_of("set", "rocemu0", "port", "down", "--json"),
                         {"device": "rocemu0", "port": "down"})
        self.assertEqual(self.json_of("set", "rocemu1", "removed", "--json"),
                         {"device": "rocemu1", "removed": True})
        self.assertEqual(self.json_of("pause", "--json"), {"paused": True})
        self.assertEqual(self.json_of("step", "--json"), [])
        self.assertEqual(self.json_of("resume", "--json"), {"paused": False})
        rule = "{name: one, on: cm, do: drop}"
        self.assertEqual(self.json_of("inject", rule, "--json"), {"rules": ["one"]})
        self.assertEqual(self.json_of("inject", "--list", "--json")[0]["name"], "one")
        self.assertEqual(self.json_of("inject", "--clear", "--json"), {"cleared": ["one"]})
        self.assertTrue(self.json_of("down", "--json")["was_up"])
        self.assertEqual(self.json_of("down", "--json"), {"was_up": False})

    def test_of_recordings(self):
        for name in ("a", "b"):
            self.rocemu("run", "--lockstep", "--record", self.scratch / name, "--", "ibv_devinfo")
        same = self.json_of("diff", "--json", self.scratch / "a", self.scratch / "b")
        self.assertTrue(same["same"])
        self.rocemu("run", "--lockstep", "--record", self.scratch / "b", "--", "ibv_devinfo", "-d", "rocemu1")
        other = self.json_of("diff", "--json", self.scratch / "a", self.scratch / "b", status=1)
        self.assertFalse(other["same"])
        self.assertEqual(len(other["lines"]), 2)
        replayed = self.json_of("replay", "--json", self.scratch / "a")
        self.assertTrue(replayed["same"])
        until = self.json_of("replay", "--json", "--until", "event=2", self.scratch / "a")
        self.assertEqual(len(until["before"]), 2)
        self.assertIn("lanes", self.json_of("timeline", "--json", self.scratch / "a"))
        events = self.rocemu("timeline", "--events", self.scratch / "a").stdout.splitlines()
        self.assertEqual(json.loads(events[0])["what"], "attach")
        self.assertEqual(json.loads(events[0])["device"], "rocemu0")

    def test_of_explanations(self):
        self.assertEqual(self.json_of("explain", "--json", "RNR", "NAK")["name"], "RNR NAK")
        self.assertGreater(len(self.json_of("explain", "--list", "--json")), 60)


class Files(CommandTest):
    """Tests captures and recordings: their permissions, and their limits."""

    def test_follow_the_umask(self):
        import os
        for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
            with self.subTest(oct(mask)):
                place = self.scratch / oct(mask)
                before = os.umask(mask)
                try:
                    self.rocemu("run", "--capture", self.scratch / f"{mask}.pcap", "--record", place, "--",
                                "ibv_devinfo")
                finally:
                    os.umask(before)
                files = [self.scratch / f"{mask}.pcap", *place.iterdir()]
                self.assertEqual(len(files), 4)
                for file in files:
                    self.assertEqual(file.stat().st_mode & 0o777, mode, file)
                self.assertEqual(place.stat().st_mode & 0o777, 0o777 & ~mask)

    def test_keep_what_is_asked_for(self):
        import struct
        port = Wait.free_port()
        pair = (f"ibv_rc_pingpong -g 0 -n 20 -p {port} -d rocemu0 >/dev/null & {ROCEMU} wait --listening {port} && "
                f"ibv_rc_pingpong -g 0 -n 20 -p {port} -d rocemu1 localhost >/dev/null")
        capture = self.scratch / "x.pcap"
        result = self.rocemu("run", "--lockstep", "--capture", capture, "--capture-last", "5",
                             "--snap-length", "70", "--", "bash", "-c", pair)
        self.assertEqual(result.returncode, 0, result.stderr)
        contents, at, sizes = capture.read_bytes(), 24, []
        while at < len(contents):
            kept, size = struct.unpack_from("<II", contents, at + 8)
            sizes.append((kept, size))
            at += 16 + kept
        self.assertEqual(len(sizes), 5)
        self.assertTrue(all(kept == min(70, size) for kept, size in sizes), sizes)
        self.assertTrue(any(size > 70 for _, size in sizes), sizes)
        for option, value in (("--snap-length", "10"), ("--capture-last", "0"), ("--record-limit", "3x")):
            self.assert_one_line(self.rocemu("run", "--capture", capture, option, value, "--", "true"), 2, option)

    def test_a_recording_ends_at_its_limit(self):
        place = self.scratch / "r"
        result = self.rocemu("run", "--record", place, "--record-limit", "1k", "--", "ibv_devinfo", "-v")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--record-limit", result.stderr)
        self.assertLess((place / "journal").stat().st_size, 100_000)
        self.assertIn("cut off", self.rocemu("replay", place).stdout)
        # The limit can be reached before or after the program has started.
        for program in ("ibv_devinfo; exec sleep 600", *5 * ["exec sleep 600"]):
            stopped = self.rocemu("run", "--record", place, "--record-limit", "1k", "--record-policy", "stop",
                                  "--", "sh", "-c", program)
            self.assertNotEqual(stopped.returncode, 0)


if __name__ == "__main__":
    unittest.main()
