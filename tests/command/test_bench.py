"""Tests scripts/bench without measuring: what `--rxe` creates and removes, with scripts that stand in for ip, rdma,
modprobe and perftest, and the arithmetic of two parts."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = SOURCE / "tests" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from bench import parts, ranks, rxe, verdicts  # noqa: E402

TIMEOUT = 60

# The stand-ins keep what exists in $STATE: interfaces with their settings, sys/class/infiniband, sys/module.
# The files "block" and "fail" contain the beginning of a command, which then waits until a signal ends it, or fails.
HEAD = """\
echo "$NAME $*" >> "$STATE/calls"
if [ -e "$STATE/block" ]; then
  case "$NAME $*" in "$(cat "$STATE/block")"*) exec sleep 600 ;; esac
fi
if [ -e "$STATE/fail" ]; then
  case "$NAME $*" in "$(cat "$STATE/fail")"*) echo "no such thing" >&2; exit 1 ;; esac
fi
"""
STAND_INS = {
    "modprobe": """
if [ "$1" = -r ]; then rmdir "$STATE/sys/module/$2"; else mkdir "$STATE/sys/module/$1"; fi
""",
    "ip": """
case "$1 $2" in
"link add")
  mkdir "$STATE/interfaces/$3"
  while [ "$1" != peer ]; do shift; done
  mkdir "$STATE/interfaces/$3"
  echo "$3" > "$STATE/peer" ;;
"link delete") rm -r "$STATE/interfaces/$3" "$STATE/interfaces/$(cat "$STATE/peer")" "$STATE/peer" ;;
"address add") echo "$3" | sed "s:/.*::" > "$STATE/interfaces/$5/address" ;;
esac
""",
    "rdma": """
gids=$STATE/sys/class/infiniband/$3/ports/1/gids
if [ "$2" = add ]; then
  mkdir -p "$gids"
  echo fe80:0000:0000:0000:0000:00ff:fe00:0001 > "$gids/0"
  printf "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\\n" $(tr . " " < "$STATE/interfaces/$7/address") > "$gids/1"
else
  rm -r "$STATE/sys/class/infiniband/$3"
fi
""",
}
# Prints what the server and the client of perftest print for 64 KiB.
PERFTEST = f"""#!{sys.executable}
import socket, sys
arguments = sys.argv[1:]
print("arguments:", *arguments)
port = int(arguments[arguments.index("-p") + 1])
if arguments[-1].startswith("198.18."):
    socket.create_connection(("127.0.0.1", port)).close()
    print(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]")
    print(" 65536      5000             2100.00            2000.00            0.032000")
else:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen()
    listener.accept()
"""
# Creates the devices, says so, and waits.
HOLD = f"""
import pathlib, sys, time
sys.path.insert(0, {str(BENCHMARKS)!r})
from bench import rxe
state = pathlib.Path(sys.argv[1])
rxe.SYS, rxe.SYSCTLS = state / "sys", state / "interfaces"
with rxe.Devices():
    print("ready", flush=True)
    time.sleep(600)
