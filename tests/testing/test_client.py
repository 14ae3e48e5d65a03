"""Tests share/rocemu/python/rocemu.py, method by method."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["ROCEMU_BUILD"], "share", "rocemu", "python"))
import rocemu  # noqa: E402

SEND = """
import sys
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.mr import MR
IBV_ACCESS_LOCAL_WRITE = 1
try:
    MR(PD(Context(name=sys.argv[1])), 4096, IBV_ACCESS_LOCAL_WRITE)
except Exception as error:
    sys.exit(str(error))
"""


class Faults(unittest.TestCase):
    def test_rules_come_act_and_go(self):
        with rocemu.Fabric(devices=["mlx5_0=10.0.0.1"]) as fabric:
            program = ["/usr/bin/python3", "-c", SEND, "mlx5_0"]
            self.assertEqual(fabric.add("{name: full, on: verb, verb: reg_mr, do: {errno: ENOMEM}}"),
                             "full")
            failed = fabric.run(program, capture_output=True, text=True)
            self.assertIn("Cannot allocate memory", failed.stderr)
            self.assertEqual(fabric.rules(), [rocemu.Rule("full", "verb", 1, 1)])
            fabric.clear("full")
            self.assertEqual(fabric.run(program).returncode, 0)
            self.assertEqual(fabric.rules(), [])
            self.assertEqual(fabric.load("rules:\n- {on: cm, do: drop}\n- {on: event, do: drop}\n"),
                             ["rule 1", "rule 2"])
            fabric.clear()
            self.assertEqual(fabric.rules(), [])

    def test_what_is_wrong_is_said_with_its_place(self):
        with rocemu.Fabric() as fabric:
            with self.assertRaisesRegex(rocemu.Error, "rule:1:17: there is no 'dorp'"):
                fabric.add("{on: frame, do: dorp}")
            with self.assertRaisesRegex(rocemu.Error, "there is no rule 'b'"):
                fabric.clear("b")
            with self.assertRaisesRegex(rocemu.Error, "unknown; the commands are"):
                fabric.request("dance")
            with self.assertRaisesRegex(rocemu.Error, "real clock"):
                fabric.advance(1)
            with self.assertRaisesRegex(rocemu.Error, "record=True"):
                fabric.events()

    def test_a_scenario_by_name(self):
        with rocemu.Fabric(scenario="verb-enomem") as fabric:
            self.assertEqual([rule.name for rule in fabric.rules()], ["no-memory"])


class Time(unittest.TestCase):
    def test_stands_still_while_it_is_held(self):
        with rocemu.Fabric(clock="lockstep") as fabric:
            self.assertTrue(fabric.hold().held)
            before = fabric.clock()
            self.assertEqual(before.kind, "virtual")
            self.assertAlmostEqual(fabric.advance(3600).now, before.now + 3600)
            self.assertFalse(fabric.hold(False).held)
            fabric.wait_until_idle()

    def test_the_clock_is_real_or_that_of_lockstep(self):
        with self.assertRaisesRegex(rocemu.Error, "clock='virtual' is neither 'real' nor 'lockstep'"):
            rocemu.Fabric(clock="virtual")

    def test_ends_after_a_century(self):
        century = 100 * 365 * 24 * 3600
        with rocemu.Fabric(clock="lockstep") as fabric:
            fabric.hold()
            fabric.advance(century - 3600)
            with self.assertRaisesRegex(rocemu.Error, "number of nanoseconds up to"):
                fabric.advance(3601)
            self.assertLess(fabric.clock().now, century)


class WhatThereIs(unittest.TestCase):
    def test_objects_counters_and_events(self):
        with rocemu.Fabric(record=True, seed=7) as fabric:
            recording = pathlib.Path(fabric.recording)
            program = ["/usr/bin/python3", "-c", SEND, "rocemu1"]
            self.assertEqual(fabric.run(program).returncode, 0)
            self.assertEqual(fabric.device("rocemu1")["mrs"], [])
            self.assertEqual(fabric.counters("rocemu0")["frames_out"], 0)
            self.assertEqual(len(fabric.events("verb", verb="reg_mr")), 1)
            with self.assertRaisesRegex(rocemu.Error, "no device 'x'"):
                fabric.counters("x")
        self.assertFalse(recording.exists())


    def test_frames_are_events(self):
        with rocemu.Fabric(clock="lockstep", record=True) as fabric, \
                tempfile.TemporaryDirectory() as directory:
            port = str(rocemu.free_port())
            pingpong = ["ibv_rc_pingpong", "-g", "0", "-n", "3", "-p", port]
            server = fabric.popen([*pingpong, "-d", "rocemu0"], stdout=subprocess.DEVNULL)
            fabric.wait_listening(int(port))
            fabric.run([*pingpong, "-d", "rocemu1", "localhost"], stdout=subprocess.DEVNULL)
            self.assertEqual(server.wait(60), 0)
            acknowledgements = fabric.events("frame", opcode="RC Acknowledge")
            self.assertEqual(len(acknowledgements), 6)
            self.assertEqual({one["to"] for one in acknowledgements}, {"127.0.0.1", "127.0.0.2"})
            self.assertEqual({one["type"] for one in fabric.events("verb", verb="create_qp")}, {"RC"})
            frames = pathlib.Path(directory) / "frames.pcap"
            fabric.capture(frames)
            self.assertGreater(frames.stat().st_size, 24)
            fabric.timeline(pathlib.Path(directory) / "page.html")

    def test_the_nic_as_a_whole(self):
        with rocemu.Fabric() as fabric:
            fabric.set_port("rocemu0", False)
            self.assertEqual(fabric.device("rocemu0")["port_state"], "DOWN")
            fabric.set_port("rocemu0", True)
            fabric.pause()
            self.assertEqual(fabric.step(), [])
            fabric.resume()
            with self.assertRaisesRegex(rocemu.Error, "not paused"):
                fabric.step()
            fabric.remove_device("rocemu1")
            with self.assertRaisesRegex(rocemu.Error, "was removed"):
                fabric.set_port("rocemu1", True)


class Lifetime(unittest.TestCase):
    def test_nothing_is_left(self):
        fabric = rocemu.Fabric()
        self.assertTrue(os.path.isdir(fabric.directory))
        fabric.close()
        self.assertFalse(os.path.exists(fabric.directory))

    def test_what_cannot_start_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(rocemu.Error, f"could not start.*{directory}/none.yaml"):
                rocemu.Fabric(scenario=f"{directory}/none.yaml", options=["--log-level", "off"])

    def test_the_current_one(self):
        with rocemu.Fabric() as fabric:
            code = "import rocemu; print(rocemu.Fabric.current().request('version')['devices'])"
            said = fabric.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": sys.path[0]})
            self.assertEqual(said.stdout, "['rocemu0', 'rocemu1']\n", said.stderr)


if __name__ == "__main__":
    unittest.main()
