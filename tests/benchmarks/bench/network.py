"""Measures the simulated network of `--fabric`: its speed by itself, and what it costs programs in
lockstep."""
import re
import shlex

from .harness import PAIR, ROCEMU, Failed, free_port, run, seconds

HOSTS = 16
TRAFFIC = {"16 hosts, permutation": ("--traffic", "permutation", "--size", "20000000", "--fabric", "star-16"),
           "1,024 hosts, WebSearch": ("--traffic", "websearch", "--load", "0.4", "--duration", "1ms",
                                      "--fabric", "fat-tree-1024")}


def packet_hops(name):
    """Returns millions of packet-hops per second of processor time, with ECN, PFC and DCQCN."""
    output = run(ROCEMU, "fabric", *TRAFFIC[name])
    found = re.search(r"([\d.]+) million packet-hops per second", output)
    if found is None:
        raise Failed(f"rocemu fabric did not say how fast it was:\n{output}")
    return float(found[1])


def _rping():
    port = free_port()
    common = f"-a 127.0.0.2 -p {port} -C 200 -S 4096"
    return f"rping -s {common} & sleep 1; rping -c {common} && wait $!"


def _incast():
    """Returns a command with which 15 programs write 20 messages of 64 KiB each to one device."""
    script = ""
    for client in range(1, HOSTS):
        side = ["ib_write_bw", "-F", "-n", "20", "-p", str(free_port())]
        command = [*PAIR, side[-1], *side, "-d", "rocemu0", "--", *side, "-d", f"rocemu{client}", "localhost"]
        script += shlex.join(command) + ' & jobs="$jobs $!"; '
    return script + "for job in $jobs; do wait $job || exit 1; done"


SCRIPTS = {"rping": _rping, "16 devices": _incast}


def lockstep(name, with_network):
    """Returns how many seconds a run in lockstep takes."""
    network = ("--fabric", "star-16") if with_network else ("--devices", str(HOSTS))
    return seconds(ROCEMU, "run", "--private", "--lockstep", *network, "--", "sh", "-c", SCRIPTS[name]())
