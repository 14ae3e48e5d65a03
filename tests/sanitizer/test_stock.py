"""Tests that stock programs get no reports of severity error, except those that
docs/data/sanitizer-programs.md explains."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from support import BIN, HERE, LOCKSTEP, NO_CLOCK, free_port, sanitized, side_by_side, temporary_directory

sys.path.insert(0, str(HERE.parent / "clients"))
from client_server import needs_ucx_with_verbs  # noqa: E402

PINGPONGS = ("ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_uc_pingpong", "ibv_ud_pingpong",
             "ibv_srq_pingpong", "ibv_xsrq_pingpong")
PERFTEST = ("ib_send_bw", "ib_send_bw -e", "ib_send_bw -c UD", "ib_send_lat", "ib_write_bw -b",
            "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat")
# Programs that request a QP for raw packets, which no device of rocemu has.
RAW_PACKETS = ("raw_ethernet_bw", "raw_ethernet_lat", "raw_ethernet_burst_lat",
               "raw_ethernet_fs_rate")
QPERF = ("rc_lat", "uc_lat", "ud_lat", "rc_rdma_write_lat", "ver_rc_fetch_add")
CM_PAIR = (sys.executable, str(HERE.parent / "system" / "cm_pair.py"))
# For each program, the rules whose errors the page explains.
ARGUED = {"perftest": {"receive-buffer-overlap", "send-buffer-modified"},
          "ud_verbs": {"send-buffer-modified", "mr-deregistered-in-use"},
          "rsockets": {"mr-deregistered-in-use"}}


def after(server, client, port):
    """Returns a shell command that starts a server, and a client as soon as the server listens."""
    return ["sh", "-c", f"{server} & {BIN}/rocemu wait --listening {port} && {client}; wait $!"]


def both(program):
    port = free_port()
    return after(f"{program} -p {port}", f"{program} -p {port} 127.0.0.1", port)


def cm(port, program, client="-s 127.0.0.1"):
    """Returns the command for both sides of a librdmacm program. Its ports are separate for each NIC."""
    return [*CM_PAIR, str(port), *program.split(), "--", *program.split(), *client.split()]


class Stock(unittest.TestCase):
    def check(self, program, command, options=LOCKSTEP, argued=(), status=0, **keywords):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed")
        for _ in range(5):
            result, reports = sanitized(*command, options=(*options, "--timeout", "120s"), **keywords)
            if NO_CLOCK not in result.stdout:  # if perftest prints this on a busy machine, the run is repeated
                break
        errors = {one["rule"] for one in reports if one["severity"] == "error"}
        self.assertLessEqual(errors, set(argued), result.stdout)
        if status is not None:
            self.assertEqual(result.returncode, 1 if errors else status, result.stdout)

    def check_each(self, programs, command_of, **keywords):
        def check(program):
            self.check(program.split()[0], command_of(program), **keywords)
        side_by_side(self, check, programs, at_once=3)

    def test_pingpongs(self):
        self.check_each(PINGPONGS, lambda one: both(f"{one} -g 0 -n 100"))

    def test_perftest(self):
        # perftest measures the processor's cycle counter, so these runs are not in lockstep.
        self.check_each(PERFTEST, lambda one: both(f"{one} -F -x 0 -n 200"), options=())

    def test_perftest_of_raw_packets(self):
        self.check_each(RAW_PACKETS, options=(), status=None, command_of=lambda one: [
            one, "--client", "-d", "rocemu0", "-n", "10", "-E", "00:11:22:33:44:55",
            "-B", "00:11:22:33:44:56"])

    def test_perftest_that_the_page_argues(self):
        self.check_each(("ib_send_bw -s 64", "ib_send_bw --use-srq -q 2"),
                        lambda one: both(f"{one} -F -x 0 -n 200"), options=(),
                        argued=ARGUED["perftest"])

    def test_programs_of_the_connection_manager(self):
        programs = {
            "rping": [*CM_PAIR, "7174", "rping", "-s", "-a", "127.0.0.1", "-C", "5", "--", "rping",
                      "-c", "-a", "127.0.0.1", "-C", "5"],
            "udaddy": cm(7174, "udaddy -C 20"),
            "ucmatose": cm(7471, "ucmatose -C 20"),
            "rdma_client": [*CM_PAIR, "7471", "rdma_server", "--", "rdma_client", "-s", "127.0.0.1"],
        }
        self.check_each(programs, programs.get, options=())

    def test_rsockets(self):
        """On a busy machine, closing a socket finds completions that the program has not polled."""
        self.check_each(("rstream", "riostream"), lambda one: cm(7471, f"{one} -S 4096 -I 10"), options=(),
                        argued=ARGUED["rsockets"])

    def test_mckey(self):
        script = """
