#!/usr/bin/python3
"""Tests which stock programs are deterministic in lockstep: stock_table.py [--runs N] [--update-docs]
[NAME...]

Runs each of 20 programs with `rocemu run --lockstep --check-determinism N`, and prints a table of the
results. --update-docs writes the table to docs/reference/determinism.md. A program that is not installed
is left out of the table, and named on standard error.
"""
import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from rocemu import HERE, ROCEMU, free_port  # noqa: E402

ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "reference" / "determinism.md"
PATIENCE = "60"  # time limit of each run in seconds
IPV6 = ("--device", "rocemu0=fd00::1")


@dataclasses.dataclass
class Program:
    name: str
    package: str
    script: str  # as a user would type it; a free port replaces PORT
    options: tuple = ()


def both(server, client=None):
    """Returns a script that starts a server in the background and then its client."""
    client = client or f"{server} localhost"
    return f"{server} & sleep 1; {client} && wait $!"


def pingpong(kind):
    return Program(f"ibv_{kind}_pingpong", "ibverbs-utils",
                   both(f"ibv_{kind}_pingpong -g 0 -p PORT -n 100"))


def cm(name, package, server, client):
    return Program(name, package, both(server, client))


def perftest(name, *arguments):
    command = " ".join([name, "-d rocemu0 -F -p PORT -n 200", *arguments])
    return Program(name, "perftest", both(command))


UCX = "UCX_NET_DEVICES=rocemu0:1 UCX_TLS=rc,self"
MPI = ("mpirun -n 2 --allow-run-as-root --oversubscribe --mca pml ucx --mca btl ^openib "
       "-x UCX_NET_DEVICES=rocemu0:1 -x UCX_TLS=rc,self ./mpi_ring")

PROGRAMS = [
    Program("ibv_devices", "ibverbs-utils", "ibv_devices"),
    Program("ibv_devinfo", "ibverbs-utils", "ibv_devinfo -v"),
    *map(pingpong, ("rc", "uc", "ud", "srq", "xsrq")),
    cm("rping", "rdmacm-utils", "rping -s -a 127.0.0.1 -p PORT -C 20",
       "rping -c -a 127.0.0.1 -p PORT -C 20"),
    cm("ucmatose", "rdmacm-utils", "ucmatose -p PORT", "ucmatose -s 127.0.0.1 -p PORT"),
    cm("udaddy", "rdmacm-utils", "udaddy", "udaddy -s 127.0.0.1"),
    cm("rstream", "rdmacm-utils", "rstream -p PORT -S 1024 -C 50",
       "rstream -s 127.0.0.1 -p PORT -S 1024 -C 50"),
    Program("cmtime", "rdmacm-utils", "cmtime -c 20 -p PORT & server=$!; sleep 1; "
            "cmtime -s 127.0.0.1 -c 20 -p PORT && kill $server"),
    perftest("ib_send_bw", "-e"),
    perftest("ib_write_bw"),
    perftest("ib_write_lat"),
    perftest("ib_read_lat"),
    perftest("ib_atomic_lat"),
    Program("qperf", "qperf",
            "qperf -lp PORT & sleep 1; "
            "qperf -lp PORT -n 200 localhost rc_bw && qperf -lp PORT localhost quit"),
    Program("ucx_perftest", "ucx-utils",
            both(f"{UCX} ucx_perftest -p PORT",
                 f"{UCX} ucx_perftest -p PORT -t tag_lat -n 100 -w 10 localhost"), IPV6),
    Program("mpirun -n 2", "openmpi-bin", MPI, IPV6),
]


def command_of(program):
    return shlex.split(program.script.split("&")[0].replace("UCX_NET_DEVICES=rocemu0:1 ", "")
                       .replace("UCX_TLS=rc,self ", ""))[0]


def reason_in(text):
    """Returns one line with the result that --check-determinism printed."""
    said = re.findall(r"^cause: (.*)$", text, re.M)
    differs = re.findall(r"^(standard output|standard error) differs in line \d+:"
                         r"\nrun \d+[^:]*: (.*)\nrun \d+[^:]*: (.*)$", text, re.M)
    warnings = re.findall(r"^(?:of run .*?: )?rocemud?: (?:warning: )?(.*)$", text, re.M)
    warnings = [re.sub(r" \(tid \d+\)| of pid \d+|/tmp/rocemu-\w{6}/", "", warning) for warning in warnings
                if " differs from run " not in warning and "were identical" not in warning]
    parts = said[:1]
    parts += [f"{what}: `{first.strip()}`, `{other.strip()}`" for what, first, other in differs[:1]]
    parts += sorted(set(warnings))[:2]
    return "; ".join(parts)


def check(program, runs, directory):
    script = program.script.replace("PORT", str(free_port()))
    result = subprocess.run(
        [ROCEMU, "run", "--private", "--lockstep", "--timeout", PATIENCE, "--check-determinism",
         str(runs), *program.options, "--", "sh", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        cwd=directory, check=False, errors="replace")
    if "were identical" not in result.stderr:
        only_names = "rocemu diff treats both as equal" in result.stderr
        verdict = "but for PSNs, addresses or names" if only_names else "no"
        return program, verdict, reason_in(result.stderr)
    if result.returncode != 0:
        return program, "fails", f"status {result.returncode}; {reason_in(result.stderr)}"
    return program, "yes", ""


def installed(programs, directory):
    for program in programs:
        if shutil.which(command_of(program)) is None:
            print(f"{program.name} is not installed (package {program.package})", file=sys.stderr)
        elif program.name.startswith("mpirun") and shutil.which("mpicc") is None:
            print("there is no mpicc (package libopenmpi-dev)", file=sys.stderr)
        else:
            if program.name.startswith("mpirun"):
                subprocess.run(["mpicc", HERE / "determinism" / "mpi_ring.c", "-o",
                                directory / "mpi_ring"], check=True)
            yield program


def table(results):
    lines = ["| program | package | same each time | what `--check-determinism` says |",
             "|---|---|---|---|"]
    for program, verdict, reason in results:
        reason = reason.replace("|", "\\|")
        lines.append(f"| {program.name} | {program.package} | {verdict} | {reason} |")
    return "\n".join(lines) + "\n"


def page(results, runs):
    commands = "\n".join(f"{program.script}" for program, _, _ in results)
    return f"""# Stock programs in lockstep

What `rocemu run --lockstep --check-determinism {runs}` says of {len(results)} programs of Debian 12:
exit status, outputs, events and frames of {runs} runs, half of them under load, compared to the byte.
`tests/system/determinism/stock_table.py --update-docs` writes this page. [lockstep.md](lockstep.md)
says what lockstep does not cover.

{table(results)}
The commands, each under a NIC of its own:

```
{commands}
```
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--update-docs", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    wanted = [program for program in PROGRAMS
              if not arguments.names or program.name in arguments.names]
    with tempfile.TemporaryDirectory(prefix="rocemu-table-") as name, \
            concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        directory = pathlib.Path(name)
        results = list(pool.map(lambda program: check(program, arguments.runs, directory),
                                installed(wanted, directory)))
    print(table(results), end="")
    if arguments.update_docs:
        PAGE.write_text(page(results, arguments.runs))


if __name__ == "__main__":
    main()
