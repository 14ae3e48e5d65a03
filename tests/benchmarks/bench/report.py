"""Prints figures as a table for the terminal, and as docs/performance.md, docs/data/performance.md and the README's
table."""
import os
import platform
import re

from . import plot, verdicts
from .harness import SOURCE

UNITS = {"latency": "64 bytes one way, µs", "bandwidth": "64 KiB messages in one direction",
         "message_rate": "64 bytes, million messages a second",
         "sizes": "by message size: latency in µs, bandwidth in MB/s",
         "queue_pairs": "connected QPs that take turns", "connections": "1,000 connections at a time, by librdmacm",
         "parties": "64 bytes one way, µs, of pairs of programs whose threads each have a counterpart",
         "empty_polls": "polls that find nothing: ns each, on average, in windows of 1,000, beside threads that compute",
         "placement": "the daemon alone on the last processor, the programs on the others; and what it is compared with",
         "recording": "64 KiB ib_write_bw; the transfer that was recorded and a replay of all",
         "fault_layer": "with and without the code that asks for fault rules; µs and MB/s",
         "adversarial": "perftest with --adversarial: one class, and all",
         "sanitizer": "perftest with the verbs sanitizer: rules that read no payload, and all",
         "vipl": "round trips of 4 KiB by VIPL and by verbs, µs",
         "many_ranks": "an all-to-all of Open MPI over UCX, 1 KiB to each rank; with the most ranks, the daemon's memory",
         "lockstep": "real time of programs in lockstep",
         "other_programs": "programs without RDMA; ms, and compiling in s",
         "explore": "runs a second of rocemu explore, with 2 jobs on 2 processors",
         "fabric": "--fabric: millions of packet-hops a second; seconds of runs in lockstep", "micro": "parts by themselves"}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.partition(":")[2].strip() for line in info if "model name" in line),
                     platform.machine())
    return {"processor": model, "cores": os.cpu_count(), "kernel": platform.release()}


def _number(value):
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _lines(value, indent=2):
    for name, inner in value.items():
        label = " " * indent + str(name)
        if not isinstance(inner, dict):
            yield f"{label:50} {_number(inner):>12}"
        elif all(not isinstance(deeper, dict) for deeper in inner.values()) and len(inner) < 4:
            figures = "   ".join(f"{key} {_number(number)}" for key, number in inner.items())
            yield f"{label:50} {figures}"
        else:
            yield label
            yield from _lines(inner, indent + 2)


def table(results):
    lines = []
    for part, unit in UNITS.items():
        if part in results:
            lines += [f"{part}: {unit}", *_lines(results[part]), ""]
    lines.append("ratios")
    for ratio in results["ratios"]:
        verdict = "" if ratio["holds"] else "   missed"
        lines.append(f"  {ratio['name']:62} {ratio['value']:8.3f}   {ratio['limit']}{verdict}")
    lines.append(f"\n{results['seconds']} s")
    return "\n".join(lines)


# ---- docs -------------------------------------------------------------------------------------

CONFIGURATION = """\
Figures of the default configuration: no option, no environment variable. perftest has one thread; in rows "2 threads"
it has a second one, which sleeps."""

MACHINE = """\
Machine: {processor}, {cores} processors, Linux {kernel}; load average {load} from other work before the run. Figures are
medians of {rounds}, taken in turn with the other rows of a table; the run took {seconds} s."""

