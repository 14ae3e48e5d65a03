"""Measures rocemu with stock programs, in one daemon and between two daemons over UDP."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from functools import partial

from .harness import (BIN, BUILD, CM_PAIR, PAIR, ROCEMU, WITHOUT_FAULTS, Failed, ProcessorTime, finish,
                      free_port, run, seconds, start)

WRITE_BW_SIZE, WRITE_BW_MESSAGES = 65536, 20000
TRIAL = 200  # iterations
LATENCY_S = 10  # time limit of ib_write_lat in seconds

# perftest has one thread. This command gives it a second thread, which sleeps.
WITH_IDLE_THREAD = ["sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{BUILD}/lib/idle_thread.so" exec "$@"',
                    "sh"]

LISTEN = [sys.executable, "-c", """
import sys
sys.path.insert(0, sys.argv[1])
from pair import listening
import time
while not listening(int(sys.argv[2])): time.sleep(0.002)
""", str(pathlib.Path(PAIR[1]).parent)]


def _side(program, port, options, threads):
    return [*(WITH_IDLE_THREAD if threads == 2 else []), program, "-p", port, *options]


# A prefix for a command: gives the daemon the last processor, and the command the other processors.
DAEMON_ALONE = ["sh", "-c", f"""
pid=$("{ROCEMU}" show --json | grep -m1 '"pid"' | tr -dc 0-9)
taskset -acp "$1" "$pid" > /dev/null || exit
others=$2
shift 2
exec taskset -c "$others" "$@"
""", "sh"]


def inside(program, *options, rocemu=ROCEMU, nic=(), threads=1, then=(), daemon_alone=False):
    """Returns the output of client and server of a perftest program or pingpong, on a separate daemon, and the output
    of the command `then` after them."""
    port = free_port()
    side = _side(program, port, options, threads)
    with tempfile.TemporaryDirectory() as directory:
        files = [pathlib.Path(directory) / name for name in ("server", "client")]
        command = [*PAIR, "--outputs", *files, port, *side, "--", *side, "localhost"]
        if daemon_alone:
            *others, last = sorted(os.sched_getaffinity(0))
            command = [*DAEMON_ALONE, last, ",".join(map(str, others)), *command]
        if then:
            command = ["sh", "-c", f'"$@" && {shlex.join(map(str, then))}', "sh", *command]
        try:
            last = run(rocemu, "run", "--private", *nic, "--", *command)
        except Failed as failed:
            said = "".join(file.read_text() for file in files if file.exists())
            raise Failed(f"{failed}\n{said}") from None
        server, client = (file.read_text() for file in files)
    return "\n".join((client, server, last))


def over_udp(program, *options, threads=1):
    """Returns the client's output. Each side has a daemon, which uses UDP port 4791 of a loopback address."""
    port = free_port()

    def side(address, *arguments):
        return start(ROCEMU, "run", "--private", "--device", f"rocemu0={address}", "--udp", "--",
                     *_side(program, port, options, threads), *arguments)
    server = side("127.0.0.1")
    try:
        run(*LISTEN, port)
        output = finish(side("127.0.0.2", "localhost"))
        finish(server)
        return output
    finally:
        server.kill()


def _row(output, size):
    """Returns the numbers in the line that a perftest program prints for messages of this size."""
    for line in output.splitlines():
        row = line.split()
        if len(row) > 3 and row[0] == str(size):
            return [float(word) for word in row]
    raise Failed(f"no line for {size} bytes in\n{output}")


def latency(where, program, size, iterations=50000, **keywords):
    """Returns percentiles of the one-way latency, in microseconds. perftest's "typical" latency is the median."""
    def row(count):
        return _row(where(program, "-d", "rocemu0", "-s", size, "-n", count, **keywords), size)
    if program == "ib_write_lat":
        # If other processes compete for the processors, each message of a program that spins on memory takes one or two
        # time slices, so the number of messages must be smaller.
        mean = row(TRIAL)[5]
        iterations = min(iterations, max(TRIAL, int(LATENCY_S * 1e6 / (2 * mean))))
    figures = row(iterations)
    return {"p50": figures[4], "p99": figures[7], "p99.9": figures[8]}


def bandwidth(where, program, size, iterations, *options, **keywords):
    with ProcessorTime() as processor:
        output = where(program, "-d", "rocemu0", "-s", size, "-n", iterations, *options, **keywords)
    return {**_rates(output, size),
            "CPU s/GiB": processor.seconds / (size * iterations / 2**30)}


def _rates(output, size):
    row = _row(output, size)  # perftest's MB are units of 2^20 bytes
    return {"MB/s": row[3] * 2**20 / 1e6, "million/s": row[4]}


def write_bw(**keywords):
    return bandwidth(inside, "ib_write_bw", WRITE_BW_SIZE, WRITE_BW_MESSAGES, **keywords)["MB/s"]


