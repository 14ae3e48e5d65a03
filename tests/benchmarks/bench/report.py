"""Figures as a table for the terminal, and as docs/performance.md and the README's table."""
import os
import platform
import re

from . import plot, verdicts
from .harness import SOURCE

UNITS = {"latency": "64 bytes one way, µs", "bandwidth": "64 KiB messages in one direction",
         "message_rate": "64 bytes, million messages a second",
         "sizes": "by message size: latency in µs, bandwidth in MB/s",
         "queue_pairs": "connected QPs that take turns", "connections": "librdmacm, 1,000 at a time",
         "parties": "64 bytes one way, µs, of pairs of programs whose threads each have a counterpart",
         "empty_polls": "polls that find nothing: ns each, on average, in windows of 1,000, beside threads that compute",
         "placement": "the daemon alone on the last processor, the programs on the others; and what it is compared with",
         "recording": "64 KiB ib_write_bw; the transfer that was recorded and a replay of all",
         "fault_layer": "with and without the code that asks for fault rules; µs and MB/s",
         "adversarial": "perftest with --adversarial: a class without work, and all",
         "sanitizer": "perftest with the verbs sanitizer: rules that read no payload, and all",
         "vipl": "round trips of 4 KiB by VIPL and by verbs, µs",
         "other_programs": "programs without RDMA; ms and s",
         "explore": "runs a second of rocemu explore, with 2 jobs on 2 processors", "micro": "parts by themselves"}


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

