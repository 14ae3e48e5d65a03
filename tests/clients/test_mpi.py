"""Tests Open MPI and MPICH with a program that compares every byte, with 2 and 4 ranks."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from client_server import needs_ucx_with_verbs
from rocemu import rocemu_run

SOURCE = pathlib.Path(__file__).parent / "programs/mpi_bytes.c"


class Mpi:
    compiler = None
    launcher = ()

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-test-")
        cls.addClassCleanup(directory.cleanup)
        cls.program = f"{directory.name}/mpi_bytes"
        subprocess.run([cls.compiler, "-O1", "-o", cls.program, SOURCE], check=True)

    def exchange(self, ranks, *arguments, **variables):
        script = ('"$@" || exit; cat /sys/class/infiniband/*/ports/1/counters/port_xmit_data')
        result = rocemu_run("bash", "-c", script, "-", *self.launcher, "-n", ranks, *arguments,
                            self.program, env={**os.environ, **variables})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"{ranks} ranks exchanged all bytes", result.stdout)
        sent = sum(map(int, re.findall(r"^\d+$", result.stdout, re.MULTILINE))) * 4
        self.assertGreater(sent, 1_000_000 * ranks, "it went by another way")


class OpenMpi(Mpi, unittest.TestCase):
    compiler = "mpicc.openmpi"
    launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
    UCX = ["--mca", "pml", "ucx", "--mca", "osc", "ucx"]

    @needs_ucx_with_verbs
    def test_over_ucx(self):
        for ranks in (2, 4):
            self.exchange(ranks, *self.UCX, UCX_TLS="rc,self")

    @needs_ucx_with_verbs
    def test_over_ucx_with_datagrams(self):
        for ranks in (2, 4):
            self.exchange(ranks, *self.UCX, UCX_TLS="ud,self")

    def test_over_libfabric(self):
        for ranks in (2, 4):
            self.exchange(ranks, "--mca", "pml", "cm", "--mca", "mtl", "ofi",
                          "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm")


class Mpich(Mpi, unittest.TestCase):
    """Tests Debian's MPICH, which is built for UCX. Ranks on one machine exchange messages by
    shared memory unless MPIR_CVAR_NOLOCAL selects the network."""
    compiler = "mpicc.mpich"
    launcher = ["mpirun.mpich"]

    @needs_ucx_with_verbs
    def test_over_ucx(self):
        for ranks in (2, 4):
            self.exchange(ranks, MPIR_CVAR_NOLOCAL="1", UCX_TLS="rc,self")

    @needs_ucx_with_verbs
    def test_over_ucx_with_datagrams(self):
        for ranks in (2, 4):
            self.exchange(ranks, MPIR_CVAR_NOLOCAL="1", UCX_TLS="ud,self")


if __name__ == "__main__":
    unittest.main()
