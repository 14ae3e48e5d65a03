"""Tests the frames that leave and reach a host, byte by byte: with tshark and scapy, and with frames from captures
of another implementation."""
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import time
import unittest

import hosts
from hosts import finish
from test_capture import dissect, icrc_over_ipv6
from test_udp import OnNetwork

RXE = pathlib.Path(__file__).resolve().parent.parent / "data" / "rxe"


class Capture(OnNetwork):
    """Tests frames that tcpdump records as they leave the host, with the IP header that is on the wire."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A datagram of many frames is then divided when it is sent, as on the way to another machine.
        for host in cls.hosts:
            host.run("ethtool", "-K", hosts.INTERFACE, "tx-udp-segmentation", "off")

    def capture(self, family, program, *options):
        host = self.hosts[1]
        path = host.directory / "wire.pcap"
        path.unlink(missing_ok=True)  # an old file would be taken for the new capture
        # The buffer of tcpdump, here 64 MiB, has room for many frames of the length that -s allows.
        tcpdump = host.popen("tcpdump", "-i", hosts.INTERFACE, "-w", path, "-U", "-s", "2000", "-B",
                             "65536", "--immediate-mode", "udp port 4791", rdma=False)
        host.wait_for(lambda: path.exists() and path.stat().st_size >= 24, "tcpdump")
        self.over_tcp(program, 18515, "-g", hosts.Host.gid_index(family), *options)
        seen = host.counters()
        expected = seen["frames_out"] + seen["frames_in"]
        host.wait_for(lambda: self.frames_in(path) >= expected - self.frames_before,
                      "the capture of all frames")
        tcpdump.terminate()
        hosts.end_of(tcpdump)
        return path

    def setUp(self):
        seen = self.hosts[1].counters()
        self.frames_before = seen["frames_out"] + seen["frames_in"]

    @staticmethod
    def frames_in(path):
        """Returns the complete records of a pcap file that is being written."""
        data, at, count = path.read_bytes(), 24, 0
        while at + 16 <= len(data):
            at += 16 + struct.unpack_from("<I", data, at + 8)[0]
            count += at <= len(data)
        return count

    def check(self, path, family):
        from scapy.all import raw, rdpcap
        from scapy.contrib.roce import BTH
        for number, fields in enumerate(
                dissect(path, "frame.protocols", "_ws.malformed", "_ws.expert.message"), 1):
            self.assertIn("infiniband", fields[0], f"frame {number}")
            self.assertEqual(fields[1:], ("", ""), f"frame {number}")
        identifications = set()
        frames = rdpcap(str(path))
        for number, frame in enumerate(frames, 1):
            original = raw(frame)
            if family == 6:
                expected = icrc_over_ipv6(original[14:])
            else:
                identifications.add(frame["IP"].id)
                self.assertEqual(frame["IP"].flags, "DF", f"frame {number}")
                frame[BTH].icrc = None
                expected = raw(frame)[-4:]
            self.assertEqual(original[-4:], expected, f"ICRC of frame {number}")
        return identifications

    def test_frames_that_leave_one_by_one(self):
        for family in (4, 6):
            self.setUp()
            path = self.capture(family, "ibv_uc_pingpong", "-s", "512", "-n", "50")
            self.assertLessEqual(self.check(path, family), {0})

    def test_acknowledgements_that_leave_behind_the_answer(self):
        for family in (4, 6):
            self.setUp()
            path = self.capture(family, "ibv_rc_pingpong", "-s", "512", "-n", "50")
            self.assertLessEqual(self.check(path, family), {0, 1})

    def test_frames_that_leave_many_in_one_system_call(self):
        for family in (4, 6):
            self.setUp()
            sends = self.hosts[1].counters()["udp_sends"]
            path = self.capture(family, "ibv_rc_pingpong", "-s", "60000", "-n", "20")
            identifications = self.check(path, family)
            if family == 4:
                self.assertGreater(max(identifications), 5)
            self.assertLess(self.hosts[1].counters()["udp_sends"] - sends, 20 * 60 / 2)

    def test_traffic_class_hop_limit_and_source_ports(self):
        host = self.hosts[1]
        path = host.directory / "fields.pcap"
        tcpdump = host.popen("tcpdump", "-i", hosts.INTERFACE, "-w", path, "-U", "--immediate-mode",
                             "udp port 4791 and src host " + host.ipv4, rdma=False)
        host.wait_for(lambda: path.exists() and path.stat().st_size >= 24, "tcpdump")
        for _ in range(6):  # each run has new queue pairs
            self.over_tcp("ib_send_bw", 18515, "-x", "0", "-n", "5", "-s", "64", "-q", "4",
                          "--tclass=104")
        tcpdump.terminate()
        hosts.end_of(tcpdump)
        fields = dissect(path, "ip.dsfield", "ip.ttl", "udp.srcport", "ip.flags.df")
        self.assertEqual({(one[0], one[1]) for one in fields}, {("0x68", "255")})
        # Up to version 3, tshark prints 1; since version 4, it prints "True".
        self.assertLessEqual({one[3] for one in fields}, {"1", "True"})
        ports = {int(one[2]) for one in fields}
        self.assertGreater(len(ports), 2)  # one port for each flow, out of the ports that the daemon has
        self.assertLessEqual(len(ports), 8)
        self.assertTrue(all(0xc000 <= port for port in ports))


def pcap_frames(path):
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        size = struct.unpack_from(order + "I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def icrc_over_ipv4(packet):
    """Returns the ICRC by annex A17.3.3, like test_capture.icrc_over_ipv6."""
    import zlib
    masked = bytearray(packet[:-4])
    masked[1] = masked[8] = masked[10] = masked[11] = 0xff
    masked[26:28] = b"\xff\xff"
    masked[32] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(masked)).to_bytes(4, "little")


# A script for a host's namespace, which sends IPv4 packets unchanged. Standard input has a packet in each line, in
# hexadecimal.
SEND_RAW = """
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for line in sys.stdin:
    packet = bytes.fromhex(line)
    while True:
        try:
            out.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
            break
        except BlockingIOError:
            pass