def sanitized_bandwidth(program, options):
    """Measures the bandwidth with these options of --sanitize. The sanitizer reports something, since the receives
    of ib_send_bw overlap."""
    with tempfile.NamedTemporaryFile("w") as suppressions:
        suppressions.write("receive-buffer-overlap:ib_send_bw\n")
        suppressions.flush()
        if options:
            options = (*options, "--sanitize-suppressions", suppressions.name)
        return small_and_large(program, options)


def small_and_large(program, options, small=2000000, large=20000):
    """Measures the rates of `small` messages of 64 bytes and of `large` messages of 64 KiB with these options of the
    NIC."""
    where = partial(inside, nic=options)
    return {"64 B, million/s": bandwidth(where, program, 64, small)["million/s"],
            "64 KiB, MB/s": bandwidth(where, program, 65536, large)["MB/s"]}


def counted_write_bw(nic=()):
    """Returns the bandwidth in MB/s, and the number of frames that both sides send for each message."""
    output = inside("ib_write_bw", "-d", "rocemu0", "-s", WRITE_BW_SIZE, "-n", WRITE_BW_MESSAGES,
                    nic=nic, then=[ROCEMU, "show", "--json"])
    shown, _ = json.JSONDecoder().raw_decode(output, output.index("{"))
    frames = sum(device["counters"].get("frames_out", 0) for device in shown["fabric"]["devices"])
    return {"MB/s": _rates(output, WRITE_BW_SIZE)["MB/s"],
            "frames a message": frames / WRITE_BW_MESSAGES}


def recorded_write_bw():
    """Returns the results of counted_write_bw() while the run is recorded, and how many seconds the transfer and a
    replay take."""
    with tempfile.TemporaryDirectory() as directory:
        recording = pathlib.Path(directory) / "recording"
        figures = counted_write_bw(nic=["--record", recording])
        return {**figures, "transfer, s": WRITE_BW_SIZE * WRITE_BW_MESSAGES / 1e6 / figures["MB/s"],
                "replay, s": seconds(ROCEMU, "replay", recording)}


def parties(how, processors, pairs, threads, time_s, without_nic=False):
    """Measures `pairs` pairs of processes with `threads` threads each, which wait in the way `how`. They share
    `processors` processors with the daemon. Returns the time of one way, in microseconds."""
    allowed = sorted(os.sched_getaffinity(0))[:processors]
    rocemu = [] if without_nic else [ROCEMU, "run", "--private", "--"]
    output = run("taskset", "-c", ",".join(map(str, allowed)), *rocemu,
                 BIN / "parties", how, pairs, threads, time_s)
    figures = re.search(r"one way: ([\d.]+) usec typical, ([\d.]+) usec 99%, ([\d.]+) usec 99.9%",
                        output).groups()
    return dict(zip(("p50", "p99", "p99.9"), map(float, figures)))


def empty_polls(how, threads, mode="adaptive"):
    """Returns the cost in nanoseconds of a poll that finds nothing, while `threads` other threads compute."""
    output = run(ROCEMU, "run", "--private", "--", BIN / "empty_polls_benchmark", how, threads,
                 env={**os.environ, "ROCEMU_POLL": mode})
    figures = re.search(r"(\d+) ns on average, (\d+) typical, (\d+) 99%, (\d+) at most", output).groups()
    return dict(zip(("mean", "p50", "p99", "worst"), map(float, figures)))


def pingpong(size, iterations, *options, **keywords):
    """Returns the round-trip time of ibv_rc_pingpong, in microseconds."""
    output = inside("ibv_rc_pingpong", "-g", "0", "-s", size, "-n", iterations, *options, **keywords)
    return float(re.search(r"= ([\d.]+) usec/iter", output)[1])


def vipl_pingpong(mode, size, iterations):
    """Returns the round-trip time of vipl_pingpong, in microseconds."""
    side = [BIN / "vipl_pingpong", "-m", mode, "-s", size, "-n", iterations]
    output = run(ROCEMU, "run", "--private", "--", "sh", "-c",
                 '"$@" & server=$!; "$@" localhost && wait $server', "sh", *side)
    return float(re.search(r"= ([\d.]+) usec/iter", output)[1])


def without_faults():
    """Returns a `rocemu` whose engine is built without fault rules."""
    return str(WITHOUT_FAULTS / "bin" / "rocemu")


def start_and_end():
    """Returns the milliseconds that `rocemu run -- true` takes."""
    return milliseconds("rocemu", "run", "--private", "--", "true")


def milliseconds(program, *arguments):
    """Returns the milliseconds that a program takes, which can be one of rocemu's."""
    path = BIN / program
    return 1e3 * seconds(path if path.exists() else program, *arguments)


def lockstep_exchange(few=1000, many=4000):
    """Returns the milliseconds of real time for an exchange of 64 bytes in lockstep: the difference between two runs
    without what they have in common."""
    def duration(iterations):
        side = f"ibv_rc_pingpong -d rocemu0 -g 0 -s 64 -p {free_port()} -n {iterations}"
        return seconds(ROCEMU, "run", "--private", "--lockstep", "--", "sh", "-c",
                       f"{side} & server=$!; sleep 1; {side} localhost && wait $server")
    return 1e3 * (duration(many) - duration(few)) / (many - few)


