"""Measures perftest on rocemu and on rdma_rxe, Linux's software RoCE NIC, in turn: `scripts/bench --rxe`.

A veth pair has an rxe device at each end. Both ends are in the initial network namespace, since rdma_rxe of Linux 6.1
and of many later versions opens its UDP socket and looks up its routes only there. Frames nevertheless pass through the
pair, because rdma_rxe looks up routes that leave by its interface.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

from . import nic
from .harness import TIMEOUT, Failed, finish, free_port, medians, start  # makes `pair` importable
from pair import listening

SYS = pathlib.Path("/sys")
SYSCTLS = pathlib.Path("/proc/sys/net/ipv4/conf")
ADDRESSES = ("198.18.71.1", "198.18.71.2")  # RFC 2544 reserves 198.18.0.0/15 for benchmarks
MACS = ("02:00:c6:12:47:01", "02:00:c6:12:47:02")
MTU = 9000  # enough for packets of 4096 bytes, as rocemu sends
PACKAGES = {"ip": "iproute2", "rdma": "iproute2", "modprobe": "kmod", "ib_send_lat": "perftest"}
SEARCH = "/usr/local/sbin:/usr/sbin:/sbin"  # root's directories, which PATH may lack
NO_MODULE = """\
--rxe needs the kernel module rdma_rxe, and modprobe does not load it: {reason}
Debian has it in linux-image-amd64, but not in linux-image-cloud-amd64; Ubuntu in linux-modules-extra-$(uname -r).
Kernels that you build need CONFIG_RDMA_RXE. Containers need the module in the kernel of the host."""

# (program, size, iterations, figure); the figures are those of nic.latency() and nic.bandwidth().
PROGRAMS = [("ib_send_lat", 64, 5000, "p50"), ("ib_write_lat", 64, 5000, "p50"),
            *((program, size, iterations, figure) for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw")
              for size, iterations, figure in ((64, 100000, "million/s"), (65536, 5000, "MB/s")))]
LABELS = {"p50": "µs", "million/s": "million/s", "MB/s": "MB/s"}
WAYS = ("rocemu", "rxe over veth", "rxe with itself")

# Signals that raise an exception in a Devices block, as SIGINT always does in Python.
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Refused(Exception):
    """Raised with a message if this machine cannot have rxe devices."""


def _path():
    return os.environ.get("PATH", os.defpath) + ":" + SEARCH


def _run(*command):
    """Runs a command that changes the system. Raises Refused with its message if it fails."""
    command = [str(word) for word in command]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT,
                            check=False, env={**os.environ, "PATH": _path()})
    if result.returncode != 0:
        raise Refused(f"{' '.join(command)}: {(result.stderr or result.stdout).strip()}")


def check():
    """Raises Refused unless this user and this machine have what --rxe needs, except for the module."""
    if os.geteuid() != 0:
        raise Refused("--rxe needs root, to load rdma_rxe and to create a veth pair; use sudo")
    needed = [name for name in PACKAGES if name != "modprobe" or not _module_is_loaded()]
    missing = [name for name in needed if shutil.which(name, path=_path()) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[name] for name in missing}))
        raise Refused(f"--rxe needs {' and '.join(missing)}; install {packages}")


def _module_is_loaded():
    return (SYS / "module" / "rdma_rxe").exists()


class Devices:
    """Creates two rxe devices at the ends of a veth pair for a `with` block. The end of the block removes what its start
    created, also after an error, Ctrl-C or SIGTERM."""

    def __init__(self):
        # The names contain the process ID, so that no other interface or device has them.
        self.interfaces = [f"rbv{os.getpid()}{end}" for end in "ab"]
        self.devices = [f"rbx{os.getpid()}{end}" for end in "ab"]
        self.gids = []
        self._undo = []
        self._handlers = {}

    def __enter__(self):
        for number in SIGNALS:
            self._handlers[number] = signal.signal(number, lambda number, _: sys.exit(128 + number))
        try:
            self._create()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def _create(self):
        if not _module_is_loaded():
            try:
                self._do(["modprobe", "rdma_rxe"], undo=["modprobe", "-r", "rdma_rxe"])
            except Refused as refused:
                raise Refused(NO_MODULE.format(reason=refused)) from None
        a, b = self.interfaces
        self._do(["ip", "link", "add", a, "address", MACS[0], "mtu", MTU, "type", "veth",
                  "peer", "name", b, "address", MACS[1], "mtu", MTU],
                 undo=["ip", "link", "delete", a])  # deletes both ends
        for end, other in ((0, 1), (1, 0)):
            interface = self.interfaces[end]
            # Each end must accept packets from an address of this machine. These settings disappear with the interface.
            for setting, value in (("accept_local", 1), ("rp_filter", 2)):
                (SYSCTLS / interface / setting).write_text(f"{value}\n")
            _run("ip", "address", "add", f"{ADDRESSES[end]}/30", "dev", interface)
            _run("ip", "link", "set", interface, "up")
            _run("ip", "neighbor", "replace", ADDRESSES[other], "lladdr", MACS[other], "dev", interface,
                 "nud", "permanent")
        for device, interface in zip(self.devices, self.interfaces):
            self._do(["rdma", "link", "add", device, "type", "rxe", "netdev", interface],
                     undo=["rdma", "link", "delete", device])
        self.gids = [self._gid_index(device, address) for device, address in zip(self.devices, ADDRESSES)]

    def _do(self, command, undo):
        """Runs a command, and lets _remove() run `undo`, even if a signal interrupts the command."""
        self._undo.append(undo)
        try:
            _run(*command)
        except Refused:
            self._undo.pop()
            raise

    @staticmethod
    def _gid_index(device, address, patience_s=10):
        """Returns the index of the GID with this address, when the device has it."""
        wanted = "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*map(int, address.split(".")))
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            for gid in (SYS / "class" / "infiniband" / device / "ports" / "1" / "gids").glob("*"):
                with contextlib.suppress(OSError):  # an empty entry cannot be read
                    if gid.read_text().strip() == wanted:
                        return int(gid.name)
            time.sleep(0.05)
        raise Refused(f"rdma_rxe gave {device} no GID with the address {address}")

    def _remove(self):
        """Removes everything. Signals are ignored meanwhile, also by the commands."""
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for command in reversed(self._undo):
            try:
                _run(*command)
            except (Refused, OSError, subprocess.TimeoutExpired) as error:
                print(f"bench: {error}", file=sys.stderr)
        self._undo = []
        signal.signal(signal.SIGINT, interrupted)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run(self, with_itself, program, *options):
        """Returns the client's output of a perftest program between the devices, or on one of them."""
        port = free_port()
        ends = (0, 0) if with_itself else (0, 1)

        def side(end, *arguments):
            # The device of nic.latency() is rocemu0; perftest takes the last -d.
            return start(program, "-p", port, *options, "-d", self.devices[end], "-x", self.gids[end], *arguments)
        processes = [side(ends[0])]
        try:
            self._wait_for_listener(port, processes[0])
            processes.append(side(ends[1], ADDRESSES[0]))
            output = finish(processes[1])
            finish(processes[0])
            return output
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()

    @staticmethod
    def _wait_for_listener(port, server):
        while not listening(port):
            if server.poll() is not None:
                raise Failed(f"{server.args} ended before it listened:\n{server.stdout.read()}")
            time.sleep(0.01)


