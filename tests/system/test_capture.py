"""Tests the contents of captures with tshark and scapy."""
import pathlib
import subprocess
import unittest
import zlib

from rocemu import HERE, pingpong_pair, rocemu_run, temporary_directory

LEARN = HERE.parents[1] / "docs" / "learn"
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0, 1, 2, 4
READ_REQUEST, ACKNOWLEDGE = 12, 17


def dissect(capture, *fields, options=()):
    """Returns for each frame a tuple with these fields, as tshark decodes them."""
    command = ["tshark", *options, "-r", str(capture), "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True).stdout
    return [tuple(line.split("\t")) for line in output.splitlines()]


def icrc_over_ipv6(packet):
    """Returns the ICRC by annex A17.3.3, since scapy computes it only over IPv4: over eight bytes of ones, then
    the packet, with ones in the fields that routers and adapters may change."""
    masked = bytearray(packet[:-4])
    masked[0] |= 0x0f  # traffic class and flow label
    masked[1:4] = b"\xff" * 3
    masked[7] = 0xff  # hop limit
    masked[40 + 6:40 + 8] = b"\xff" * 2  # UDP checksum
    masked[40 + 8 + 4] = 0xff  # FECN, BECN, reserved
    return zlib.crc32(b"\xff" * 8 + bytes(masked)).to_bytes(4, "little")


class Lessons(unittest.TestCase):
    """Tests the settings of Wireshark that docs/troubleshooting.md describes."""

    def test_nothing_is_malformed_without_the_heuristic_for_rpc_over_rdma(self):
        with temporary_directory() as directory:
            for lesson in (["send.py", "5", "4"], ["late.py"], ["rdma.py"], ["events.py"],
                           ["overrun.py"], ["atomic.py"]):
                capture = pathlib.Path(directory) / f"{lesson[0]}.pcap"
                result = rocemu_run(LEARN / lesson[0], *lesson[1:],
                                    options=("--lockstep", "--capture", capture))
                self.assertEqual(result.returncode, 0, result.stdout)
                frames = subprocess.run(
                    ["tshark", "-r", capture, "--disable-heuristic", "rpcrdma_infiniband"], check=True,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
                self.assertIn("RC", frames, lesson)
                self.assertNotIn("Malformed", frames, lesson)


class Capture(unittest.TestCase):
    GOOD, NONE = "1", "3"  # values of tshark for a checksum: good; not present

    def setUp(self):
        self.directory = temporary_directory()
        self.addCleanup(self.directory.cleanup)
        self.capture = pathlib.Path(self.directory.name) / "trace.pcap"

    def record(self, *arguments, **devices):
        result = rocemu_run(*pingpong_pair(*arguments, **devices),
                            options=("--capture", str(self.capture)))
        self.assertEqual(result.returncode, 0, result.stdout)

    def check_well_formed(self, tolerated=""):
        frames = dissect(self.capture, "frame.protocols", "_ws.malformed", "_ws.expert.message")
        self.assertGreater(len(frames), 0)
        for number, (protocols, malformed, complaint) in enumerate(frames, 1):
            self.assertIn("infiniband", protocols, f"frame {number}")
            self.assertEqual((malformed, complaint), ("", tolerated), f"frame {number}")

    def check_icrcs(self):
        from scapy.all import Ether, IPv6, raw, rdpcap
        from scapy.contrib.roce import BTH
        for number, frame in enumerate(rdpcap(str(self.capture)), 1):
            original = raw(frame)
            if IPv6 in frame:
                expected = icrc_over_ipv6(original[14:])
            else:
                frame[BTH].icrc = None  # makes scapy compute it
                expected = raw(frame)[-4:]
            self.assertEqual(original[-4:], expected, f"ICRC of frame {number}")
            self.assertEqual(len(Ether(original)), len(original))

    def test_a_message_of_three_packets_and_its_acknowledgement(self):
        self.record("-m", "1024", "-s", "3000", "-n", "5")
        opcodes = [int(opcode, 0) for (opcode,) in dissect(self.capture, "infiniband.bth.opcode")]
        self.assertEqual(opcodes, [SEND_FIRST, SEND_MIDDLE, SEND_LAST, ACKNOWLEDGE] * 10)
        self.check_well_formed()
        self.check_icrcs()

    def test_messages_of_one_packet_between_two_devices(self):
        self.record("-s", "1024", "-n", "20", client_device="rocemu1")
        frames = dissect(self.capture, "infiniband.bth.opcode", "ip.src", "ip.dst", "udp.dstport",
                         "infiniband.bth.psn")
        # ibv_rc_pingpong's timeout is 67 ms. On a busy machine, an acknowledgement can take longer, and packets are
        # sent again.
        frames = list(dict.fromkeys(frames))
        self.assertEqual([int(frame[0], 0) for frame in frames], [SEND_ONLY, ACKNOWLEDGE] * 40)
        self.assertEqual({frame[1:3] for frame in frames},
                         {("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")})
        self.assertEqual({frame[3] for frame in frames}, {"4791"})
        self.check_well_formed()
        self.check_icrcs()

    def test_ipv6(self):
        port_and_gid = ("-g", "1", "-s", "5000", "-n", "5", "-m", "2048")
        result = rocemu_run(*pingpong_pair(*port_and_gid, gid=False),
                            options=("--capture", str(self.capture)))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual({frame for frame in dissect(self.capture, "ipv6.src", "ipv6.dst")},
                         {("::1", "::1")})
        self.check_well_formed()
        self.check_icrcs()
        self.check_udp_checksums(self.GOOD)

    def test_ipv4_has_no_udp_checksums(self):
        # Like the frames of rxe and NICs, these have no UDP checksum, since the ICRC protects them (annex A17).
        self.record("-s", "5000", "-n", "5", "-m", "2048")
        self.check_udp_checksums(self.NONE)

    def check_udp_checksums(self, status):
        frames = dissect(self.capture, "udp.checksum.status", options=("-o", "udp.check_checksum:TRUE"))
        self.assertEqual({frame for frame in frames}, {(status,)})

    def test_psns_and_acknowledgements_agree(self):
        self.record("-s", "512", "-n", "50")
        unacknowledged = {}
        for opcode, qp, psn in dissect(self.capture, "infiniband.bth.opcode",
                                       "infiniband.bth.destqp", "infiniband.bth.psn"):
            if int(opcode, 0) == SEND_ONLY:
                unacknowledged[int(psn)] = qp
            else:
                self.assertIn(int(psn), unacknowledged)
                self.assertNotEqual(unacknowledged.pop(int(psn)), qp)
        self.assertEqual(unacknowledged, {})

    def test_timestamps_have_nanoseconds_and_do_not_run_backwards(self):
        self.record("-s", "64", "-n", "100")
        with open(self.capture, "rb") as file:
            self.assertEqual(file.read(4), (0xa1b23c4d).to_bytes(4, "little"))
        times = [float(time) for (time,) in dissect(self.capture, "frame.time_epoch")]
        self.assertEqual(times, sorted(times))

    def test_a_sigterm_leaves_a_whole_file(self):
        result = rocemu_run("sh", "-c", 'kill -TERM $PPID; sleep 5',
                            options=("--capture", str(self.capture)))
        self.assertEqual(result.returncode, 128 + 15, result.stdout)
        self.assertEqual(dissect(self.capture, "frame.number"), [])


class CaptureInLockstep(unittest.TestCase):
    setUp = Capture.setUp

    def test_frames_that_were_cut_off_have_udp_checksums_over_ipv6(self):
        port_and_gid = ("-g", "1", "-s", "5000", "-n", "5", "-m", "2048")
        for length in (60, 61, 62, 100):  # the checksum is in bytes 60 and 61
            result = rocemu_run(*pingpong_pair(*port_and_gid, gid=False), options=(
                "--lockstep", "--capture", str(self.capture), "--snap-length", str(length)))
            self.assertEqual(result.returncode, 0, result.stdout)
            found = {checksum == "0x0000"
                     for (checksum,) in dissect(self.capture, "udp.checksum") if checksum}
            self.assertEqual(found, {False} if length >= 62 else set(), length)

    def test_the_ack_of_a_duplicate_ends_before_a_read_whose_response_was_lost(self):
        """IBTA vol 1, 9.7.5.1.3 and 9.7.7.2. rping's server has a SEND and a READ outstanding, and the responses
        to both are lost."""
        rules = pathlib.Path(self.directory.name) / "lost.yaml"
        rules.write_text("rules:\n- {on: frame, from: rocemu1, opcode: ACK, nth: 3, do: drop}\n"
                         "- {on: frame, from: rocemu1, opcode: READ_RESPONSE, nth: 2, do: drop}\n")
        pair = ("rping -s -a 127.0.0.1 -V -S 1000 & server=$!; "
                "rping -c -a 127.0.0.1 -I 127.0.0.2 -V -S 1000 -C 3 && wait $server")
        result = rocemu_run("sh", "-c", pair, options=(
            "--lockstep", "--strict", "--scenario", str(rules), "--capture", str(self.capture)))
        self.assertEqual(result.returncode, 0, result.stdout)
        reads, acknowledged = set(), []
        for opcode, qp, psn in dissect(self.capture, "infiniband.bth.opcode",
                                       "infiniband.bth.destqp", "infiniband.bth.psn"):
            if int(opcode, 0) == READ_REQUEST:
                reads.add(int(psn))
            elif int(opcode, 0) == ACKNOWLEDGE:
                acknowledged.append(int(psn))
        self.assertEqual(len(reads), 3)
        self.assertEqual(reads & set(acknowledged), set())


if __name__ == "__main__":
    unittest.main()