PAGE = """# Performance

{configuration}

Written by `scripts/bench --update-docs`, which builds rocemu and what it is compared with, measures all of it in
one run, side by side, and draws the picture. The figures below are of one machine; on another one run `scripts/bench`.

Machine: {processor}, {cores} processors, Linux {kernel}; load average {load} from other work before the run. Figures are
medians of {rounds}, taken in turn with the other rows of a table; the run took {seconds} s.

## How to read it

- Absolute figures are those of this machine at that moment. What says something are ratios between rows of one table.
- A one-way latency is half of a round trip, as perftest counts. "UDP, busy" is two processes that throw a datagram to and fro over
  loopback and never sleep: the least that a network stack takes. "UDP, blocking" is the same with a plain `recv`.
- Three parties share the processors: two programs and the daemon. With two processors, each message costs at least one change
  from one party to another.
  Who shares a processor with whom is the system's choice, and changes figures from run to run (design/waiting.md).
- Over UDP four parties share them, and a message changes twice more from one to another than in plain UDP: from the program to its
  daemon and from the other daemon to the other program. "UDP, busy, relayed" is what that takes by itself: each of the two
  processes has its socket in a third and a fourth, which it reaches by shared memory and which do nothing but relay. Where the
  system puts the four makes a difference.
- "Rings without a NIC" is the doorbell limit: three processes that do of ib_send_bw, and for latency of ib_send_lat, what the
  rings in shared memory ask for, with nothing between them. They give way by `sched_yield`, as rocemu does.
- CPU s/GiB is the processor time of all processes, starting and ending included, for each GiB moved.
- "over UDP" is two daemons, each with a loopback address: frames leave one by a socket and come in by the other's.
- UDP with GSO and GRO sends datagrams whose pieces are all of one size, as the packets of SENDs are. The first packet of a
  WRITE is longer by its RETH, so that each message takes two datagrams: that is the row "as WRITEs".
- The daemon copies each message twice, out of the sender's memory and into the receiver's, by process_vm_readv and
  process_vm_writev (design/memory.md). "One process_vm_readv and one process_vm_writev" is that and nothing else, of a
  message that stays in the processor's caches: the most that there could be.
- With `--exact-memory` the daemon reads each message when it sends it and writes it when it arrives, as it does in lockstep.
  That takes 1.5 to 1.8 times the latency of 64 B to 4 KiB and 1.2 times that of 8 KiB, so the switch is off by default.
- Over UDP the daemons copy as well: "relayed" is UDP with GSO and GRO whose data one process reads out of another's memory
  and the other writes into another's, and nothing else: no RoCE, no ICRC. That is the most that there could be over UDP.
- "Many programs and threads": each thread has a counterpart in another program, with which it throws a message to and
  fro. With the daemon they have one processor or two.
- "Polls that find nothing": a program that never finds anything, beside threads of it that compute. The averages of
  windows of 1,000 polls: their mean, and how they are distributed. "Spinning" is `ROCEMU_POLL=spin`, which loses whole
  time slices, as on a NIC.

![latency and bandwidth by message size](performance.svg)

{tables}
## Ratios

| ratio | here | wanted | |
|---|---|---|---|
{ratios}

## What bounds them

The table is measured in this run: rocemu beside the least that does the same work. What follows it is how we explain
what is missed, and not measured.

| | here | limit | measured by |
|---|---|---|---|
{bounds}

- **Short messages.** Each goes through three parties. With two processors, two of the parties share one, and the rest is
  the system's: which two, and how long it takes to change from one to the other. The rows "the daemon alone on a processor"
  are the same programs where `taskset` decides: then the two programs change with each other, and the daemon with nobody. rocemu
  leaves that to the system ([ADR 0015](adr/0015-waiting.md)); who wants it uses `taskset`. A machine with fast system calls favours
  UDP and TCP, which have two parties. A post and a poll each ask the kernel once whether the page of the buffer is there.
  Tried without effect: link-time optimisation of the daemon (1.71 million/s with and without), and to look again for
  1, 2 or 5 µs in place of each yield that let nobody in (`ib_send_lat`, the daemon alone: 2.9 or 3.9 µs each way, with all of them).
- **99.9 %.** Programs that look at memory in a loop never give way, so that the daemon may have to wait for the end of a
  time slice. "Spinning on memory, relayed" is the least that does the same: programs that look at memory, and another process, that
  sleeps until it is rung for, which brings each message by one store.
- **64 KiB.** The limit is of a process that does nothing else. Of the daemon's time, 80 % is in these two calls, and it
  has a processor for 90 % of the time. A second thread that writes while the first one reads was slower: what it is to
  write lies in the other processor's cache ([ADR 0017](adr/0017-slots.md)).
- **1 MiB and more.** TCP copies at both ends at once, with two processors, and finds pages by the processor's own tables. The
  daemon first reads and then writes, and for each the kernel looks up every page: that alone is the row "process_vm_readv and
  process_vm_writev of 64 KiB pieces", where 8 MiB with huge pages took 2.0 ms instead of 4.5. Calls of 256 KiB take 10 to 15 %
  less, which would not change the verdict.
- **Over UDP.** "Relayed" copies, sends, receives and copies. rocemu also computes an ICRC over each byte at either end, and
  acknowledges. Of the sending daemon's time 79 % is the kernel's, 5 % the ICRC and 15 % rocemu's own; of the receiving one's
  72 %, 6 % and 20 %. Between two short messages a daemon looks into its socket in vain five to seven times, with a system
  call each, and meanwhile no other of the four parties has its processor.
- **Recording** writes each byte of each frame into a file.
"""

TITLES = {"latency": "Latency", "bandwidth": "Bandwidth", "message_rate": "Messages a second",
          "placement": "Who shares a processor", "sizes": "Message sizes", "parties": "Many programs and threads",
          "empty_polls": "Polls that find nothing", "queue_pairs": "Many queue pairs", "connections": "Connections",
          "recording": "Recording", "fault_layer": "The fault layer",
          "sanitizer": "The verbs sanitizer", "adversarial": "--adversarial", "vipl": "VIPL and verbs",
          "other_programs": "Programs without RDMA", "explore": "rocemu explore",
          "micro": "The parts"}

BEGIN, END = "<!-- scripts/bench writes from here -->", "<!-- to here -->"


def _rows(figures):
    """A dict of dicts as the rows of a table, or of numbers as rows of two."""
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
    page = PAGE.format(bounds=bounds, configuration=CONFIGURATION, **results["machine"], rounds=results["rounds"], seconds=results["seconds"],
                       tables=tables, ratios=ratios)
    (SOURCE / "docs" / "performance.md").write_text(page, encoding="utf-8")
    plot.draw(results, SOURCE / "docs" / "performance.svg")
    readme = SOURCE / "README.md"
    text = readme.read_text(encoding="utf-8")
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    readme.write_text(between.sub(lambda _: f"{BEGIN}\n{_headline(results)}\n{END}", text),
                      encoding="utf-8")
