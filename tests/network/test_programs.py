"""Runs unmodified programs on a simulated network: `rocemu run --lockstep --fabric`.

The expected times are those of the store-and-forward formula: on each link of its path, a frame takes the time of its
bytes, with FCS, preamble and gap, at the link's rate, and the link's delay. The links of star-16 have 100 Gbit/s and
500 ns.
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import zlib

from client_server import needs_ucx_with_verbs
from rocemu import PAIR, ROCEMU, free_port, has_virtual_cycles, rocemu_run, run, temporary_directory

PS_PER_BYTE = 80  # the rate is 100 Gbit/s
DELAY_NS = 500
HEADERS = 14 + 20 + 8 + 12 + 4  # bytes of Ethernet, IPv4, UDP, BTH and ICRC
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
    """Returns these fields for each frame of a capture."""
    command = ["tshark", "-r", str(capture), "-T", "fields"]
    for name in names:
        command += ["-e", name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in output.splitlines()]


def times_of(capture, opcode):
    """Returns the times at which frames with this opcode began to leave the port, in nanoseconds."""
    times = []
    for time, found in tshark(capture, "frame.time_epoch", "infiniband.bth.opcode"):
        seconds, fraction = time.split(".")
        if int(found) == opcode:
            times.append(int(seconds) * 10 ** 9 + int(fraction))
    return times


def raw_frames(capture):
    """Returns the bytes of each frame of a capture, as a list with one hexadecimal text."""
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
    packet[1] = packet[8] = 0xff  # type of service, and TTL
    packet[10:12] = b"\xff\xff"  # header checksum
    packet[26:28] = b"\xff\xff"  # UDP checksum
    packet[32] = 0xff  # FECN, BECN and reserved bits of the BTH
    return zlib.crc32(b"\xff" * 8 + packet).to_bytes(4, "little")


def pair(tool, *options, server=0, client=1):
    """Returns the command that runs both sides of perftest, on these hosts."""
    common = [tool, "-F", "-p", str(free_port()), *options]
    return [*PAIR, common[3], *common, "-d", f"rocemu{server}", "--", *common, "-d", f"rocemu{client}", "localhost"]


def together(commands):
    """Returns the command that runs all of these commands at the same time."""
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
        """Returns a capture file for each of these ports, and the options that write the files."""
        captures = [self.directory / (name.replace(":", "-") + ".pcap") for name in names]
        return captures, [f"--capture-port={name}={file}" for name, file in zip(names, captures)]

    def counters(self, recording, port, *options):
        """Returns the lines of `rocemu timeline --fabric --csv` about one port."""
        result = subprocess.run([ROCEMU, "timeline", "--fabric", recording, "--csv", "-", *options], check=True,
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
        # The responder sends the acknowledgement when the message has arrived, but requests of the server may be earlier
        # in the queue.
        answers = [after - before for before, after in zip(sent, acknowledged, strict=True)]
        self.assertEqual(min(answers), path_ns(headers + size, links=2))
        if not HAS_VIRTUAL_CYCLES:
            return
        typical = float(re.findall(rf"^ {size} +50 +\S+ +\S+ +(\S+)", output, re.MULTILINE)[0])
        # Both sides find messages by polling, and perftest prints half of the round trip with two digits.
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
        # The probe waits in a queue that PFC limits to 512 KiB, and to the frames that arrive after a pause.
        self.assertGreaterEqual(1000 * longest, path_ns(64, links=2) - 5)
        self.assertLess(1000 * longest, path_ns(64, links=2) + 1.1 * 512 * 1024 * PS_PER_BYTE / 1000)


class Bandwidth(Programs):
    def record_incast(self, network, senders, *options):
        recording = str(self.directory / "run")
        commands = [pair("ib_write_bw", "-n", "100", *options, client=client) for client in range(1, senders + 1)]
        output = self.run_on(network, *together(commands), options=("--record", recording, "--no-trace"))
        rates = [float(rate) for rate in re.findall(r"^ 65536 +100 +\S+ +(\S+)", output, re.MULTILINE)]
        self.assertEqual(len(rates), 2 * senders)  # servers print rates, too
        return recording, rates

    def test_one_sender_has_the_rate_of_its_link(self):
        recording, (rate, _) = self.record_incast("star-16", 1)
        message = 16 * (HEADERS + MTU + FRAMING) + RETH
        if HAS_VIRTUAL_CYCLES:
            self.assertAlmostEqual(rate * 2 ** 20 / (12.5e9 * 65536 / message), 1, delta=0.01)
        busy = [float(row["utilization"]) for row in self.counters(recording, "h1")]
        self.assertAlmostEqual(max(busy), 1, delta=0.01)

    def test_no_link_sends_more_than_its_rate_in_any_interval(self):
        recording, _ = self.record_incast(self.network(STAR_16), 3)
        for port in ("h1", "s1:0"):
            sums = set()
            for interval_ns in (1000, 7300, 1_000_000):  # a frame takes 338 ns
                rows = self.counters(recording, port, "--interval", f"{interval_ns}ns")
                # Frames begin in picoseconds, which are rounded up.
                self.assertLessEqual(max(float(row["utilization"]) for row in rows), 1 + 2 / interval_ns, port)
                sums.add(sum(int(row["tx_bytes"]) for row in rows))
            self.assertEqual(len(sums), 1, f"{port}: {sums}")

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
            # Without congestion control, packets are not ECN-capable, so they are not marked.
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
            # events.jsonl is not compared, since it contains process numbers
            runs.append((output, (recording / "trace.pcap").read_bytes()))
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


class Faults(Programs):
    """Tests rules of a scenario that name a part of the network."""

    def run_with(self, rules, *command, network="star-16", name="run"):
        """Runs the command with these rules. Returns the recording and the output."""
        scenario, recording = self.directory / f"{name}.scenario", self.directory / name
        scenario.write_text("rules:\n" + "".join(f"- {rule}\n" for rule in rules))
        output = self.run_on(network, *command, options=("--record", str(recording), "--scenario", str(scenario),
                                                         "--strict"))
        return str(recording), output

    def sum_of(self, recording, port, column, begin=0, end=10 ** 18):
        return sum(int(row[column]) for row in self.counters(recording, port) if begin <= int(row["time_ns"]) < end)

    def busy_time(self, *command, network="star-16"):
        """Returns a time in the middle of this command's writes, and how long the writes take, in microseconds."""
        recording = str(self.directory / "undisturbed")
        self.run_on(network, *command, options=("--record", recording))
        times = [int(row["time_ns"]) for row in self.counters(recording, "h1") if float(row["utilization"]) > 0.5]
        return (times[0] + times[-1]) // 2000, (times[-1] - times[0]) // 1000

    def test_a_link_that_flaps_loses_packets_which_are_sent_again(self):
        writes = pair("ib_write_bw", "-n", "100")
        middle, _ = self.busy_time(*writes)
        rule = f"{{on: network, link: h0-s1, after: {middle}us, do: {{flap: {{down: 5us, up: 20us, times: 2}}}}}}"
        recording, _ = self.run_with([rule], *writes)
        self.assertGreater(sum(self.sum_of(recording, port, "drops") for port in ("s1:0", "h0", "s1:1", "h1")), 0)
        # In the end nothing is lost: every byte crossed the link, and some bytes crossed it more than once.
        self.assertGreater(self.sum_of(recording, "s1:0", "tx_bytes"), 100 * 65536)
        replayed = run(ROCEMU, "replay", recording)
        self.assertEqual((replayed.returncode, "no difference" in replayed.stdout), (0, True), replayed.stdout)

    def test_a_slow_link_takes_its_time(self):
        writes = pair("ib_write_bw", "-n", "100")
        recording, _ = self.run_with(["{on: network, port: 's1:0', do: {bandwidth: 10Gbit/s}}"], *writes,
                                     network=self.network(STAR_16))
        rows = self.counters(recording, "s1:0")
        busy = [int(row["time_ns"]) for row in rows if int(row["tx_bytes"]) > 10_000]
        sent = sum(int(row["tx_bytes"]) for row in rows)
        # At 10 Gbit/s, a byte takes 0.8 ns. The first and the last interval may be partly idle.
        self.assertAlmostEqual((busy[-1] - busy[0]) / (0.8 * sent), 1, delta=0.05)

    def test_a_corrupting_link_loses_its_share(self):
        writes = pair("ib_write_bw", "-n", "200")
        recording, _ = self.run_with(["{on: network, link: h0-s1, do: {corruption: 0.1%}}"], *writes)
        # A frame with a wrong FCS is dropped where it arrives. Of 3,200 packets and their repetitions, 3 are expected.
        self.assertGreater(self.sum_of(recording, "h0", "drops"), 0)

    def test_a_switch_that_reboots_loses_its_packets(self):
        writes = pair("ib_write_bw", "-n", "100")
        middle, _ = self.busy_time(*writes)
        recording, _ = self.run_with([f"{{on: network, switch: s1, after: {middle}us, do: {{reboot: 50us}}}}"], *writes)
        silent = self.sum_of(recording, "s1:0", "tx_bytes", (middle + 20) * 1000, (middle + 40) * 1000)
        self.assertEqual(silent, 0)
        self.assertGreater(self.sum_of(recording, "s1:0", "drops") + self.sum_of(recording, "h1", "drops"), 0)

    def test_a_pause_storm_stops_the_innocent(self):
        network = self.network(STAR_16.replace("512KiB", "64KiB").replace("384KiB", "48KiB"))
        # Host 1 writes to host 0, whose NIC pauses the switch, and to host 2.
        commands = [pair("ib_write_bw", "-n", "100", server=server) for server in (0, 2)]
        writes = together(commands)
        middle, _ = self.busy_time(*writes, network=network)
        storm = f"{{on: network, host: h0, after: {middle}us, for: 1ms, do: pause_storm}}"
        recording, _ = self.run_with([storm], *writes, network=network)
        self.assertEqual(self.sum_of(recording, "s1:0", "rx_pauses"), 1)
        begin, end = (middle + 100) * 1000, (middle + 900) * 1000
        self.assertEqual(self.sum_of(recording, "s1:0", "tx_bytes", begin, end), 0)
        self.assertEqual(self.sum_of(recording, "s1:2", "tx_bytes", begin, end), 0)
        drops = {port: self.sum_of(recording, port, "drops") for port in ("s1:0", "s1:2", "h1")}
        self.assertEqual(set(drops.values()), {0})

    def test_wrong_ecn_thresholds_mark_without_need(self):
        ecn = STAR_16.replace("  pfc", "  ecn: {kmin: 100KiB, kmax: 400KiB, pmax: 0.2}\n  pfc")
        network = self.network(ecn + "nics: {dcqcn: default}\n")
        writes = together([pair("ib_write_bw", "-n", "40", client=client) for client in (1, 2)])
        marks = {}
        for name, change in (("low", "{kmin: 0, kmax: 1B}"), ("off", "off")):
            recording, _ = self.run_with([f"{{on: network, switch: s1, do: {{ecn: {change}}}}}"], *writes,
                                         network=network, name=name)
            marks[name] = self.sum_of(recording, "s1:0", "ecn_marks")
        self.assertEqual(marks["off"], 0)
        self.assertGreater(marks["low"], 0)

    def test_runs_with_faults_are_the_same(self):
        writes = together([pair("ib_write_bw", "-n", "20", client=client) for client in (1, 2)])
        rules = ["{on: network, link: h0-s1, do: {corruption: 1%}}",
                 "{on: network, link: h1-s1, after: 1us, do: {flap: {down: 2us, up: 30us, times: 3}}}"]
        traces = [(pathlib.Path(self.run_with(rules, *writes, name=f"run{number}")[0]) / "trace.pcap").read_bytes()
                  for number in range(3)]
        self.assertTrue(traces[0] == traces[1] == traces[2])

    def test_a_part_that_does_not_exist_is_an_error(self):
        scenario = self.directory / "scenario.yaml"
        scenario.write_text("rules: [{on: network, link: h99-s1, do: down}]\n")
        refused = rocemu_run("true", options=("--lockstep", "--fabric", "star-16", "--scenario", str(scenario)))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the network has no link 'h99-s1'", refused.stdout)
        refused = rocemu_run("true", options=("--lockstep", "--scenario", str(scenario)))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("on: network needs a simulated network; give one with --fabric", refused.stdout)

    def test_check_knows_the_parts_of_a_network(self):
        scenario = self.directory / "scenario.yaml"
        scenario.write_text("rules: [{on: network, switch: s2, do: {reboot: 1ms}}]\n")
        self.assertEqual(run(ROCEMU, "check", scenario).returncode, 0)
        checked = run(ROCEMU, "check", "--fabric", "star-16", scenario)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("scenario.yaml: rule 'rule 1': the network has no switch 's2'; its switches are s1",
                      checked.stdout)
        checked = run(ROCEMU, "check", "--fabric", "nowhere", scenario)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("--fabric: cannot read the network 'nowhere'", checked.stdout)

    def test_inject_checks_the_parts_of_a_network(self):
        output = self.run_on("star-16", "sh", "-c",
                             f"{ROCEMU} inject '{{on: network, link: h0-s1, do: down}}' && "
                             f"! {ROCEMU} inject '{{on: network, host: h16, do: pause_storm}}' 2>&1")
        self.assertIn("the network has no host 'h16'; its hosts are h0 to h15", output)