PAGE = """# Performance

{configuration} The main figures are in [README.md](../README.md#what-works-what-does-not-what-it-costs), all of them in
[data/performance.md](data/performance.md).

{machine}

![latency and bandwidth by message size](performance.svg)

`scripts/bench --update-docs` writes this page. It builds rocemu and what it is compared with, and measures everything in one
run.

## How to read the figures

Compare rows of the same table. Absolute figures hold for one machine at one time; run `scripts/bench` for yours.

Three processes share the processors: two programs and the daemon. On two processors each message costs at least one context
switch, and the kernel decides which processes share a processor, so that figures vary from run to run
([design/waiting.md](design/waiting.md)). Over UDP there are four processes, since each program has its own daemon.

## Against rdma_rxe

`sudo scripts/bench --rxe` compares rocemu with Linux's software NIC. Figures of one emulated virtual machine (Debian 12, kernel
6.1, two processors, TCG) are good to a factor of two. With 64 KiB rocemu has 2.8 times the bandwidth of rxe over veth and 1.8 times
that of rxe with itself (WRITE), 2.4 and 2.3 times (READ), 1.7 times (SEND); with 64 B 4.9 and 2.4 times the message rate, and 4 to 7
times the latency, since a switch between processes costs 16 times more there and rocemu has three parties. First use takes 952 ms
against 379 ms.

## What bounds rocemu

[A table](data/performance.md#what-bounds-them) compares rocemu with the least work that does the same. The explanations here
are ours, and not measured in this run.

- **Short messages** pass through three processes, two of which share a processor. With `taskset` you can reserve a
  processor for the daemon; rocemu leaves that to the kernel ([ADR 0015](adr/0015-waiting.md)). UDP and TCP have only two
  processes. Each post and each poll makes one system call, to ask whether the buffer's page is present.
  It takes 0.15 µs here, as long as an empty call, and there is no cheaper exact way: free(3) unmaps large blocks without a call
  that rocemu can intercept. Together with 0.08 µs for perftest's own clock and 0.1 to 0.2 µs for the rest of a post, it limits
  `ib_write_bw` to about 2.5 million/s. The NIC takes 0.2 µs in its engine for a 64-byte WRITE of a burst (0.48 before such
  messages traveled without frames), and 0.07 to 0.1 µs for its part of process_vm_writev(2). `ib_send_lat` polls
  two CQs, and its latency depends on which processes share a processor: 3.3 to 6.7 µs in runs of one quiet hour.
  [Three attempts](data/performance.md#attempts-that-were-not-adopted) to shorten this path were not adopted.
- **99.9th percentile.** A program that spins on memory never yields, so the daemon may have to wait for the end of a time
  slice. "Spinning on memory, relayed" does the same without a NIC.
- **64 KiB.** The program that sends copies each message itself, with one system call, while the daemon handles the packets of the
  previous one ([design/direct-copy.md](design/direct-copy.md)). The limit is that call: `copy_process_vm_writev/65536` in the table
  of the parts. A recording, a capture, lockstep and UDP still take two calls of the daemon.
- **1 MiB and more.** The same, but the sender's copy is the only one at a time, and its data does not fit into the caches. TCP
  copies at both ends at once, on two processors.
- **Over UDP** rocemu also computes an ICRC over each byte at both ends, and acknowledges. Of the daemons' time 71 % is
  the kernel's, 8 % the ICRC and 21 % rocemu's own (WRITEs of 64 KiB, perf, beside other work). A short message takes at least as
  long as a daemon works in one round trip, about 8 µs here (3 µs sending, 1.7 µs receiving, 3 µs in its engine): the scheduler
  gives a program that polls as much time as the daemon beside it, although the program yields. A program that sleeps instead
  does not help: 15.7 µs instead of 11. [An attempt](data/performance.md#attempts-that-were-not-adopted) to shorten the daemon's
  part was not adopted.
- **Recording** writes each byte of each frame to a file.
- **`--sanitize`**: the rules that read no payload take about 0.2 µs for each post, a quarter of it for reading the clock and most
  of the rest for copying the request. The other rules sum each byte twice, when it is posted and when it completes. The
  ratios therefore grow as the NIC gets faster.
- **`rocemu run -- true`** (perf, November 2026: 13 ms of processor time, of which 2.9 ms load rocemu and 0.8 ms `true`): 3 ms
  create and remove the 500 files of the runtime directory, which a program may read without rocemu's library, so that they
  cannot be left out. A kept directory, or a NIC that stays for the next run, could be left behind
  ([ADR 0026](adr/0026-nic-is-forked.md)).
- **`rocemu explore`**: the processor time of a run has many small parts: starting several processes, and code that each of
  them executes once. The table shows where it went (perf, November 2026, busy machine). A run of the GoogleTest program has
  since become faster, 20 ms instead of 26: eu-stack takes a third of its former time, and the NIC 9 ms. A fork server for
  programs would save 1.5 ms of the GoogleTest program, so the wanted 100 and 250 runs/s need a checkpoint instead of a start
  for each run ([ADR 0028](adr/0028-no-fork-server.md)). Later than the figures of this page, the waits of 20 to 100 ms at the
  end of a faulted run were removed: in alternating runs on a busy machine, rping 25, then 31 runs/s, the GoogleTest program
  63, then 78.

  | ms of processor time of a run (perf) | rping | GoogleTest |
  |---|---|---|
  | NIC: | 18 | 11 |
  | – files of the runtime directory | 3 | 3 |
  | – reading /proc, to see whether all threads sleep | 4 | 1 |
  | – page faults, since it is a fork | 1 | 1 |
  | the program, or both | 10 | 6 |
  | – of that, executing and linking | 2 | 2 |
  | `rocemu run` and explore: | 8 | 7 |
  | – page faults and fork(2) | 3 | 2 |
  | – a network namespace | 0.5 | 0.5 |
  | eu-stack, most of it for a web client that it loads and does not use | 7 | 2 |
  | the shell, and `sleep` | 3.5 | – |
- **An exchange in lockstep** takes eleven turns, each of which is a switch to a program and back.
- **64 MPI ranks**: of the processor time a sixth is UCX's first write to its receive buffers, 2 GB in all, a tenth the spin locks
  of its progress thread, and a tenth the NIC. TCP has no such buffers. On a machine with other work single runs take several times
  as long: there a thread that spins for such a lock keeps its processor while the thread that holds it waits for the NIC.
- **`--exact-memory`** reads each message when it is sent and writes it when it arrives, as lockstep does. That takes 1.5 to
  1.8 times the latency for 64 B to 4 KiB and 1.2 times for 8 KiB, and halves the bandwidth for 64 KiB, so it is off by default.
"""

