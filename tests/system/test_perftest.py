"""Runs the distribution's perftest: every tool over every transport that it supports.

Each test checks that both sides end well and report the transport, the sizes and the numbers of exchanges that were
requested; perftest itself does not check data. Each tool is a class, so that ctest runs the tools side by side. With
ROCEMU_LONG_TESTS=1, every option is tested over every transport, on one device and between two devices. Otherwise,
every option is tested over RC between two devices, and those marked `everywhere` over the other transports, too.
"""
import dataclasses
import os
import pathlib
import re
import unittest

from rocemu import NO_CLOCK, PAIR, free_port, rocemu_run, temporary_directory

SANITIZE = os.environ.get("ROCEMU_SANITIZE", "")
LONG = os.environ.get("ROCEMU_LONG_TESTS", "0") != "0"
TROUBLE = re.compile(r"fail|error|couldn't|unable|wrong|mismatch|invalid|syndrom", re.IGNORECASE)
MTUS = (256, 512, 1024, 2048, 4096)
TRIES = 5
LARGEST = {"RC": 2 ** 23, "UC": 2 ** 23, "XRC": 2 ** 23, "UD": 4096}  # messages of -a


@dataclasses.dataclass
class Case:
    """A run of a tool: its options, how often each size must then be exchanged (None if that depends on time and
    machine), and a text that the client must print."""
    options: str
    iterations: int | None = 20
    says: str = ""  # a regular expression
    everywhere: bool = False
    long_only: bool = False
    transports: tuple[str, ...] = ("RC", "UC", "UD", "XRC")


COMMON = [
    Case("", everywhere=True),
    # perftest measures the clock for 0.2 s before each size, so these cases take long.
    Case("-a", iterations=5, transports=("RC", "UD"), everywhere=True),
    Case("-a", iterations=5, transports=("UC", "XRC"), long_only=True),
    Case("-s 1000000", iterations=5, transports=("UC", "XRC"), everywhere=True),
    Case("-x 1 -s 64", says=r"GID index +: 1\b"),
    Case("-D 1 -s 64", iterations=None),
    *[Case(f"-m {mtu} -s 10000", says=rf"Mtu +: {mtu}\[B\]", transports=("RC", "UC", "XRC"))
      for mtu in MTUS],
    *[Case(f"-m {mtu} -s {mtu}", says=rf"Mtu +: {mtu}\[B\]", transports=("UD",)) for mtu in MTUS],
]
BANDWIDTH = COMMON + [
    Case("-b", everywhere=True, says="Bidirectional"),
    Case("-b -a", iterations=5, says="Bidirectional", long_only=True),
    Case("-q 16 -s 64", everywhere=True),
    # iterations must be at least the number of QPs, because perftest divides that number of receives of an SRQ among
    # the QPs, and rounds down. It must also be a multiple of the moderation (100): perftest counts each completion as
    # 100 sends and stops polling when it has counted all, even if a QP has not posted its last sends.
    Case("-q 128 -s 64", iterations=200),
    Case("-q 16 -b -s 4096", iterations=40),
    Case("-q 4 -s 64 --mr_per_qp"),
    Case("-l 8 -s 64", iterations=40),
    Case("-t 1 -s 64", says=r"TX depth +: 1\b"),
    Case("-Q 1 -s 64", says=r"CQ Moderation +: 1\b"),
]
# perftest knows the inline sizes of only some vendors' devices, and prints a warning for others, but it runs.
INLINE = [Case("-I 64 -s 64")]
EVENTS = [Case("-e -s 64", everywhere=True), Case("-e -s 65536", transports=("RC", "UC", "XRC"))]
RECEIVING = [
    Case("-r 1 -s 64", transports=("RC", "XRC")),  # over UC and UD, most messages would be lost
    Case("-r 500 -s 64"),
    Case("--use-srq -s 64", says=r"Using SRQ +: ON", transports=("RC", "UD")),
]
OUTSTANDING = [Case(f"-o {number} -s 64", says=rf"Outstand reads +: {number}\b")
               for number in (1, 4, 16)]


def in_cycles(cases):
    """Returns the cases with latencies in cycles, except for the default case. With cycles, perftest measures the
    clock only once."""
    return [dataclasses.replace(case, options=f"{case.options} -C") if case.options else case
            for case in cases]


def sizes(options, transport):
    """Returns the sizes that the table must have with these options, or None if they are the tool's defaults."""
    if "-a" in options:
        return [2 ** exponent for exponent in range(1, LARGEST[transport].bit_length())]
    return [int(options[options.index("-s") + 1])] if "-s" in options else None


def messages(text):
    """Returns the contents of perftest's table of results: pairs of size and iterations."""
    _, _, table = text.partition(" #bytes")
    return [(int(size), int(iterations))
            for size, iterations in re.findall(r"^ (\d+) +(\d+) ", table, re.MULTILINE)]