class Transports(Programs):
    """Tests other transports, addresses and libraries than perftest's RC over IPv4."""

    def same_three_times(self, *command, network="star-16", options=()):
        """Runs the command three times, and checks that the frames are equal. Returns the last recording and output."""
        traces = []
        for number in range(3):
            recording = self.directory / f"run{number}"
            output = self.run_on(network, *command, options=("--record", str(recording), *options))
            traces.append((recording / "trace.pcap").read_bytes())
        self.assertTrue(traces[0] == traces[1] == traces[2])
        return str(recording), output

    def test_datagrams_follow_the_formula(self):
        captures, options = self.ports("h1", "s1:0")
        recording, _ = self.same_three_times(*pair("ib_send_bw", "-c", "UD", "-n", "100", "-s", "1024"),
                                             options=options)
        ud_send_only, deth = 0x64, 8  # opcode and length of the DETH: IBTA vol 1, table 38 and 9.3.2
        sent, forwarded = (times_of(capture, ud_send_only) for capture in captures)
        self.assertGreaterEqual(len(sent), 100)
        self.assertEqual(len(forwarded), len(sent))
        # If a packet finds the switch's queue empty, the switch adds no time.
        first = forwarded[0] - sent[0]
        self.assertEqual(first, path_ns(deth + 1024, links=1))

    def test_ipv6_addresses_have_longer_headers(self):
        devices = [f"--device=rocemu{number}=fd00::{number + 1}" for number in range(2)]
        (client, switch), options = self.ports("h1", "s1:0")
        self.same_three_times(*pair("ib_send_lat", "-n", "20", "-s", "64"), options=(*options, *devices))
        longer = 40 - 20  # IPv6 headers have 40 bytes (RFC 8200, 3), those of IPv4 have 20
        sent, forwarded = times_of(client, SEND_ONLY), times_of(switch, SEND_ONLY)
        self.assertGreaterEqual(len(sent), 20)
        self.assertEqual({after - before for before, after in zip(sent, forwarded, strict=True)},
                         {path_ns(64 + longer, links=1)})
        self.assertEqual({row[0] for row in tshark(client, "ipv6.src")}, {"fd00::2"})

    def test_pfc_loses_nothing_of_an_incast(self):
        tight = STAR_16.replace("512KiB", "32KiB").replace("384KiB", "24KiB").replace("16MiB", "2MiB")
        writes = together([pair("ib_write_bw", "-n", "20", client=client) for client in range(1, 8)])
        recording, _ = self.same_three_times(*writes, network=self.network(tight))
        counts = {column: sum(int(row[column]) for port in ("s1:0", *(f"h{n}" for n in range(1, 8)))
                              for row in self.counters(recording, port)) for column in ("drops", "rx_pauses")}
        self.assertEqual(counts["drops"], 0)
        self.assertGreater(counts["rx_pauses"], 0)

    @needs_ucx_with_verbs
    def test_ucx_perftest(self):
        devices = [f"--device=rocemu{number}=fd00::{number + 1}" for number in range(2)]
        port = free_port()
        common = f"UCX_TLS=rc,self ucx_perftest -p {port}"
        script = (f"UCX_NET_DEVICES=rocemu0:1 {common} & sleep 1; "
                  f"UCX_NET_DEVICES=rocemu1:1 {common} -t ucp_put_bw -s 65536 -n 200 -w 10 localhost && wait $!")
        # UCX writes process numbers and times into its own messages, so the frames of different runs differ
        # (docs/reference/determinism.md).
        for number in range(3):
            recording = str(self.directory / f"run{number}")
            output = self.run_on("star-16", "sh", "-c", script, options=("--record", recording, *devices))
            # The average bandwidth in MiB/s. It is less than 100 Gbit/s by the headers and the time of a message.
            megabytes = float(re.findall(r"^Final: +200 +\S+ +\S+ +\S+ +(\S+)", output, re.MULTILINE)[0])
            payload = MTU / (HEADERS + MTU + FRAMING)
            self.assertAlmostEqual(megabytes * 2 ** 20 / (12.5e9 * payload), 1, delta=0.05)
        # Before the transfer of 1 ms, UCX may wait for a timer of 100 ms (UCX_UD_VERBS_ASYNC_TIMER_TICK). The default
        # intervals of such a run are about as long as the transfer.
        rows = self.counters(recording, "h1", "--interval", "50us")
        self.assertGreater(max(float(row["utilization"]) for row in rows), 0.9)