def rows(rounds, measure, programs=tuple(PROGRAMS)):
    """Returns the table: for each program and size the figure of each way, and rocemu's divided by rxe's.
    `measure` takes a way, a program, a size and a number of iterations, and returns figures by name."""
    table = {}
    for program, size, iterations, figure in programs:
        name = f"{program}, {'64 KiB' if size == 65536 else f'{size} B'}, {LABELS[figure]}"
        row = medians(rounds, **{way: lambda way=way: measure(way, program, size, iterations)[figure] for way in WAYS})
        for way in WAYS[1:]:
            row[f"rocemu to {way}"] = row["rocemu"] / row[way]
        table[name] = row
    return table


def _measure(devices, way, program, size, iterations):
    where = nic.inside if way == "rocemu" else partial(devices.run, way == "rxe with itself")
    of = nic.latency if program.endswith("_lat") else nic.bandwidth
    return of(where, program, size, iterations)


def compare(rounds):
    """Creates the devices, measures everything and removes the devices. Returns the table."""
    check()
    with Devices() as devices:
        return rows(rounds, partial(_measure, devices))


def table(figures):
    """Returns the table as text."""
    columns = list(next(iter(figures.values())))
    lines = [" " * 30 + "".join(f"{column:>24}" for column in columns)]
    for name, row in figures.items():
        lines.append(f"{name:30}" + "".join(f"{row[column]:24.2f}" for column in columns))
    return "\n".join([*lines, "", "Both have packets of 4096 bytes. Ratios: above 1, rocemu's figure is larger, "
                                  "which is better for million/s and MB/s, and worse for µs."])
