"""Tests that a recording, a capture and rules for frames do not change which frames are sent."""
import pathlib
import struct
import unittest

from rocemu import PAIR, ROCEMU, free_port, rocemu_run, run, temporary_directory

BTH_AT = 14 + 20 + 8  # the BTH follows the Ethernet, IPv4 and UDP headers
WRITE_ONLY, SEND_ONLY, ACKNOWLEDGE = 10, 4, 17

# A rule that is compared with every frame but never acts.
IDLE_RULE = "rules:\n- {on: frame, opcode: ACK, nth: 1000000, do: drop}\n"


def frames_of(path):
    """Returns the frames of a pcap file with timestamps in nanoseconds, without the timestamps."""
    contents = path.read_bytes()
    assert contents[:4] == b"\x4d\x3c\xb2\xa1", contents[:4]
    frames, at = [], 24
    while at < len(contents):
        size = struct.unpack_from("<I", contents, at + 8)[0]
        frames.append(contents[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def opcodes_of(frames):
    return [frame[BTH_AT] for frame in frames]


def without_chance(frames):
    """Returns for each frame everything except the values that perftest chooses at random: PSNs are relative to
    the first one, and only the length of the payload and of the ICRC is returned."""
    def psn_of(frame):
        return int.from_bytes(frame[BTH_AT + 9:BTH_AT + 12], "big")

    def seen(frame):
        aeth = frame[BTH_AT + 12:BTH_AT + 16] if frame[BTH_AT] == ACKNOWLEDGE else b""
        psn = (psn_of(frame) - psn_of(frames[0])) % (1 << 24)
        return (frame[:BTH_AT + 9].hex(), psn, aeth.hex(), len(frame))

    return [seen(frame) for frame in frames]


class SameFrames(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.scenario = self.directory / "idle.yaml"
        self.scenario.write_text(IDLE_RULE)
        self.port = str(free_port())  # frames of the connection contain it, so it must be the same in all runs

    def frames(self, name, *options, tool="ib_send_bw", clock=()):
        """Sends 256 messages, posted 16 at a time. Returns the frames of the recording, whose journal is replayed,
        or of the capture."""
        if "--record" in options:
            options = (*options, self.directory / name)
            capture = self.directory / name / "trace.pcap"
        else:
            capture = self.directory / f"{name}.pcap"
            options = (*options, "--capture", capture)
        program = [tool, "-d", "rocemu0", "-p", self.port, "-n", "256", "-s", "64", "-l", "16", "-F"]
        result = rocemu_run(*PAIR, self.port, *program, "--", *program, "localhost",
                            options=(*clock, *options))
        self.assertEqual(result.returncode, 0, result.stdout)
        if "--record" in options:
            replay = run(ROCEMU, "replay", self.directory / name)
            self.assertEqual(replay.returncode, 0, replay.stdout)
            self.assertIn("no difference", replay.stdout)
        return frames_of(capture)

    def assert_same(self, frames, expected):
        pairs = zip(without_chance(frames), without_chance(expected))
        for number, (frame, other) in enumerate(pairs, 1):
            self.assertEqual(frame, other, f"frame {number}")
        self.assertEqual(len(frames), len(expected))

    def check_same(self, clock, acknowledgements):
        captured = self.frames("captured", clock=clock)
        self.assertEqual(opcodes_of(captured).count(SEND_ONLY), 256)
        self.assertEqual(opcodes_of(captured).count(ACKNOWLEDGE), acknowledgements)
        for name, options in (("recorded", ("--record",)),
                              ("ruled", ("--scenario", self.scenario)),
                              ("both", ("--scenario", self.scenario, "--record"))):
            with self.subTest(name):
                self.assert_same(self.frames(name, *options, clock=clock), captured)

    def test_in_lockstep(self):
        self.check_same(("--lockstep",), 256)

    def test_in_lockstep_with_one_acknowledgement_for_a_burst(self):
        self.check_same(("--lockstep", "--ack-coalescing", "16"), 16)

    def test_on_the_real_clock(self):
        for name, options in (("captured", ()), ("recorded", ("--record",)),
                              ("ruled", ("--scenario", self.scenario)),
                              ("both", ("--scenario", self.scenario, "--record"))):
            for tool, request in (("ib_send_bw", SEND_ONLY), ("ib_write_bw", WRITE_ONLY)):
                with self.subTest(name=name, tool=tool):
                    opcodes = opcodes_of(self.frames(f"{name}-{tool}", *options, tool=tool))
                    self.assertEqual(set(opcodes), {request, ACKNOWLEDGE})
                    self.assertGreaterEqual(opcodes.count(ACKNOWLEDGE), 16)
                    self.assertLessEqual(opcodes.count(ACKNOWLEDGE), 64)

    def test_on_the_real_clock_with_an_acknowledgement_for_each_message(self):
        for name, options in (("captured", ()), ("recorded", ("--record",)),
                              ("ruled", ("--scenario", self.scenario))):
            with self.subTest(name):
                opcodes = opcodes_of(self.frames(name, "--ack-coalescing", "1", *options))
                self.assertEqual(opcodes.count(SEND_ONLY), 256)
                self.assertEqual(opcodes.count(ACKNOWLEDGE), 256)


if __name__ == "__main__":
    unittest.main()