"""


class FromAnotherImplementation(OnNetwork):
    """Sends frames of Linux's rdma_rxe from a raw socket, with the IP identifications that rxe chose."""
    program = SEND_RAW
    # Outside of the UDP payload, the ICRC covers only these bytes, the source port.
    covered = (20, 21)
    first_of_transport = 28

    def rxe_packets(self):
        """Returns IPv4 packets, one for each opcode, with a correct ICRC as captured."""
        chosen = {}
        for path in sorted(RXE.glob("*.pcap")):
            for frame in pcap_frames(path):
                packet = frame[14:]
                if frame[12:14] != b"\x08\x00" or packet[9] != 17 or packet[22:24] != b"\x12\xb7":
                    continue
                packet = packet[:int.from_bytes(packet[2:4], "big")]
                if icrc_over_ipv4(packet) == packet[-4:]:
                    chosen.setdefault(packet[28], packet)
        return list(chosen.values())

    def readdressed(self, packet):
        """Returns the packet with the addresses of this network: from the third host to the second. Checks rxe's
        ICRC, and adapts it to the addresses."""
        changed = bytearray(packet)
        changed[12:20] = socket.inet_aton(self.hosts[2].ipv4) + socket.inet_aton(
            self.hosts[1].ipv4)
        changed[26:28] = b"\0\0"
        changed[-4:] = icrc_over_ipv4(bytes(changed))
        return bytes(changed)

    def send(self, packets):
        sender = subprocess.run(self.hosts[2].inside("/usr/bin/python3", "-c", self.program),
                                input="\n".join(packet.hex() for packet in packets), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(sender.returncode, 0, sender.stdout)

    def count(self):
        counters = self.hosts[1].counters()
        return {name: counters[name] for name in ("frames_in", "dropped_bad_icrc", "udp_receives",
                                                  "dropped_malformed")}

    def after(self, packets):
        before = self.count()
        self.send(packets)
        expected = before["frames_in"] + before["dropped_bad_icrc"] + before["dropped_malformed"]
        expected += len(packets)
        deadline = time.monotonic() + 30
        while True:
            now = self.count()
            if now["frames_in"] + now["dropped_bad_icrc"] + now["dropped_malformed"] >= expected:
                break
            if time.monotonic() > deadline:
                self.fail(f"{len(packets)} packets sent; before {before}, now {now}")
            time.sleep(0.02)
        return {name: now[name] - before[name] for name in now}

    def test_they_are_accepted_and_with_a_flipped_bit_refused(self):
        packets = self.rxe_packets()
        self.assertGreater(len({packet[4:6] for packet in packets}), 10)  # identifications
        packets = [self.readdressed(packet) for packet in packets]
        self.assertGreater(len(packets), 20)
        change = self.after(packets)
        self.assertEqual((change["frames_in"], change["dropped_bad_icrc"]), (len(packets), 0))
        flipped = []
        for packet in packets:
            for byte in (*self.covered, *range(self.first_of_transport, len(packet))):
                if byte == self.first_of_transport + 4:  # the ICRC does not cover FECN, BECN and reserved bits
                    continue
                bit = random.randrange(8)
                damaged = bytearray(packet)
                damaged[byte] ^= 1 << bit
                flipped.append(bytes(damaged))
        for at in range(0, len(flipped), 500):
            part = flipped[at:at + 500]
            change = self.after(part)
            # A frame that is not a packet any more is counted as malformed, not as corrupt.
            self.assertEqual(change["frames_in"], 0)
            self.assertEqual(change["dropped_bad_icrc"] + change["dropped_malformed"], len(part))


class FromAnotherImplementationStrictly(FromAnotherImplementation):
    """The same tests with --strict-icrc: the NIC checks the ICRC with the IP header that arrived."""
    start_options = ("--strict-icrc",)
    covered = (4, 5, 20, 21)  # also the IP identification

    def test_many_frames_of_one_system_call_are_numbered_by_their_places(self):
        for family in (4, 6):
            self.pingpong("ibv_rc_pingpong", family, "-s", "60000")
        self.assertEqual(self.hosts[1].counters()["dropped_bad_icrc"], 0)
        self.assertEqual(self.hosts[1].counters()["udp_dropped_unverified"], 0)


# A script for a host's namespace, which sends random datagrams of 4 to 64 bytes for some seconds, many in one system
# call. Prints the number of datagrams.
FLOOD = """
import os, socket, struct, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((sys.argv[1], 4791))
end = time.monotonic() + float(sys.argv[2])
count = 0
while time.monotonic() < end:
    for size in (4, 16, 28, 64):
        try:
            out.sendmsg([os.urandom(32 * size)], [(socket.IPPROTO_UDP, 103, struct.pack("=H", size))])
            count += 32
        except OSError:
            pass
print(count)
"""


# A script for a host's namespace, which sends IPv6 packets unchanged. Standard input has a packet in each line, in
# hexadecimal.
SEND_RAW_IPV6 = """
import socket, sys
out = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
for line in sys.stdin:
    packet = bytes.fromhex(line)
    while True:
        try:
            out.sendto(packet, (socket.inet_ntop(socket.AF_INET6, packet[24:40]), 0, 0, 0))
            break
        except BlockingIOError:
            pass
"""


def udp_checksum_over_ipv6(packet):
    """Returns the UDP checksum by RFC 8200, 8.1, of a packet whose checksum field is 0."""
    words = packet[8:40] + packet[44:46] + bytes([0, 17]) + packet[40:]
    words += bytes(len(words) % 2)
    total = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff or 0xffff


class WithoutUdpChecksum(FromAnotherImplementation):
    """Sends frames of rdma_rxe after IPv6 headers, with the UDP checksum 0. rxe and NICs send this checksum over
    both versions of IP; over IPv6, Linux drops such packets by default (RFC 8200, 8.1; RFC 6935)."""
    program = SEND_RAW_IPV6
    covered = (40, 41)  # the source port
    first_of_transport = 48

    def readdressed(self, packet, destination=None, checksum=0):
        source, own = self.hosts[2].ipv6, self.hosts[1].ipv6
        changed = bytearray(struct.pack(">IHBB", 6 << 28, len(packet) - 20, 17, 64))
        for address in (source, destination or own):
            changed += socket.inet_pton(socket.AF_INET6, address)
        changed += packet[20:26] + struct.pack(">H", 0) + packet[28:]
        changed[-4:] = icrc_over_ipv6(bytes(changed))
        changed[46:48] = struct.pack(">H", checksum)
        return bytes(changed)

    def test_those_of_one_size_in_a_row_are_accepted(self):
        packets = [self.readdressed(packet) for packet in self.rxe_packets()] * 20
        packets.sort(key=len)  # packets of one size: a driver or the kernel may combine them (GRO)
        change = self.after(packets)
        self.assertEqual((change["frames_in"], change["dropped_bad_icrc"]), (len(packets), 0))

    def test_those_for_a_multicast_group_are_accepted(self):
        group, second = "ff0e::77", self.hosts[1]
        second.popen("mckey", "-b", second.ipv6, "-m", group)
        second.wait_for(lambda: group in second.run(
            "ip", "maddr", "show", "dev", hosts.INTERFACE).stdout, "a member")
        (datagram,) = [one for one in self.rxe_packets() if one[28] == 0x64]  # UD SEND only
        change = self.after([self.readdressed(datagram, group)] * 10)
        self.assertEqual(change["frames_in"], 10)

    def test_a_wrong_checksum_is_dropped_by_the_system_and_counted(self):
        packets = []
        for packet in self.rxe_packets():
            right = self.readdressed(packet)
            wrong = udp_checksum_over_ipv6(right) ^ 0x1234 or 0x4321
            packets.append(right[:46] + struct.pack(">H", wrong) + right[48:])
        host = self.hosts[1]
        before = host.counters()
        self.send(packets)
        # A longer datagram is checked only when it is read, and then the system reports the error.
        host.wait_for(lambda: host.counters()["udp_host_checksum_errors"]
                      - before["udp_host_checksum_errors"] == len(packets), "all of them counted")
        after = host.counters()
        self.assertEqual(after["frames_in"], before["frames_in"])
        self.assertEqual(after["udp_host_receive_errors"] - before["udp_host_receive_errors"],
                         len(packets))

    def test_a_right_checksum_is_accepted(self):
        packets = []
        for packet in self.rxe_packets():
            zero = self.readdressed(packet)
            packets.append(zero[:46] + struct.pack(">H", udp_checksum_over_ipv6(zero)) + zero[48:])
        self.assertEqual(self.after(packets)["frames_in"], len(packets))


class WithoutUdpChecksumStrictly(WithoutUdpChecksum):
    start_options = ("--strict-icrc",)


class Hostile(OnNetwork):
    def memory_of(self, host):
        for line in pathlib.Path(f"/proc/{host.daemon}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def test_a_flood_is_counted_and_leaves_connections_and_memory_alone(self):
        first, second, third = self.hosts
        server = second.popen("rping", "-s", "-V", "-C", "300")
        second.wait_for_listener(7174, server)
        client = first.popen("rping", "-c", "-a", second.ipv4, "-V", "-C", "300")
        before, memory = second.counters(), self.memory_of(second)
        flood = third.popen("/usr/bin/python3", "-c", FLOOD, second.ipv4, "5", rdma=False)
        (sent,) = finish(self, flood)
        finish(self, server, client)
        after = second.counters()
        change = {name: after[name] - before[name] for name in after if after[name] != before[name]}
        refused = sum(value for name, value in change.items() if name.startswith("dropped_"))
        # The system counts datagrams that do not fit into the socket's buffer; each of them can contain many frames.
        self.assertGreater(refused + 32 * change.get("udp_receive_overruns", 0), int(sent) // 4,
                           change)
        self.assertGreater(change["dropped_malformed"], 0, change)
        self.assertLess(self.memory_of(second), memory + (64 << 20))

    def test_what_a_socket_had_no_room_for_is_counted_though_nothing_comes_any_more(self):
        _, second, third = self.hosts
        before = second.counters()
        os.kill(second.daemon, signal.SIGSTOP)
        try:
            flood = third.popen("/usr/bin/python3", "-c", FLOOD, second.ipv4, "0.5", rdma=False)
            (sent,) = finish(self, flood)
        finally:
            os.kill(second.daemon, signal.SIGCONT)
        after = second.counters()
        self.assertGreater(after["udp_receive_overruns"], before["udp_receive_overruns"], sent)

    def test_a_frame_of_a_stranger_completes_nothing(self):
        first, second, third = self.hosts
        options = ("ibv_rc_pingpong", "-g", "0", "-n", "100000000", "-e", "-s", "64")
        server = first.popen(*options, "-d", first.device)
        first.wait_for_tcp(18515, server)
        client = second.popen(*options, "-d", second.device, first.ipv4)
        seen = second.counters()["frames_in"]
        second.wait_for(lambda: second.counters()["frames_in"] > seen + 100, "traffic")
        # The frames have consecutive PSNs, one for each, and are correct except for their sender.
        (queue_pair,) = second.show()["fabric"]["devices"][0]["qps"]
        packets = []
        for psn in range(queue_pair["expected_psn"], queue_pair["expected_psn"] + 2000):
            transport = bytes([0x04, 0, 0xff, 0xff]) + struct.pack(
                ">II", queue_pair["number"], 1 << 31 | psn & 0xffffff) + bytes(64) + bytes(4)
            header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(transport), 7, 0x4000, 64, 17, 0,
                                 socket.inet_aton(third.ipv4), socket.inet_aton(second.ipv4))
            packet = header + struct.pack(">HHHH", 0xc000, 4791, 8 + len(transport), 0) + transport
            packets.append(packet[:-4] + icrc_over_ipv4(packet))
        before = second.counters()["dropped_wrong_source"]
        sender = subprocess.run(third.inside("/usr/bin/python3", "-c", SEND_RAW), text=True,
                                input="\n".join(packet.hex() for packet in packets), check=False)
        self.assertEqual(sender.returncode, 0)
        second.wait_for(lambda: second.counters()["dropped_wrong_source"] - before == len(packets),
                        "the drop of each")
        seen = second.counters()["frames_in"]
        second.wait_for(lambda: second.counters()["frames_in"] > seen + 100, "more traffic")
        for process in (server, client):
            self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