class Perftest:
    """The tests of a tool. Each subclass adds the name, the cases and the transports."""
    tool = ""
    cases = []
    server_takes_part = True  # if False, the server prints no table, or only the client's last line in it

    def run_pair(self, *options, client_device):
        """Returns the output of the server, the output of the client, and the complete output for messages of the
        test."""
        for _ in range(TRIES):
            status, *texts, story = self.try_pair(*options, client_device=client_device)
            if NO_CLOCK not in story:
                break
        self.assertEqual(status, 0, story)
        self.assertNotRegex("\n".join(texts), TROUBLE, story)
        return *texts, story

    def try_pair(self, *options, client_device):
        port = str(free_port())
        command = [self.tool, "-p", port, *options]
        with temporary_directory() as directory:
            outputs = [pathlib.Path(directory, side) for side in ("server", "client")]
            result = rocemu_run(*PAIR, "--outputs", *outputs, port, *command, "-d", "rocemu0", "--",
                                *command, "-d", client_device, "localhost")
            texts = [path.read_text(errors="replace") if path.exists() else "" for path in outputs]
        return result.returncode, *texts, "\n".join([" ".join(command), result.stdout, *texts])

    def check(self, case, transport, client_device):
        options = case.options.split()
        count = [] if case.iterations is None else ["-n", str(case.iterations)]
        server, client, story = self.run_pair("-c", transport, *options, *count,
                                              client_device=client_device)
        qps = int(options[options.index("-q") + 1]) if "-q" in options else 1
        # An XRC connection has a QP for each direction.
        both_ways = transport == "XRC" and ("_lat" in self.tool or "-b" in options)
        for text in (server, client):
            self.assertRegex(text, rf"Connection type : {transport}\b", story)
            self.assertRegex(text, rf"Number of qps   : {qps * (2 if both_ways else 1)}\b", story)
        if case.says:
            self.assertRegex(client, case.says, story)
        for text in (server, client):
            found = messages(text)
            wanted = sizes(options, transport)
            if text is server and not self.server_takes_part and "-b" not in options:
                if not found:
                    continue
                wanted = wanted and wanted[-1:]
            self.assertNotEqual(found, [], story)
            if wanted is not None:
                self.assertEqual([size for size, _ in found], wanted, story)
            if case.iterations is not None:
                self.assertEqual({iterations for _, iterations in found}, {case.iterations * qps},
                                 story)

    def check_over(self, transport):
        for case in self.cases:
            if transport not in case.transports:
                continue
            if not LONG and (case.long_only or not (case.everywhere or transport == "RC")):
                continue
            for client_device in ("rocemu0", "rocemu1"):
                if LONG or client_device == "rocemu1" or case.options == "":
                    with self.subTest(options=case.options, client_device=client_device):
                        self.check(case, transport, client_device)


class OverRc:
    def test_over_reliable_connections(self):
        self.check_over("RC")


class OverUc:
    def test_over_unreliable_connections(self):
        self.check_over("UC")


class OverUd:
    def test_over_unreliable_datagrams(self):
        self.check_over("UD")


class OverXrc:
    def test_over_extended_reliable_connections(self):
        self.check_over("XRC")


class SendBw(Perftest, OverRc, OverUc, OverUd, OverXrc, unittest.TestCase):
    tool = "ib_send_bw"
    cases = BANDWIDTH + INLINE + EVENTS + RECEIVING


class SendLat(Perftest, OverRc, OverUc, OverUd, OverXrc, unittest.TestCase):
    tool = "ib_send_lat"
    cases = in_cycles(COMMON + INLINE + EVENTS + RECEIVING)


class WriteBw(Perftest, OverRc, OverUc, OverXrc, unittest.TestCase):
    tool = "ib_write_bw"
    server_takes_part = False
    cases = BANDWIDTH + INLINE


class WriteLat(Perftest, OverRc, OverUc, OverXrc, unittest.TestCase):
    tool = "ib_write_lat"
    # With -D, a signal ends the tool while it spins on memory. ThreadSanitizer delivers a signal only when the program
    # calls a function of the C library.
    cases = [case for case in in_cycles(COMMON + INLINE)
             if "thread" not in SANITIZE or "-D" not in case.options]


class ReadBw(Perftest, OverRc, OverXrc, unittest.TestCase):
    tool = "ib_read_bw"
    server_takes_part = False
    cases = BANDWIDTH + EVENTS + OUTSTANDING


class ReadLat(Perftest, OverRc, OverXrc, unittest.TestCase):
    tool = "ib_read_lat"
    server_takes_part = False
    cases = in_cycles(COMMON + EVENTS + OUTSTANDING)


def of_atomics(cases):
    """Returns the cases that make sense for atomics, whose messages always have 8 bytes."""
    kept = [dataclasses.replace(case, options=re.sub(r" *-s (64|10000|4096)\b", "", case.options))
            for case in cases if not re.search("-a|65536|1000000", case.options)]
    return [case for case in kept if case.options]


class AtomicBw(Perftest, OverRc, OverXrc, unittest.TestCase):
    tool = "ib_atomic_bw"
    server_takes_part = False
    cases = [Case("", everywhere=True), Case("-A CMP_AND_SWAP", says="CMP_AND_SWAP|Compare"),
             *of_atomics(BANDWIDTH + EVENTS + OUTSTANDING)]


class AtomicLat(Perftest, OverRc, OverXrc, unittest.TestCase):
    tool = "ib_atomic_lat"
    server_takes_part = False
    cases = [Case("", everywhere=True), Case("-A CMP_AND_SWAP", says="CMP_AND_SWAP|Compare"),
             *in_cycles(of_atomics(COMMON + EVENTS + OUTSTANDING))]


if __name__ == "__main__":
    unittest.main()