class Collective(Programs):
    """Runs a ring all-reduce of n processes: each sends 2 (n - 1) / n of its bytes (Patarasuk and Yuan, 2009).
    Headers are 2 % of the packets, and each step waits for its links."""

    def same_each_time(self, network, command, options=()):
        """Runs the command three times, and checks that the frames are equal. Returns the time that the command
        prints."""
        outputs, traces = set(), []
        for number in range(3):
            recording = self.directory / f"run{number}"
            output = self.run_on(network, *command, options=("--record", str(recording), *options))
            outputs.update(re.findall(r"^(\d+) ns$", output, re.MULTILINE))
            traces.append((recording / "trace.pcap").read_bytes())
            subprocess.run(["rm", "-r", recording], check=True)
        self.assertTrue(traces[0] == traces[1] == traces[2])
        (nanoseconds,) = outputs
        return int(nanoseconds)

    def check_time(self, ranks, numbers, nanoseconds):
        model = 2 * (ranks - 1) / ranks * 4 * numbers * PS_PER_BYTE / 1000
        self.assertAlmostEqual(nanoseconds / model, 1, delta=0.05)

    def test_4_ranks_take_the_time_of_the_cost_model(self):
        numbers = 4 * 262144
        self.check_time(4, numbers, self.same_each_time("star-16", [os.environ["ROCEMU_RING"], 4, numbers]))

    def test_16_ranks_take_the_time_of_the_cost_model(self):
        # Chunks of 256 KiB take 21 us. The delay of the links is short, so that it does not dominate the 30 steps.
        numbers, network = 16 * 65536, self.network(STAR_16.replace("500ns", "100ns"))
        self.check_time(16, numbers, self.same_each_time(network, [os.environ["ROCEMU_RING"], 16, numbers]))