TABLES = """# Performance: all tables

`scripts/bench --update-docs` writes this page; [performance.md](../performance.md) says how to read it.

{configuration}

{machine}

{tables}
## Ratios

| ratio | here | wanted | |
|---|---|---|---|
{ratios}

## What bounds them

rocemu beside the least work that does the same, measured in this run.

| | here | limit | measured by |
|---|---|---|---|
{bounds}

## Attempts that were not adopted

These measurements are older than this run, and are not repeated by it.

- Link-time optimization of the daemon has no effect: 1.71 million messages/s with and without it.
- Spinning for 1, 2 or 5 µs instead of each yield that ran no other thread has no effect: `ib_send_lat` with the daemon alone
  takes 2.9 or 3.9 µs in all cases.
- Polls that return at once after a single signaled post, and a daemon that remembers which clients yield: `ib_send_lat` gained
  up to 1.6 µs where the daemon shares a processor with one program, and lost 0.3 to 0.9 µs where it has one for itself
  (processes bound to processors, busy machine).
- Over UDP, a daemon that reads doorbells before its socket, reads the socket only in every second round while doorbells come,
  and yields at once after an arrival: `ib_send_lat` takes 14.9 to 16.0 µs instead of 15.4, and `ib_send_bw` with 64 B sends 0.45
  million/s instead of 0.54 (nine alternating runs).
- For messages of 1 MiB and more, calls of 256 KiB take 10 to 15 % less time, which would not change the
  verdict.
"""

# Explains the rows of a table. The text is printed below the table's title.
ROWS = {
    "latency": """\
A one-way latency is half of a round trip, as perftest counts.

- "over UDP": two daemons, each with a loopback address. Frames leave one by a socket and arrive at the other by a socket.
- "rings without a NIC", the doorbell limit: three processes do only what ib_send_lat (for rates, ib_send_bw) requires of the
  rings in shared memory, and yield with `sched_yield` as rocemu does.
- "UDP, busy": two processes exchange a datagram over loopback and never sleep, the least that a network stack takes.
  "UDP, blocking" is the same with a plain `recv`.
- "UDP, busy, relayed": each of the two processes reaches its socket through another process by shared memory, which only
  relays. That is the cost of four processes by itself; it depends on where the kernel runs them.""",
    "bandwidth": """\
- CPU s/GiB: the processor time of all processes for each GiB, including start and exit.
- "one process_vm_readv and one process_vm_writev": the two copies that the daemon makes of a message that no program copies
  ([design/direct-copy.md](../design/direct-copy.md)), and nothing else, for a message that stays in the caches.
- "UDP with GSO and GRO" sends datagrams whose segments have one size, as the packets of SENDs do. The first packet of a WRITE
  is longer by its RETH, so that each message takes two datagrams: "as WRITEs".
- "relayed": UDP with GSO and GRO, where one process reads the data from another's memory and the receiver writes it into
  another's. No RoCE and no ICRC: the upper limit over UDP.""",
    "parties": """\
Each thread exchanges a message with a thread of another program. With the daemon they share one processor or two. "Spinning on
memory, relayed" replaces the NIC by a process that sleeps until it is signaled, and delivers each message with one store.""",
    "empty_polls": """\
A program polls an empty CQ beside threads that compute; the columns are the mean of the window averages and their
distribution. "Spinning" is `ROCEMU_POLL=spin`, which loses whole time slices, as a NIC's programs do.""",
    "many_ranks": """\
- "seconds": from MPI_Init to MPI_Finalize of rank 0, with 21 exchanges. All ranks share this machine's processors.
- "rocemu": `UCX_TLS=rc_v,self`; "UCX over TCP": `UCX_TLS=tcp,self`, without rocemu.
- Memory: the daemon's largest RSS, and its PSS when all ranks are connected; all of it, divided by the ranks and the QPs.""",
    "lockstep": """\
- An exchange is a round trip of ibv_rc_pingpong: the difference between 4,000 and 1,000, divided by 3,000.
- In the ring a token of 64 bytes passes 20 times through 16 ranks; the run includes mpirun and MPI_Init.""",
}