import subprocess, sys
receiver = subprocess.Popen(["mckey", "-m", "239.1.2.3", "-b", "127.0.0.2", "-C", "10"])
subprocess.run(["mckey", "-m", "239.1.2.3", "-b", "127.0.0.1", "-C", "10", "-s"])
receiver.kill()
"""
        self.check("mckey", [sys.executable, "-c", script], options=())

    def test_cmtime(self):
        # The server of cmtime does not end by itself.
        self.check("cmtime", ["env", "CM_PAIR_KILLS_SERVER=1",
                              *cm(7471, "cmtime -b 127.0.0.1 -c 50", "-s 127.0.0.1")], options=())

    def test_qperf(self):
        def command(test):
            port = free_port()
            return after(f"qperf -lp {port}", f"qperf -lp {port} -t 1 localhost {test} quit", port)
        self.check_each([f"qperf {test}" for test in QPERF],
                        lambda one: command(one.split()[1]), options=())

    def test_fio(self):
        with temporary_directory() as directory:
            def command(verb):
                port = free_port()
                common = f"ioengine=rdma\nport={port}\nbs=65536\nsize=4194304\n"
                server = pathlib.Path(directory, f"server-{verb}.fio")
                server.write_text(f"[receive]\n{common}rw=read\niodepth=64\n")
                client = pathlib.Path(directory, f"client-{verb}.fio")
                client.write_text(f"[send]\n{common}rw=write\nhostname=127.0.0.1\nverb={verb}\n"
                                  "iodepth=16\n")
                return after(f"fio {server}", f"fio {client}", port)
            self.check_each([f"fio {verb}" for verb in ("write", "read", "send")],
                            lambda one: command(one.split()[1]), options=(), cwd=directory)

    def test_libfabric(self):
        def command(kind):
            provider = "verbs;ofi_rxm" if kind == "rdm" else "verbs"
            port = free_port()
            program = f"fi_pingpong -p '{provider}' -e {kind} -I 20"
            return after(f"{program} -B {port}", f"{program} -P {port} 127.0.0.1", port)
        self.check_each([f"fi_pingpong {kind}" for kind in ("msg", "rdm")],
                        lambda one: command(one.split()[1]), options=())

    @needs_ucx_with_verbs
    def test_ucx(self):
        def command(transport, test):
            port = free_port()
            program = f"UCX_TLS={transport},self ucx_perftest -p {port}"
            return after(program, f"{program} localhost -t {test} -n 100 -w 10", port)
        # The transport rc connects over ud, so it has the same errors.
        self.check_each([f"ucx_perftest {transport} {test}" for transport in ("rc", "ud")
                         for test in ("tag_lat", "ucp_get")],
                        lambda one: command(*one.split()[1:]), options=(), argued=ARGUED["ud_verbs"])

    @needs_ucx_with_verbs
    def test_mpi(self):
        launchers = {"openmpi": "mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 --mca pml ucx",
                     "mpich": "mpirun.mpich -n 2"}
        source = HERE.parent / "system" / "determinism" / "mpi_ring.c"
        with temporary_directory() as directory:
            for name, launcher in launchers.items():
                with self.subTest(name):
                    if shutil.which(f"mpicc.{name}") is None:
                        self.skipTest(f"mpicc.{name} is not installed")
                    subprocess.run([f"mpicc.{name}", source, "-o", f"{directory}/{name}"], check=True)
                    self.check(f"mpirun.{name}", [*launcher.split(), f"{directory}/{name}"],
                               options=(), argued=ARGUED["ud_verbs"],
                               env={**os.environ, "UCX_TLS": "rc,self", "MPIR_CVAR_NOLOCAL": "1"})


if __name__ == "__main__":
    unittest.main()