def many_qps():
    """Returns, by number of connected QPs, the nanoseconds for a message and the daemon's bytes for each QP."""
    inner = f'ROCEMUD_PID=$("{ROCEMU}" show --json | python3 -c "import json, sys; ' \
            f'print(json.load(sys.stdin)[\'pid\'])") exec "{BIN}/many_qps"'
    output = run(ROCEMU, "run", "--private", "--", "sh", "-c", inner)
    times = {int(n): float(ns) for n, ns in re.findall(r"(\d+) qps, (\d+) ns", output)}
    memory = {int(n): float(b) for n, b in re.findall(r"(\d+) qps, .* (\d+) bytes", output)}
    return times, memory


def _wakeups_and_ticks(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    switches = sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status)))
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return switches, int(fields[11]) + int(fields[12])


def idle(qps=10000, watched=5):
    """Measures an idle daemon with `qps` connected QPs. Returns how often it runs, and its share of a processor."""
    script = f'"{ROCEMU}" show --json; exec "{BIN}/many_qps" idle {qps}'
    process = subprocess.Popen([ROCEMU, "run", "--private", "--", "sh", "-c", script],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        while not lines or lines[-1] != "idle\n":
            lines.append(process.stdout.readline())
            if not lines[-1]:
                raise Failed(f"many_qps idle ended: {''.join(lines)}")
        pid = json.loads("".join(lines[:-1]))["pid"]
        time.sleep(2)
        before = _wakeups_and_ticks(pid)
        time.sleep(watched)
        after = _wakeups_and_ticks(pid)
    finally:
        process.communicate()
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    return {"wake-ups per second": (after[0] - before[0]) / watched,
            "processor, percent": 100 * (after[1] - before[1]) / ticks_per_second / watched}


def connections():
    """Establishes 1,000 connections at the same time with cmtime, eleven times. Returns how many connections are
    established and ended per second. Also returns the daemon's memory in bytes: the maximum with a thousand
    connections, and the memory after the last timewait."""
    inner = """
        pid=$("$ROCEMU_BIN/rocemu" show --json | grep -m1 '"pid"' | tr -dc 0-9)
        memory() { awk '/RssAnon/ { print $2 }' /proc/$pid/status; }
        for round in 1 2 3 4 5 6 7 8 9 10 11; do
          "$@" || exit
          last=$(memory) && echo "kilobytes: $last"
        done
        for second in $(seq 40); do  # no timewait is longer
          sleep 1
          [ "$(memory)" -ge $((last / 2)) ] || break
        done
        echo "kilobytes: $(memory)"
    """
    cmtime = [*CM_PAIR, "7471", "cmtime", "--", "cmtime", "-s", "127.0.0.1", "-c", "1000"]
    output = run(ROCEMU, "run", "--private", "--", "sh", "-c", inner, "sh", *cmtime,
                 env={**os.environ, "CM_PAIR_KILLS_SERVER": "1"})
    memory = [1024 * int(kilobytes) for kilobytes in re.findall(r"^kilobytes: (\d+)", output, re.M)]
    steps = [float(total) for name, total in re.findall(r"^([a-z ]+): +([\d.]+)", output, re.M)
             if name != "kilobytes"]
    return {"per second": 11 * 1000 / (sum(steps) / 1000), "bytes at most": max(memory),
            "bytes afterwards": memory[-1]}


def compiling():
    """Returns how many seconds it takes to compile three small files, under rocemu and without it."""
    source = "#include <map>\n#include <regex>\nint main() { std::regex r(\"a*\"); }\n"
    compiler = ["sh", "-c", "for i in 1 2 3; do g++ -O1 -c a.cc -o a.o; done"]

    def measure(*prefix):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "a.cc").write_text(source)
            return seconds(*prefix, *compiler, cwd=directory)
    return {"under": lambda: measure(ROCEMU, "run", "--private", "--"), "plain": measure}


EXPLORED = {
    "rping": ["sh", "-c", "rping -s -a 127.0.0.1 -C 3 & server=$!; sleep 1; "
                          "rping -c -a 127.0.0.1 -C 3 && wait $server"],
    "forty_verbs": [BIN / "forty_verbs", "--gtest_print_time=0"],
}


def explore(name, budget_s=15):
    """Measures a second of `rocemu explore`, which runs two trials at the same time on two processors."""
    processors = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory() as directory:
        before = time.monotonic()
        run("taskset", "-c", ",".join(map(str, processors)), ROCEMU, "explore", "--jobs", 2,
            "--budget", f"{budget_s}s", "--fail-on", "none", "--output", f"{directory}/findings",
            "--", *EXPLORED[name])
        took = time.monotonic() - before
        results = pathlib.Path(directory, "findings", "results.jsonl").read_text()
    baseline = 6
    return (len(results.splitlines()) - 1 + baseline) / took
