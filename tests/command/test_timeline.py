"""Tests `rocemu timeline` with captures and with unreadable files. tests/system/test_timeline.py tests
it with recordings."""
import pathlib
import re
import struct
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, CommandTest

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "rxe"


def pcap(*packets, link_type=1, snap=65535):
    """Returns the bytes of a capture file."""
    head = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, snap, link_type)
    return head + b"".join(
        struct.pack("<IIII", 1, number, len(packet[:snap]), len(packet)) + packet[:snap]
        for number, packet in enumerate(packets))


def packets_of(path):
    contents, at, packets = path.read_bytes(), 24, []
    while at < len(contents):
        size = struct.unpack_from("<I", contents, at + 8)[0]
        packets.append(contents[at + 16:at + 16 + size])
        at += 16 + size
    return packets


class Captures(CommandTest):
    def timeline(self, *arguments):
        result = self.rocemu("timeline", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_every_capture_of_rxe_is_shown(self):
        for path in sorted(CAPTURES.glob("*.pcap")):
            with self.subTest(path.stem):
                self.assertRegex(self.timeline(path), r"psn|REQ|UD")

    def test_an_rnr_nak_has_its_name_timer_and_consequence(self):
        shown = " ".join(self.timeline(CAPTURES / "rc_rnr.pcap", "--width", "200").split())
        self.assertIn("RNR NAK, timer", shown)
        self.assertIn("retransmission after RNR NAK, timer", shown)

    def test_frames_with_vlan_tags_are_shown_as_those_without(self):
        packets = packets_of(CAPTURES / "rc_send.pcap")
        tagged = self.scratch / "tagged.pcap"
        tagged.write_bytes(pcap(*(one[:12] + b"\x81\0\0\x05" + one[12:] for one in packets)))
        plain = self.scratch / "plain.pcap"
        plain.write_bytes(pcap(*packets))
        self.assertEqual(self.timeline(tagged), self.timeline(plain))

    def test_other_traffic_is_skipped_and_counted(self):
        packets = packets_of(CAPTURES / "rc_send.pcap")
        dns = bytearray(packets[0])
        dns[36:38] = b"\0\x35"
        mixed = self.scratch / "mixed.pcap"
        mixed.write_bytes(pcap(bytes(dns), b"\xff" * 60, *packets))
        shown = self.timeline(mixed)
        self.assertIn("note: 1 frame skipped", shown)
        self.assertIn("not_roce", shown)
        self.assertIn("not_ip", shown)

    def test_what_a_short_snap_length_cut_off_is_not_guessed(self):
        packets = packets_of(CAPTURES / "rc_send.pcap")
        shown = {}
        for length in (30, 54, 70):
            short = self.scratch / f"{length}.pcap"
            short.write_bytes(pcap(*packets, snap=length))
            shown[length] = self.timeline(short)
        self.assertNotIn("│", shown[30])
        self.assertIn("there is no RoCEv2 frame", shown[30])
        # The frame's AETH is missing, so the acknowledgement could also be a NAK.
        self.assertIn("SEND", shown[54])
        self.assertNotIn("ACK", shown[54])
        self.assertIn("snap length", shown[54])
        whole = self.scratch / "whole.pcap"
        whole.write_bytes(pcap(*packets))
        self.assertEqual(shown[70], self.timeline(whole))

    def test_an_empty_capture_and_an_empty_file(self):
        empty = self.scratch / "empty.pcap"
        empty.write_bytes(pcap())
        self.assertIn("there is no RoCEv2 frame", self.timeline(empty))
        empty.write_bytes(b"")
        self.assert_one_line(self.rocemu("timeline", empty), 1, "the file is empty")

    def test_a_capture_that_was_cut_off_is_shown_up_to_there(self):
        whole = pcap(*packets_of(CAPTURES / "rc_send.pcap"))
        cut = self.scratch / "cut.pcap"
        cut.write_bytes(whole[:-7])
        shown = self.timeline(cut)
        self.assertIn("SEND", shown)
        self.assertIn("only the part before is shown", shown)

    def test_what_is_no_capture_is_an_error(self):
        text = self.scratch / "text"
        text.write_text("hello, this is neither\n" * 20)
        self.assert_one_line(self.rocemu("timeline", text), 1, str(text))
        self.assert_one_line(self.rocemu("timeline", self.scratch / "none"), 1, "none")

    def test_wrong_filters_are_refused(self):
        capture = CAPTURES / "rc_send.pcap"
        for options, reason in ((("--from", "3"), "2ms"), (("--kind", "frames"), "frame"),
                                (("--qp", "x"), "QPN")):
            self.assert_one_line(self.rocemu("timeline", capture, *options), 2, reason)

    def test_what_is_too_long_is_shown_around_its_first_fault(self):
        capture = CAPTURES / "rc_rnr.pcap"
        few = self.timeline(capture, "--rows", "3")
        self.assertEqual(few.count("psn"), 3)
        self.assertIn("at most 3 rows are shown", few)
        self.assertIn("are not shown", few)
        self.assertNotIn("at most", self.timeline(capture, "--rows", "1000"))

    def test_a_capture_that_can_be_read_once_is_shown_as_from_a_file(self):
        capture = CAPTURES / "rc_rnr.pcap"
        expected = self.timeline(capture)
        for source in ('cat "$1" | "$0" timeline -', 'cat "$1" | "$0" timeline /dev/stdin', '"$0" timeline - < "$1"',
                       '"$0" timeline /dev/stdin < "$1"', '"$0" timeline <(cat "$1")'):
            with self.subTest(source):
                result = subprocess.run(["bash", "-c", source, ROCEMU, str(capture)], capture_output=True, text=True,
                                        env=self.environment, timeout=TIMEOUT, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertEqual(result.stdout, expected)

    def test_what_is_no_capture_is_refused_by_its_name_also_from_a_pipe(self):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            self.assert_one_line(self.rocemu("timeline", "-", stdin=endless.stdout), 1, "cannot read standard input: ")
            endless.kill()
        self.assert_one_line(self.rocemu("timeline", "/dev/zero"), 1, "cannot read /dev/zero: ")
        self.assert_one_line(self.rocemu("timeline", "-"), 1, "cannot read standard input: the file is empty")

    def test_names_that_the_capture_lacks_are_answered_with_those_that_it_has(self):
        capture = CAPTURES / "rc_rnr.pcap"
        shown = self.timeline(capture, "--width", "200")
        qpns = re.findall(r"QP (0x[0-9a-f]+)", shown)
        self.assertTrue(qpns)
        for option, noun in (("--device", "device"), ("--process", "process")):
            self.assert_one_line(self.rocemu("timeline", capture, option, "nosuch"), 1,
                                 f"timeline: {option} nosuch: there is no such {noun}")
        for given in (["--qp", "0x99"], ["--qp", qpns[0], "--qp", "0x99"]):
            self.assert_one_line(self.rocemu("timeline", capture, *given), 1,
                                 "timeline: --qp 0x99: there is no such QP; there are ", qpns[0])
        self.assertIn("psn", self.timeline(capture, "--qp", qpns[0]))

    def test_filters_leave_the_rest_out(self):
        capture = CAPTURES / "rc_rnr.pcap"
        everything = self.timeline(capture)
        self.assertLess(len(self.timeline(capture, "--to", "1us")), len(everything))
        self.assertNotIn("SEND", self.timeline(capture, "--kind", "verb"))


if __name__ == "__main__":
    unittest.main()
