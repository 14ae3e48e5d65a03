"""Measures MPI programs with many ranks, over rocemu and over TCP."""
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from .harness import ROCEMU, SOURCE, Failed, run, seconds

RANKS = (4, 16, 64)
# Over rocemu, and over what a machine without a NIC has.
WAYS = {"rocemu": "rc_v,self", "UCX over TCP": "tcp,self"}
PROGRAM = SOURCE / "tests" / "benchmarks" / "mpi_ranks.c"
# Ranks use UCX alone. If there is an RDMA device, libfabric would read /proc/kallsyms in each rank.
LAUNCHER = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
            "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,ofi", "--mca", "mtl", "^ofi",
            "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
# Runs a command. When the file $1 exists, writes what the NIC shows and its memory to files beside it, and deletes it.
INSPECT_NIC = f"""
mark=$1
shift
"$@" & command=$!
until [ -e "$mark" ]; do
  kill -0 $command || exit
  sleep 0.1
done
"{ROCEMU}" show --json > "$mark.json" || exit
pid=$(grep -m1 '"pid"' "$mark.json" | tr -dc 0-9)
cat "/proc/$pid/comm" "/proc/$pid/status" "/proc/$pid/smaps_rollup" > "$mark.memory"
rm "$mark"
wait $command
"""


def available():
    """Returns whether Open MPI is installed, and prints a line on standard error if it is not."""
    missing = [name for name in ("mpirun.openmpi", "mpicc.openmpi") if shutil.which(name) is None]
    if missing:
        print(f"bench: MPI programs are skipped, since PATH has no {' and no '.join(missing)}; install openmpi-bin and "
              "libopenmpi-dev", file=sys.stderr)
    return not missing


@functools.cache
def _program():
    """Compiles the program once, and returns its path."""
    directory = SOURCE / "build" / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    run("mpicc.openmpi", "-O2", "-o", directory / "mpi_ranks", PROGRAM)
    return directory / "mpi_ranks"


def _command(ranks, *arguments):
    return [*LAUNCHER, "-n", ranks, _program(), *arguments]


def _environment(way):
    environment = {**os.environ, "UCX_TLS": WAYS[way], "UCX_LOG_LEVEL": "error"}
    if way == "rocemu":
        environment["UCX_NET_DEVICES"] = "rocemu0:1"
    return environment


def _under(way, *options):
    return [ROCEMU, "run", "--private", *options, "--"] if way == "rocemu" else []


def all_to_all(way, ranks):
    """Measures 21 exchanges of 1 KiB between all ranks. MPI_Init and the time of an exchange are those of rank 0."""
    output = run(*_under(way), *_command(ranks, "alltoall"), env=_environment(way))
    return parse_all_to_all(output)


def parse_all_to_all(output):
    found = [re.search(pattern, output) for pattern in (r"total ([\d.]+) s", r"init ([\d.]+) s", r"each ([\d.]+) ms")]
    if None in found:
        raise Failed(f"an MPI program did not print its times:\n{output}")
    return dict(zip(("seconds", "s in MPI_Init", "ms an exchange"), (float(figure[1]) for figure in found)))


def memory(ranks):
    """Returns the memory of the daemon while all ranks are connected. The memory for a rank or a QP is that of the whole
    daemon divided by their number."""
    with tempfile.TemporaryDirectory() as directory:
        mark = pathlib.Path(directory) / "connected"
        run(*_under("rocemu"), "sh", "-c", INSPECT_NIC, "sh", mark, *_command(ranks, "alltoall", mark),
            env=_environment("rocemu"))
        shown = json.loads(mark.with_suffix(".json").read_text())
        lines = mark.with_suffix(".memory").read_text()
    return memory_figures(shown, lines, ranks)


def memory_figures(shown, lines, ranks):
    """Computes the figures of memory() from `rocemu show --json` and from the files of the daemon in /proc."""
    if not lines.startswith("rocemud\n"):
        raise Failed(f"the NIC is not rocemud:\n{lines}")
    qps = sum(len(device["qps"]) for device in shown["fabric"]["devices"])
    # VmHWM is the largest RSS so far.
    peak, pss = (int(re.search(rf"^{name}:\s+(\d+) kB", lines, re.MULTILINE)[1]) for name in ("VmHWM", "Pss"))
    return {"QPs": qps, "MiB RSS at most": peak / 1024, "MiB PSS": pss / 1024, "KiB RSS a rank": peak / ranks,
            "KiB PSS a rank": pss / ranks, "KiB RSS a QP": peak / qps, "KiB PSS a QP": pss / qps}


def ring(ranks, *options):
    """Returns how many seconds a run takes in which a token passes 20 times through all ranks."""
    return seconds(*_under("rocemu", *options), *_command(ranks, "ring"), env=_environment("rocemu"))
