"""Measures what rocemu is compared with: the network stack, programs that use it, and the machine."""
import json
import os
import re

from .harness import BIN, ProcessorTime, both, free_port, run

# Without a NIC, a program on one machine can use TCP or shared memory.
UCX_WAYS = {"tcp": "tcp,self", "shared memory": "posix,sysv,cma,self"}


def udp_latency(mode, size, iterations=50000):
    """Returns the one-way latency in microseconds, which is half of a round trip. `mode` is blocking, busy, relayed
    or acknowledged."""
    output = run(BIN / "udp_pingpong", mode, size, iterations)
    typical, late = re.search(r"one way: ([\d.]+) usec typical, ([\d.]+) usec 99%", output).groups()
    return {"p50": float(typical), "p99": float(late)}


def udp_stream(pieces=None, segment=4096 + 60, relayed=False):
    """Returns MB/s with segmentation offload, in packets as long as RoCE's. `pieces` is the number of pieces of a
    message; the first piece is longer than the others, like that of a WRITE. If `relayed` is true, the data is in
    the memory of other processes."""
    messages = [] if pieces is None else [pieces]
    how = ["relayed"] if relayed else []
    output = run(BIN / "udp_stream", *how, segment, 1, *messages)
    return {"MB/s": float(re.search(r"([\d.]+) MB/s", output)[1])}


def doorbell_limit(messages=2_000_000):
    """Returns how many million messages per second the rings between programs and daemon allow."""
    return float(re.search(r"([\d.]+) million/s", run(BIN / "doorbell_limit", messages))[1])


def ring_latency(messages=200_000):
    """Returns how many microseconds a message takes in one direction through the rings between programs and daemon,
    including the switches between processes."""
    return {"p50": float(re.search(r"median ([\d.]+) us", run(BIN / "doorbell_limit", "latency", messages))[1])}


def process_vm_limit():
    """Returns MB/s of 64 KiB messages. One system call reads each message from one process, and another writes it
    to another process."""
    figures = _micro("copy_process_vm.*/65536")
    return {"MB/s": 1 / sum(1 / figure["MB/s"] for figure in figures.values())}


def copy_between_two(size):
    """Returns how many microseconds it takes to read a message from one process and write it to another, piece by
    piece as the daemon does it, in memory that may be larger than the caches."""
    return _micro(f"copy_between_two/{size}")[f"copy_between_two/{size}"]["ns"] / 1e3


def tcp_bandwidth():
    """Measures the bandwidth of one stream on loopback with iperf3."""
    port = free_port()
    with ProcessorTime() as processor:
        output = both(["iperf3", "-s", "-1", "-p", port],
                      ["iperf3", "-c", "127.0.0.1", "-p", port, "-t", 1, "-l", 65536, "-J"])
    received = json.loads(output)["end"]["sum_received"]
    return {"MB/s": received["bits_per_second"] / 8e6,
            "CPU s/GiB": processor.seconds / (received["bytes"] / 2**30)}


def libfabric_latency(size, iterations=5000):
    """Returns the one-way latency that fi_pingpong measures with the tcp provider. It is the mean, since
    fi_pingpong prints no percentiles."""
    port = free_port()
    common = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-I", iterations, "-S", size]
    output = both([*common, "-B", port], [*common, "-P", port, "127.0.0.1"])
    return {"mean": float(output.strip().splitlines()[-1].split()[-2])}


def _ucx(way, test, size, iterations):
    port = free_port()
    environment = {**os.environ, "UCX_TLS": UCX_WAYS[way], "UCX_LOG_LEVEL": "error"}
    with ProcessorTime() as processor:
        output = both(["ucx_perftest", "-p", port],
                      ["ucx_perftest", "127.0.0.1", "-p", port, "-t", test, "-s", size,
                       "-n", iterations, "-f", "-v"], env=environment)
    lines = output.strip().splitlines()
    names = next(line for line in lines if line.startswith("iterations")).split(",")
    return dict(zip(names, map(float, lines[-1].split(",")))), processor.seconds


def ucx_latency(way, size, iterations=20000):
    figures, _ = _ucx(way, "tag_lat", size, iterations)
    return {"p50": figures["50.0_percentile_lat"]}


def ucx_bandwidth(way, size, iterations):
    """Measures ucp_put_bw, whose work is that of ib_write_bw."""
    figures, processor = _ucx(way, "ucp_put_bw", size, iterations)
    return {"MB/s": figures["overall_bw"] * 2**20 / 1e6,
            "CPU s/GiB": processor / (size * iterations / 2**30)}


def parts():
    """Returns the results of the micro benchmarks by name: nanoseconds per call, and MB/s if bytes are copied."""
    return _micro(".*")


def _micro(which):
    output = run(BIN / "micro_benchmarks", f"--benchmark_filter={which}",
                 "--benchmark_format=json", "--benchmark_min_time=0.1",
                 "--benchmark_repetitions=3", "--benchmark_report_aggregates_only=true")
    figures = {}
    for result in json.loads(output[output.index("{"):])["benchmarks"]:
        if result.get("aggregate_name") != "median":
            continue
        figures[result["run_name"]] = {"ns": result["real_time"]}
        if "bytes_per_second" in result:
            figures[result["run_name"]]["MB/s"] = result["bytes_per_second"] / 1e6
    return figures