class Counters(Programs):
    def test_show_has_the_ports_of_the_network(self):
        network = self.network(STAR_16.replace("512KiB", "64KiB").replace("384KiB", "48KiB"))
        writes = together([pair("ib_write_bw", "-n", "40", client=client) for client in (1, 2)])
        writes[-1] += f"; {ROCEMU} show --fabric; {ROCEMU} show --fabric --json > {self.directory}/json; " \
                      "cat /sys/class/infiniband/rocemu1/ports/1/hw_counters/rx_prio3_pause"
        output = self.run_on(network, *writes)
        self.assertRegex(output, r"s1:0 +h0 +up +\d+\.\d % +\d+ +\d+ +0 +0 +0")
        self.assertIn("26 of 32 ports had no traffic", output)
        ports = {port["port"]: port for port in json.loads((self.directory / "json").read_text())["ports"]}
        (to_receiver,) = ports["s1:0"]["priorities"]
        self.assertEqual(to_receiver["priority"], 3)
        self.assertGreater(to_receiver["tx_bytes"], 2 * 40 * 65536)
        # The NIC of host 1 received the pauses that the switch sent.
        (received,), (sent,) = ports["h1"]["priorities"], ports["s1:1"]["priorities"]
        self.assertGreater(received["rx_pauses"], 0)
        self.assertEqual(received["rx_pauses"], sent["tx_pauses"])
        self.assertEqual(int(output.strip().splitlines()[-1]), received["rx_pauses"])

    def test_show_needs_a_network(self):
        result = rocemu_run(ROCEMU, "show", "--fabric")
        self.assertEqual(result.returncode, 1)
        self.assertIn("this NIC has no simulated network; start it with --lockstep --fabric", result.stdout)

    def test_a_timeline_has_the_rate_of_each_qp(self):
        recording = str(self.directory / "run")
        writes = together([pair("ib_write_bw", "-n", "40", client=client) for client in (1, 2)])
        self.run_on("star-16", *writes, options=("--record", recording))
        table = run(ROCEMU, "timeline", "--fabric", recording, "--csv", "-", check=True).stdout
        sent = {}
        for row in csv.DictReader(io.StringIO(table)):
            if row["qp"]:
                sent[row["qp"]] = sent.get(row["qp"], 0) + int(row["tx_bytes"])
        for host in ("h1", "h2"):
            (qp,) = (name for name, count in sent.items() if name.startswith(f"{host} QP") and count > 10 ** 6)
            port = sum(int(row["tx_bytes"]) for row in self.counters(recording, host))
            self.assertAlmostEqual(sent[qp] / port, 1, delta=0.01)
        text = run(ROCEMU, "timeline", "--fabric", recording, "--port", "h1", check=True).stdout
        self.assertRegex(text, r"h1 QP 0x[0-9a-f]+  \d+\.\d\d Gbit/s on average")
        self.assertNotIn("h2", text)
        refused = run(ROCEMU, "timeline", "--fabric", recording, "--port", "h16")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has no port 'h16'", refused.stdout)


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