"""


class Rxe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rocemu-bench-")
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)
        self.bin = self.state / "bin"
        for directory in (self.bin, self.state / "interfaces", self.state / "sys" / "module",
                          self.state / "sys" / "class" / "infiniband"):
            directory.mkdir(parents=True)
        for name, script in STAND_INS.items():
            self.stand_in(name, f"#!/bin/sh\nNAME={name}\n{HEAD}{script}")
        for replaced in (mock.patch.object(rxe, "SYS", self.state / "sys"),
                         mock.patch.object(rxe, "SYSCTLS", self.state / "interfaces"),
                         mock.patch.dict(os.environ, self.environment())):
            replaced.start()
            self.addCleanup(replaced.stop)

    def environment(self):
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "STATE": str(self.state)}

    def stand_in(self, name, script):
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def calls(self):
        file = self.state / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def assert_nothing_is_left(self):
        for directory in ("interfaces", "sys/module", "sys/class/infiniband"):
            self.assertEqual(os.listdir(self.state / directory), [], directory)

    def test_removes_all_in_reverse_order_and_unloads_the_module(self):
        with rxe.Devices() as devices:
            self.assertEqual(devices.gids, [1, 1])
            for interface in devices.interfaces:
                settings = self.state / "interfaces" / interface
                self.assertEqual((settings / "accept_local").read_text(), "1\n")
                self.assertEqual((settings / "rp_filter").read_text(), "2\n")
        self.assert_nothing_is_left()
        first, second = devices.devices
        self.assertEqual(self.calls()[-4:], [f"rdma link delete {second}", f"rdma link delete {first}",
                                             f"ip link delete {devices.interfaces[0]}", "modprobe -r rdma_rxe"])

    def test_keeps_a_module_that_was_loaded(self):
        (self.state / "sys" / "module" / "rdma_rxe").mkdir()
        with rxe.Devices():
            pass
        self.assertEqual([call for call in self.calls() if call.startswith("modprobe")], [])

    def test_removes_all_after_an_error_in_the_block(self):
        with self.assertRaises(ZeroDivisionError), rxe.Devices():
            raise ZeroDivisionError
        self.assert_nothing_is_left()

    def test_removes_what_exists_when_any_command_fails(self):
        pid = os.getpid()
        for command in ("ip link add", f"ip address add {rxe.ADDRESSES[1]}", "ip neighbor",
                        f"rdma link add rbx{pid}a", f"rdma link add rbx{pid}b"):
            with self.subTest(command), contextlib.redirect_stderr(io.StringIO()) as said:
                (self.state / "fail").write_text(command)
                with self.assertRaisesRegex(rxe.Refused, f"{command}.*: no such thing"), rxe.Devices():
                    self.fail("the block began")
                self.assert_nothing_is_left()
                self.assertEqual(said.getvalue(), "")

    def test_removes_the_rest_when_one_removal_fails(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, rxe.Devices() as devices:
            (self.state / "fail").write_text(f"rdma link delete {devices.devices[0]}")
        self.assertEqual(said.getvalue(), f"bench: rdma link delete {devices.devices[0]}: no such thing\n")
        self.assertEqual(os.listdir(self.state / "sys/class/infiniband"), [devices.devices[0]])
        self.assertEqual(os.listdir(self.state / "interfaces"), [])

    def test_says_where_the_module_comes_from(self):
        (self.state / "fail").write_text("modprobe rdma_rxe")
        with self.assertRaises(rxe.Refused) as refused, rxe.Devices():
            self.fail("the block began")
        for text in ("modprobe rdma_rxe: no such thing", "linux-image-amd64", "linux-modules-extra", "CONFIG_RDMA_RXE"):
            self.assertIn(text, str(refused.exception))
        self.assertEqual(self.calls(), ["modprobe rdma_rxe"])

    def hold(self):
        process = subprocess.Popen([sys.executable, "-c", HOLD, self.state], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def test_removes_all_after_ctrl_c_and_other_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                process = self.hold()
                self.assertEqual(process.stdout.readline(), "ready\n")
                os.killpg(process.pid, number)  # a terminal sends Ctrl-C to all processes, too
                process.communicate(timeout=TIMEOUT)
                self.assertNotEqual(process.returncode, 0)
                self.assert_nothing_is_left()

    def test_removes_all_after_ctrl_c_during_a_command(self):
        # The command waits after it was recorded, and before it creates the second device.
        (self.state / "block").write_text("rdma link add")
        process = self.hold()
        wait_for(lambda: any(call.startswith("rdma link add") for call in self.calls()), "the command")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
        self.assertNotEqual(process.returncode, 0)
        self.assert_nothing_is_left()

    def test_refuses_users_other_than_root(self):
        with mock.patch("os.geteuid", return_value=1000), self.assertRaisesRegex(rxe.Refused, "root"):
            rxe.check()

    def test_names_the_packages_that_are_missing(self):
        (self.bin / "modprobe").unlink()
        with mock.patch("os.geteuid", return_value=0), mock.patch.object(rxe, "SEARCH", ""), \
                mock.patch.dict(os.environ, {"PATH": str(self.bin)}), \
                self.assertRaisesRegex(rxe.Refused, "needs modprobe and ib_send_lat; install kmod perftest"):
            rxe.check()

    def test_refuses_before_it_builds_or_creates_anything(self):
        for arguments, said in ((["--only", "latency"], "excludes"), (["--update-docs"], "excludes")):
            result = subprocess.run([sys.executable, SOURCE / "scripts" / "bench", "--rxe", *arguments],
                                    capture_output=True, text=True, timeout=TIMEOUT, check=False)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(said, result.stderr)
        self.assertEqual(self.calls(), [])

    def test_runs_one_program_on_each_device_and_reads_its_figures(self):
        self.stand_in("ib_write_bw", PERFTEST)
        with rxe.Devices() as devices:
            for with_itself, client in ((False, 1), (True, 0)):
                output = devices.run(with_itself, "ib_write_bw", "-d", "rocemu0", "-s", 65536)
                self.assertIn(f"-d rocemu0 -s 65536 -d {devices.devices[client]} -x 1 {rxe.ADDRESSES[0]}", output)
            figures = rxe._measure(devices, "rxe over veth", "ib_write_bw", 65536, 5000)
        self.assertEqual(figures["MB/s"], 2000 * 2**20 / 1e6)  # perftest's MB have 2^20 bytes
        self.assertEqual(figures["million/s"], 0.032)

    def test_a_server_that_fails_is_an_error_and_no_wait(self):
        self.stand_in("ib_write_bw", "#!/bin/sh\necho no memory\nexit 1\n")
        with rxe.Devices() as devices, self.assertRaisesRegex(Exception, "no memory"):
            devices.run(False, "ib_write_bw")

    def test_measures_in_turn_and_divides(self):
        asked = []

        def measure(way, program, size, iterations):
            asked.append(way)
            return {"MB/s": {"rocemu": 3000, "rxe over veth": 1500, "rxe with itself": 2000}[way] * len(asked)}
        table = rxe.rows(2, measure, [("ib_read_bw", 65536, 5000, "MB/s")])
        self.assertEqual(asked, ["rocemu", "rxe over veth", "rxe with itself"] * 2)
        # Medians of two: rocemu 3000 * (1 + 4) / 2, veth 1500 * (2 + 5) / 2, itself 2000 * (3 + 6) / 2.
        row = table["ib_read_bw, 64 KiB, MB/s"]
        self.assertEqual([row[way] for way in rxe.WAYS], [7500, 5250, 9000])
        self.assertAlmostEqual(row["rocemu to rxe over veth"], 7500 / 5250)
        self.assertAlmostEqual(row["rocemu to rxe with itself"], 7500 / 9000)
        self.assertIn("1.43", rxe.table(table))


class Ranks(unittest.TestCase):
    def test_divides_the_memory_by_ranks_and_qps(self):
        shown = {"fabric": {"devices": [{"qps": [{}] * 30}, {"qps": [{}] * 2}]}}
        lines = "rocemud\nVmPeak: 9999 kB\nVmHWM:\t   65536 kB\nVmRSS: 5 kB\nRss: 7 kB\nPss:               32768 kB\n"
        figures = ranks.memory_figures(shown, lines, 8)
        self.assertEqual(figures, {"QPs": 32, "MiB RSS at most": 64, "MiB PSS": 32, "KiB RSS a rank": 8192,
                                   "KiB PSS a rank": 4096, "KiB RSS a QP": 2048, "KiB PSS a QP": 1024})

    def test_refuses_the_memory_of_another_process(self):
        with self.assertRaisesRegex(ranks.Failed, "not rocemud"):
            ranks.memory_figures({}, "bash\n", 8)

    def test_reads_the_times_of_the_program(self):
        self.assertEqual(ranks.parse_all_to_all("init 1.500 s\nfirst 9.000 ms, each 2.250 ms\ntotal 3.250 s\n"),
                         {"seconds": 3.25, "s in MPI_Init": 1.5, "ms an exchange": 2.25})
        with self.assertRaisesRegex(ranks.Failed, "did not print its times:\nsomething else"):
            ranks.parse_all_to_all("something else")

    def test_says_what_is_missing_and_skips(self):
        with mock.patch("shutil.which", return_value=None), contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(parts.many_ranks(1), {})
        self.assertIn("skipped, since PATH has no mpirun.openmpi and no mpicc.openmpi; install openmpi-bin", said.getvalue())

    def test_has_no_verdict_on_what_was_skipped(self):
        self.assertEqual(verdicts.ratios({"many_ranks": {}}), [])

    def test_judges_64_ranks(self):
        figures = {f"64 ranks, {way}": {"seconds": time} for way, time in (("rocemu", 9.0), ("UCX over TCP", 5.0))}
        self.assertEqual(verdicts.ratios({"many_ranks": figures}), [
            {"name": "time of 64 MPI ranks to UCX over TCP", "value": 1.8, "limit": "<= 1.5", "holds": False}])


if __name__ == "__main__":
    unittest.main()
