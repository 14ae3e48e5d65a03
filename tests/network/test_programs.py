"""Unmodified programs on a simulated network: `rocemu run --lockstep --fabric`.

Expected times are the store-and-forward formula: on each link of its path a frame takes its bytes, with FCS, preamble
and gap, at the link's rate, and the link's delay. star-16 has links of 100 Gbit/s and 500 ns.
"""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import unittest
import zlib

from rocemu import PAIR, ROCEMU, free_port, has_virtual_cycles, rocemu_run, run, temporary_directory

PS_PER_BYTE = 80  # at 100 Gbit/s
DELAY_NS = 500
HEADERS = 14 + 20 + 8 + 12 + 4  # Ethernet, IPv4, UDP, BTH, ICRC
FRAMING = 4 + 8 + 12  # FCS, preamble, gap
AETH, RETH = 4, 16
POLL_NS = 50  # docs/design/time.md
SEND_ONLY, WRITE_ONLY, ACKNOWLEDGE, CNP = 4, 10, 17, 129
MTU = 4096
STAR_16 = """
switch:
  buffer: 16MiB
  pfc: {xoff: 512KiB, xon: 384KiB}
links: {rate: 100Gbps, delay: 500ns}
topology: {star: 16}
"""
# perftest measures time with the processor's cycle counter, for which some machines do not allow virtual time.
HAS_VIRTUAL_CYCLES = has_virtual_cycles()