TITLES = {"latency": "Latency", "bandwidth": "Bandwidth", "message_rate": "Messages a second",
          "placement": "Who shares a processor", "sizes": "Message sizes", "parties": "Many programs and threads",
          "empty_polls": "Polls that find nothing", "queue_pairs": "Many queue pairs", "connections": "Connections",
          "recording": "Recording", "fault_layer": "The fault layer",
          "sanitizer": "The verbs sanitizer", "adversarial": "--adversarial", "vipl": "VIPL and verbs",
          "many_ranks": "Many MPI ranks", "lockstep": "Lockstep",
          "other_programs": "Programs without RDMA", "explore": "rocemu explore",
          "fabric": "Simulated networks", "micro": "The parts"}

BEGIN, END = "<!-- scripts/bench writes from here -->", "<!-- to here -->"


def _rows(figures):
    """Returns the rows of a table: from a dict of dicts, or from a dict of numbers as rows with two columns."""
    if not all(isinstance(row, dict) for row in figures.values()):
        return ["| | |", "|---|---|", *(f"| {name} | {_number(value)} |"
                                         for name, value in figures.items())]
    columns = list(dict.fromkeys(key for row in figures.values() for key in row))
    return ["| | " + " | ".join(map(str, columns)) + " |", "|---|" + "---|" * len(columns),
            *("| " + " | ".join([str(name), *(_number(row[key]) if key in row else ""
                                               for key in columns)]) + " |"
              for name, row in figures.items())]


def _section(part, figures):
    lines = [f"## {TITLES[part]}", "", UNITS[part][0].upper() + UNITS[part][1:] + ".", ""]
    if part in ROWS:
        lines += [ROWS[part], ""]
    if part in ("sizes", "parties", "empty_polls", "queue_pairs"):
        for name, inner in figures.items():
            lines += [f"**{name}**", "", *_rows(inner), ""]
    else:
        lines += [*_rows(figures), ""]
    return "\n".join(lines) + "\n"


def _headline(results):
    latency, bandwidth = results["latency"], results["bandwidth"]
    rows = {f"{name}{threads}": (latency[f"ib_send_lat{where}{threads}"]["p50"],
                                 bandwidth[f"ib_write_bw{where}{threads}"]["MB/s"])
            for name, where in (("rocemu", ""), ("rocemu, two daemons over UDP", " over UDP"))
            for threads in verdicts.THREADS}
    rows = {**rows,
            "UDP (busy; GSO and GRO)": (latency["UDP, busy"]["p50"],
                                        bandwidth["UDP with GSO and GRO"]["MB/s"]),
            "UDP, blocking": (latency["UDP, blocking"]["p50"], None),
            "TCP (libfabric; iperf3)": (latency["libfabric, TCP"]["mean"],
                                        bandwidth["TCP, iperf3"]["MB/s"]),
            "UCX over TCP": (latency["UCX, TCP"]["p50"], bandwidth["UCX, TCP"]["MB/s"]),
            "UCX over shared memory": (latency["UCX, shared memory"]["p50"],
                                       bandwidth["UCX, shared memory"]["MB/s"])}
    return "\n".join([CONFIGURATION, "", "| | 64 bytes one way, µs | 64 KiB messages, MB/s |", "|---|---|---|",
                      *(f"| {name} | {_number(time)} | {'' if rate is None else _number(rate)} |"
                        for name, (time, rate) in rows.items())])


def update_docs(results):
    tables = "".join(_section(part, results[part]) for part in TITLES)
    ratios = "\n".join(f"| {ratio['name']} | {ratio['value']:.2f} | {ratio['limit']} | "
                       f"{'' if ratio['holds'] else 'missed'} |" for ratio in results["ratios"])
    bounds = "\n".join(f"| {name} | {_number(value)} | {_number(most)} | {by} |"
                       for name, value, most, by in verdicts.bounds(results))
    machine_text = MACHINE.format(**results["machine"], rounds=results["rounds"], seconds=results["seconds"])
    docs = SOURCE / "docs"
    (docs / "performance.md").write_text(PAGE.format(configuration=CONFIGURATION, machine=machine_text), encoding="utf-8")
    (docs / "data" / "performance.md").write_text(
        TABLES.format(configuration=CONFIGURATION, machine=machine_text, tables=tables, ratios=ratios, bounds=bounds),
        encoding="utf-8")
    plot.draw(results, SOURCE / "docs" / "performance.svg")
    readme = SOURCE / "README.md"
    text = readme.read_text(encoding="utf-8")
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    readme.write_text(between.sub(lambda _: f"{BEGIN}\n{_headline(results)}\n{END}", text),
                      encoding="utf-8")