def path_ns(payload, links):
    return -(-links * (HEADERS + payload + FRAMING) * PS_PER_BYTE // 1000) + links * DELAY_NS


def tshark(capture, *names):
    """Returns these fields of each frame of a capture."""
    command = ["tshark", "-r", str(capture), "-T", "fields"]
    for name in names:
        command += ["-e", name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in output.splitlines()]


def times_of(capture, opcode):
    """Returns when frames with that opcode began to leave the port, in nanoseconds."""
    times = []
    for time, found in tshark(capture, "frame.time_epoch", "infiniband.bth.opcode"):
        seconds, fraction = time.split(".")
        if int(found) == opcode:
            times.append(int(seconds) * 10 ** 9 + int(fraction))
    return times


def raw_frames(capture):
    """Returns the bytes of each frame, as a list with one hexadecimal text."""
    data = capture.read_bytes()
    at, rows = 24, []
    while at < len(data):
        size = int.from_bytes(data[at + 8:at + 12], sys.byteorder)
        rows.append([data[at + 16:at + 16 + size].hex()])
        at += 16 + size
    return rows


def icrc(frame):
    """Returns the ICRC of a RoCEv2 frame over IPv4: IBTA vol 1, annex A17.3.3."""
    packet = bytearray(frame[14:-4])
    packet[1] = packet[8] = 0xff  # type of service, TTL
    packet[10:12] = b"\xff\xff"  # header checksum
    packet[26:28] = b"\xff\xff"  # UDP checksum
    packet[32] = 0xff  # FECN, BECN and reserved bits of the BTH
    return zlib.crc32(b"\xff" * 8 + packet).to_bytes(4, "little")


def pair(tool, *options, server=0, client=1):
    """Returns the command that runs both sides of perftest, on these hosts."""
    common = [tool, "-F", "-p", str(free_port()), *options]
    return [*PAIR, common[3], *common, "-d", f"rocemu{server}", "--", *common, "-d", f"rocemu{client}", "localhost"]


def together(commands):
    """Returns the command that runs all of these at the same time."""
    begun = (" ".join(str(word) for word in command) + ' & jobs="$jobs $!";' for command in commands)
    return ["sh", "-c", " ".join(begun) + " for job in $jobs; do wait $job || exit 1; done"]


class Programs(unittest.TestCase):
    def setUp(self):
        holder = temporary_directory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def run_on(self, network, *command, options=()):
        result = rocemu_run(*command, options=("--lockstep", "--fabric", network, *options))
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def network(self, text):
        file = self.directory / "network.yaml"
        file.write_text(text)
        return str(file)

    def ports(self, *names):
        """Returns a capture file for each of these ports, and the options for them."""
        captures = [self.directory / (name.replace(":", "-") + ".pcap") for name in names]
        return captures, [f"--capture-port={name}={file}" for name, file in zip(names, captures)]

    def counters(self, recording, port):
        """Returns the lines of `rocemu timeline --fabric --csv` about one port."""
        result = subprocess.run([ROCEMU, "timeline", "--fabric", recording, "--csv", "-"], check=True,
                                capture_output=True, text=True)
        return [row for row in csv.DictReader(io.StringIO(result.stdout)) if row["port"] == port]


class Latency(Programs):
    def check(self, tool, opcode, headers):
        size = 64
        (client, switch, server), options = self.ports("h1", "s1:0", "h0")
        output = self.run_on("star-16", *pair(tool, "-n", "50", "-s", str(size)), options=options)
        sent = times_of(client, opcode)
        self.assertGreaterEqual(len(sent), 50)
        forwarded, acknowledged = times_of(switch, opcode), times_of(server, ACKNOWLEDGE)
        self.assertEqual({after - before for before, after in zip(sent, forwarded, strict=True)},
                         {path_ns(headers + size, links=1)})
        # The acknowledgement is sent when the message has arrived. Requests of the server are before it in its queue.
        answers = [after - before for before, after in zip(sent, acknowledged, strict=True)]
        self.assertEqual(min(answers), path_ns(headers + size, links=2))
        if not HAS_VIRTUAL_CYCLES:
            return
        typical = float(re.findall(rf"^ {size} +50 +\S+ +\S+ +(\S+)", output, re.MULTILINE)[0])
        # Both sides find messages by polling, and perftest prints two digits of half of the round trip.
        self.assertGreaterEqual(1000 * typical, path_ns(headers + size, links=2) - 5)
        self.assertLessEqual(1000 * typical, path_ns(headers + size, links=2) + 2 * POLL_NS + 5)

    def test_ib_send_lat_follows_the_formula(self):
        self.check("ib_send_lat", SEND_ONLY, headers=0)

    def test_ib_write_lat_follows_the_formula(self):
        self.check("ib_write_lat", WRITE_ONLY, headers=RETH)

    @unittest.skipUnless(HAS_VIRTUAL_CYCLES, "perftest prints real time on this machine")
    def test_beside_a_bulk_flow_is_as_long_as_the_queue_allows(self):
        bulk = pair("ib_write_bw", "-n", "2000", client=2)
        probe = pair("ib_send_lat", "-n", "100", "-s", "64", client=1)
        output = self.run_on("star-16", *together([bulk, probe]))
        longest = float(re.findall(r"^ 64 +100 +\S+ +(\S+)", output, re.MULTILINE)[0])
        # PFC limits the queue in which the probe waits to 512 KiB and the frames that arrive after a pause.
        self.assertGreaterEqual(1000 * longest, path_ns(64, links=2) - 5)
        self.assertLess(1000 * longest, path_ns(64, links=2) + 1.1 * 512 * 1024 * PS_PER_BYTE / 1000)


class Bandwidth(Programs):
    def record_incast(self, network, senders, *options):
        recording = str(self.directory / "run")
        commands = [pair("ib_write_bw", "-n", "100", *options, client=client) for client in range(1, senders + 1)]
        output = self.run_on(network, *together(commands), options=("--record", recording, "--no-trace"))
        rates = [float(rate) for rate in re.findall(r"^ 65536 +100 +\S+ +(\S+)", output, re.MULTILINE)]
        self.assertEqual(len(rates), 2 * senders)  # servers print them, too
        return recording, rates

    def test_one_sender_has_the_rate_of_its_link(self):
        recording, (rate, _) = self.record_incast("star-16", 1)
        message = 16 * (HEADERS + MTU + FRAMING) + RETH
        if HAS_VIRTUAL_CYCLES:
            self.assertAlmostEqual(rate * 2 ** 20 / (12.5e9 * 65536 / message), 1, delta=0.01)
        busy = [float(row["utilization"]) for row in self.counters(recording, "h1")]
        self.assertAlmostEqual(max(busy), 1, delta=0.01)

    def test_an_incast_of_15_fills_the_link_of_the_receiver(self):
        recording, _ = self.record_incast(self.network(STAR_16), 15)
        busy = self.counters(recording, "s1:0")
        self.assertEqual({row["drops"] for row in busy}, {"0"})
        middle = busy[len(busy) // 4:len(busy) // 2]
        for row in middle:
            self.assertAlmostEqual(float(row["utilization"]), 1, delta=0.01)

    def test_dcqcn_keeps_the_queue_of_an_incast_short(self):
        longest = {}
        for name, nics in (("off", ""), ("on", "nics: {dcqcn: default}\n")):
            ecn = STAR_16.replace("  pfc", "  ecn: {kmin: 100KiB, kmax: 400KiB, pmax: 0.2}\n  pfc")
            recording, _ = self.record_incast(self.network(ecn + nics), 4)
            rows = self.counters(recording, "s1:0")
            longest[name] = sum(int(row["longest_queue_bytes"]) for row in rows[len(rows) // 2:])
            marks = sum(int(row["ecn_marks"]) for row in rows)
            # Without congestion control packets are not capable of being marked.
            self.assertEqual(marks > 0, name == "on")
            subprocess.run(["rm", "-r", recording], check=True)
        self.assertLess(longest["on"], longest["off"])


class Frames(Programs):
    def test_marks_checksums_and_icrcs_are_right(self):
        ecn = STAR_16.replace("  pfc", "  ecn: {kmin: 10KiB, kmax: 40KiB, pmax: 0.5}\n  pfc")
        network = self.network(ecn + "nics: {dcqcn: default}\n")
        (to_receiver, from_receiver), options = self.ports("s1:0", "h0")
        commands = [pair("ib_write_bw", "-n", "50", client=client) for client in (1, 2, 3)]
        self.run_on(network, *together(commands), options=options)
        rows = tshark(to_receiver, "ip.dsfield.ecn", "infiniband.bth.opcode")
        self.assertEqual({ecn for ecn, opcode in rows if int(opcode) < ACKNOWLEDGE}, {"2", "3"})
        notifications = [(dscp, ecn) for dscp, ecn, opcode in
                         tshark(from_receiver, "ip.dsfield.dscp", "ip.dsfield.ecn", "infiniband.bth.opcode")
                         if int(opcode) == CNP]
        self.assertEqual(set(notifications), {("48", "0")})
        checked = subprocess.run(["tshark", "-r", str(to_receiver), "-o", "ip.check_checksum:TRUE", "-Y",
                                  "ip.checksum.status != 1"], check=True, capture_output=True, text=True)
        self.assertEqual(checked.stdout, "")
        frames = [bytes.fromhex(row[0]) for row in raw_frames(to_receiver)]
        self.assertGreater(len(frames), 50)
        self.assertEqual({icrc(frame) == frame[-4:] for frame in frames}, {True})

    def test_rping_crosses_the_network(self):
        (client, server), options = self.ports("h0", "h1")
        port = str(free_port())
        self.run_on("star-16", "sh", "-c", f"rping -s -a 127.0.0.2 -p {port} -C 5 & sleep 1; "
                    f"rping -c -a 127.0.0.2 -p {port} -C 5 && wait", options=options)
        self.assertIn(WRITE_ONLY, {int(row[0]) for row in tshark(server, "infiniband.bth.opcode")})
        self.assertEqual({row[0] for row in tshark(client, "ip.src")}, {"127.0.0.1"})

    def test_a_command_runs_on_its_host(self):
        (client,), options = self.ports("h5")
        port = free_port()
        command = f"ib_send_lat -F -n 10 -p {port}"
        output = self.run_on("star-16", "sh", "-c", f"{ROCEMU} run --host 0 -- {command} > /dev/null & sleep 1; "
                             f"{ROCEMU} run --host h5 -- {command} localhost && wait", options=options)
        self.assertIn("rocemu5", output)
        self.assertEqual({row[0] for row in tshark(client, "ip.src")}, {"127.0.0.6"})

    def test_a_connection_begins_at_the_address_of_its_host(self):
        (client,), options = self.ports("h3")
        port = free_port()
        self.run_on("star-16", "sh", "-c", f"rping -s -a 127.0.0.2 -p {port} -C 5 & sleep 1; "
                    f"{ROCEMU} run --host 3 -- rping -c -a 127.0.0.2 -p {port} -C 5 && wait", options=options)
        self.assertEqual({row[0] for row in tshark(client, "ip.src")}, {"127.0.0.4"})


class Repeats(Programs):
    def test_runs_are_the_same_and_replay(self):
        commands = [pair("ib_write_bw", "-n", "10", client=client) for client in (1, 2, 3)]
        runs = []
        for number in range(3):
            recording = self.directory / f"run{number}"
            output = self.run_on("star-16", *together(commands), options=("--record", str(recording)))
            output = output if HAS_VIRTUAL_CYCLES else ""
            runs.append((output, (recording / "trace.pcap").read_bytes()))  # events.jsonl has process numbers
        self.assertTrue(runs[0] == runs[1] == runs[2])
        replayed = run(ROCEMU, "replay", str(recording))
        self.assertEqual((replayed.returncode, "no difference" in replayed.stdout), (0, True), replayed.stdout)

    def test_a_timeline_has_every_form(self):
        recording = str(self.directory / "run")
        self.run_on("star-16", *pair("ib_write_bw", "-n", "20"), options=("--record", recording, "--no-trace"))
        page, trace = self.directory / "page.html", self.directory / "trace.json"
        written = run(ROCEMU, "timeline", "--fabric", recording, "--html", page, "--perfetto", trace, check=True)
        self.assertEqual(written.stdout, "")
        self.assertIn("<h2>h1 to s1:1</h2>", page.read_text())
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertIn("utilization", {event["name"] for event in events})
        self.assertRegex(run(ROCEMU, "timeline", "--fabric", recording, check=True).stdout, r"h1 +s1:1 +\d+\.\d %")
        # Every byte of the messages crosses both links.
        sent = {port: sum(int(row["tx_bytes"]) for row in self.counters(recording, port)) for port in ("h1", "s1:0")}
        self.assertEqual(sent["h1"], sent["s1:0"])
        self.assertGreater(sent["h1"], 20 * 65536)


class Explore(Programs):
    def test_faults_are_tried_on_the_network(self):
        port = str(free_port())
        common = ["ibv_rc_pingpong", "-g", "0", "-n", "2", "-p", port]
        command = [*PAIR, port, *common, "-d", "rocemu0", "--", *common, "-d", "rocemu15", "localhost"]
        result = run(ROCEMU, "explore", "--fabric", "star-16", "--only", "frames:SEND", "--output",
                     self.directory / "findings", "--fail-on", "none", "--", *command)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"SURVIVED +\d+")

    def test_the_real_clock_is_refused(self):
        result = run(ROCEMU, "explore", "--real-clock", "--fabric", "star-16", "--", "true")
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("--fabric needs the virtual clock", result.stdout)


class Mistakes(Programs):
    def check(self, options, message):
        result = rocemu_run("true", options=options)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(message, result.stdout)

    def test_options_that_do_not_fit_are_refused(self):
        lockstep = ("--lockstep", "--fabric", "star-16")
        self.check(("--fabric", "star-16"), "--fabric needs the virtual clock of --lockstep")
        self.check(("--lockstep", "--fabric", "nowhere"), "cannot read the network 'nowhere'")
        self.check(("--lockstep", "--fabric", "fat-tree-1024"), "--devices N")
        self.check((*lockstep, "--devices", "17"), "the network has 16 hosts for 17 devices")
        self.check((*lockstep, "--capture-port", "s9:1=x"), "the network has no port 's9:1'")
        self.check((*lockstep, "--capture-port", "s1:1"), "is not PORT=FILE")
        self.check(("--lockstep", "--capture-port", "s1:1=x"), "--capture-port needs --fabric")
        self.check((*lockstep, "--host", "x"), "--host 'x' is not the number of a host")

    def test_a_file_with_a_mistake_is_named_with_its_line(self):
        file = self.network("topology: {star: 2}\nlinks: {rate: 0}\n")
        self.check(("--lockstep", "--fabric", file), "network.yaml:2:")

    def test_a_recording_without_a_network_has_no_timeline_of_it(self):
        recording = str(self.directory / "run")
        self.assertEqual(rocemu_run("true", options=("--lockstep", "--record", recording)).returncode, 0)
        result = run(ROCEMU, "timeline", "--fabric", recording)
        self.assertEqual(result.returncode, 1)
        self.assertIn("without a simulated network", result.stdout)


if __name__ == "__main__":
    unittest.main()
