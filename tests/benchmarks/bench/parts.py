"""The parts of a benchmark run. Each takes the number of rounds, and returns figures by name."""
import os
from functools import partial

from . import network, nic, peers, ranks
from .harness import medians

SIZES = [2, 64, 512, 4096, 65536, 1 << 20, 8 << 20]
# bytes that are moved to measure the bandwidth of a size, with the next line's limit of messages
BYTES_A_SIZE = 1 << 30
MOST_MESSAGES = 20000
LATENCY_BYTES = 1 << 30  # bytes that are moved to measure the latency of a size
PARTIES_S = 0.5
WAYS_TO_WAIT = {"poll": "polling one CQ", "several": "polling four CQs in turn",
                "memory": "spinning on memory", "event": "blocking"}
WITHOUT_NIC = {"udp": "UDP, polling", "udp-blocking": "UDP, blocking",
               "relay": "spinning on memory, relayed"}


def messages_of(size, total=BYTES_A_SIZE):
    return max(min(total // size, MOST_MESSAGES), 100)


def with_one_thread_and_two(measure, *arguments, name):
    """Returns one row for the programs with one thread, and one row in which each has a second thread that sleeps."""
    return {name: partial(measure, *arguments),
            f"{name}, 2 threads": partial(measure, *arguments, threads=2)}


def latency(rounds):
    """Measures 64 bytes one way, in microseconds."""
    def of(where, program, name):
        return with_one_thread_and_two(nic.latency, where, program, 64, name=name)
    return medians(
        rounds,
        **{**of(nic.inside, "ib_send_lat", "ib_send_lat"),
           **of(nic.inside, "ib_write_lat", "ib_write_lat"),
           **of(nic.over_udp, "ib_send_lat", "ib_send_lat over UDP"),
           "rings without a NIC": peers.ring_latency,
           "UDP, busy": partial(peers.udp_latency, "busy", 64),
           "UDP, busy, relayed": partial(peers.udp_latency, "relayed", 64),
           "UDP, busy, relayed, acknowledged": partial(peers.udp_latency, "acknowledged", 64),
           "UDP, blocking": partial(peers.udp_latency, "blocking", 64),
           "UCX, shared memory": partial(peers.ucx_latency, "shared memory", 64),
           "UCX, TCP": partial(peers.ucx_latency, "tcp", 64),
           "libfabric, TCP": partial(peers.libfabric_latency, 64)})


def bandwidth(rounds):
    """Measures 64 KiB messages in one direction, in MB (10^6 bytes) per second."""
    as_writes = 65536 // 4096  # packets a message

    def of(where, program, name):
        return with_one_thread_and_two(nic.bandwidth, where, program, 65536, 40000, name=name)
    return medians(
        rounds,
        **{**of(nic.inside, "ib_write_bw", "ib_write_bw"),
           **of(nic.inside, "ib_send_bw", "ib_send_bw"),
           **of(nic.over_udp, "ib_write_bw", "ib_write_bw over UDP"),
           **of(nic.over_udp, "ib_send_bw", "ib_send_bw over UDP"),
           "one process_vm_readv and one process_vm_writev": peers.process_vm_limit,
           "UDP with GSO and GRO": peers.udp_stream,
           "UDP with GSO and GRO, as WRITEs": partial(peers.udp_stream, as_writes),
           "UDP with GSO and GRO, relayed": partial(peers.udp_stream, relayed=True),
           "UDP with GSO and GRO, as WRITEs, relayed": partial(peers.udp_stream, as_writes,
                                                               relayed=True),
           "TCP, iperf3": peers.tcp_bandwidth,
           "UCX, shared memory": partial(peers.ucx_bandwidth, "shared memory", 65536, 20000),
           "UCX, TCP": partial(peers.ucx_bandwidth, "tcp", 65536, 20000)})


def message_rate(rounds):
    """Measures 64-byte messages, in millions per second."""
    def rate(where, program, **keywords):
        return nic.bandwidth(where, program, 64, 1000000, **keywords)["million/s"]

    def of(where, program, name):
        return with_one_thread_and_two(rate, where, program, name=name)
    return medians(rounds, **{**of(nic.inside, "ib_send_bw", "ib_send_bw"),
                              **of(nic.inside, "ib_write_bw", "ib_write_bw"),
                              **of(nic.over_udp, "ib_send_bw", "ib_send_bw over UDP"),
                              "rings without a NIC": peers.doorbell_limit})


def sizes(rounds):
    """Measures latency (median, in microseconds) and bandwidth (in MB/s) by message size. Values without a ratio are
    measured only once, because only their order of magnitude matters."""
    ways = {}
    for name, where in (("rocemu", nic.inside), ("rocemu over UDP", nic.over_udp)):
        ways |= with_one_thread_and_two(_at_size, partial(nic.latency, where, "ib_send_lat"),
                                        partial(nic.bandwidth, where, "ib_write_bw"), name=name)
    for way in peers.UCX_WAYS:
        ways[f"UCX, {way}"] = partial(_at_size, partial(peers.ucx_latency, way),
                                      partial(peers.ucx_bandwidth, way))
    figures = {"latency": {name: {} for name in ways}, "bandwidth": {name: {} for name in ways}}
    for size in SIZES:
        measures = {name: partial(way, size) for name, way in ways.items()}
        once = {name: measures.pop(name) for name in ways
                if "over UDP" in name or name == "UCX, shared memory"}
        for name, at_size in {**medians(rounds, **measures), **medians(1, **once)}.items():
            for kind, figure in at_size.items():
                figures[kind][name][size] = figure
    return figures


def _at_size(latency, bandwidth, size, **keywords):
    return {"latency": latency(size, messages_of(size, LATENCY_BYTES), **keywords)["p50"],
            "bandwidth": bandwidth(size, messages_of(size), **keywords)["MB/s"]}


def parties(rounds):
    """Measures how latency, in microseconds, changes when many programs and threads share one or two processors, for
    each way of waiting."""
    del rounds  # only one round, because the table has many rows
    figures = {}
    for how, name in (WAYS_TO_WAIT | WITHOUT_NIC).items():
        for processors in (1, 2):
            rows = figures.setdefault(f"{name}; processors: {processors}", {})
            for pairs, threads in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 8)):
                programs = f"{2 * pairs} programs, {threads} thread{'s' * (threads > 1)} each"
                rows[programs] = nic.parties(how, processors, pairs, threads, PARTIES_S,
                                             without_nic=how in WITHOUT_NIC)
    return figures


def empty_polls(rounds):
    """Measures the cost of a poll that finds nothing, in nanoseconds, on average in windows of a thousand polls: on
    an idle machine, while threads compute, and in both cases with ROCEMU_POLL=spin."""
    figures = {}
    for threads, name in ((0, "idle"), (16, "beside 16 threads")):
        figures[name] = medians(rounds, **{
            f"{what}{end}": partial(nic.empty_polls, how, threads, mode)
            for how, what in (("one", "one CQ"), ("several", "four CQs in turn"), ("extended", "an extended CQ"))
            for mode, end in (("adaptive", ""), ("spin", ", spinning"))})
    return figures


def placement(rounds):
    """Measures how much the results of other parts depend on the processors to which the system assigns processes:
    repeats a measurement with the daemon alone on the last processor and the programs on the others. Needs two
    processors."""
    if len(os.sched_getaffinity(0)) < 2:
        return {}
    alone = partial(nic.inside, daemon_alone=True)
    return medians(
        rounds,
        **{"ib_send_lat, 64 B, µs": lambda: nic.latency(alone, "ib_send_lat", 64)["p50"],
           "UDP, busy, 64 B, µs": lambda: peers.udp_latency("busy", 64)["p50"],
           "ib_send_bw, 64 B, million/s":
               lambda: nic.bandwidth(alone, "ib_send_bw", 64, 1000000)["million/s"],
           "ib_write_bw, 64 KiB, MB/s":
               lambda: nic.bandwidth(alone, "ib_write_bw", 65536, 40000)["MB/s"],
           "ib_send_bw, 64 KiB, MB/s":
               lambda: nic.bandwidth(alone, "ib_send_bw", 65536, 40000)["MB/s"],
           "process_vm, 64 KiB, MB/s": lambda: peers.process_vm_limit()["MB/s"],
           "ib_send_lat, 1 MiB, µs":
               lambda: nic.latency(alone, "ib_send_lat", 1 << 20, 1000)["p50"],
           "process_vm, 1 MiB, µs": lambda: peers.copy_between_two(1 << 20),
           "ib_send_lat, 8 MiB, µs":
               lambda: nic.latency(alone, "ib_send_lat", 8 << 20, 100)["p50"],
           "process_vm, 8 MiB, µs": lambda: peers.copy_between_two(8 << 20)})


def queue_pairs(rounds):
    """Measures the time of a message, in nanoseconds, by the number of QPs that take turns; the daemon's bytes for
    an idle QP; and what a daemon with 10,000 idle QPs does."""
    del rounds  # many_qps does its own rounds
    times, memory = nic.many_qps()
    return {"ns a message": times, "bytes a QP": memory, "10,000 idle QPs": nic.idle()}


def connections(rounds):
    """Measures connections of librdmacm, 1,000 at a time, 11,000 in total."""
    return medians(max(rounds // 2, 1), cmtime=nic.connections)["cmtime"]


def recording(rounds):
    """Measures ib_write_bw with 64 KiB, with a recording and without."""
    return medians(rounds, **{"not recorded": nic.counted_write_bw,
                              "recorded": nic.recorded_write_bw})


def fault_layer(rounds):
    """Measures the cost of the code for fault rules: with this code but no rules, and built without this code. Round
    trip of 64 bytes in microseconds, 64 KiB ib_write_bw in MB/s."""
    without = nic.without_faults()
    return medians(
        3 * rounds,
        **{"round trip": lambda: nic.pingpong(64, 50000),
           "round trip, without": lambda: nic.pingpong(64, 50000, rocemu=without),
           "write": nic.write_bw,
           "write, without": lambda: nic.write_bw(rocemu=without)})


def sanitizer(rounds):
    """Measures perftest without the verbs sanitizer, with its rules that read no payload, and with all rules: 64
    bytes in millions of messages per second, 64 KiB in MB/s."""
    ways = {"": (), ", rules without payload": ("--sanitize=all,-send-buffer-modified",),
            ", all rules": ("--sanitize=all",)}
    return medians(rounds, **{
        f"{program}{name}": partial(nic.sanitized_bandwidth, program, options)
        for program in ("ib_send_bw", "ib_write_bw") for name, options in ways.items()})


def adversarial(rounds):
    """Measures perftest by default, with the exact memory that --adversarial uses, with the class relaxed, which must
    examine each WRITE, and with all classes: 64 bytes in millions of messages per second, 64 KiB in MB/s."""
    ways = {"": (), ", exact memory": ("--exact-memory",), ", relaxed alone": ("--adversarial=relaxed",)}
    figures = {}
    for program in ("ib_send_bw", "ib_write_bw"):
        for name, options in ways.items():
            figures[f"{program}{name}"] = partial(nic.small_and_large, program, options)
        figures[f"{program}, all classes"] = partial(nic.small_and_large, program, ("--adversarial",), 10000, 400)
    return medians(rounds, **figures)


def vipl(rounds):
    """Measures round trips of 4 KiB by VIPL and by verbs, in microseconds, for each way to wait for a message."""
    return medians(
        rounds,
        **{"vipl_pingpong, polling": partial(nic.vipl_pingpong, "poll", 4096, 5000),
           "ibv_rc_pingpong": partial(nic.pingpong, 4096, 5000),
           "vipl_pingpong, waiting": partial(nic.vipl_pingpong, "wait", 4096, 5000),
           "vipl_pingpong, notified": partial(nic.vipl_pingpong, "notify", 4096, 5000),
           "ibv_rc_pingpong -e": partial(nic.pingpong, 4096, 5000, "-e")})


def many_ranks(rounds):
    """Measures an all-to-all of Open MPI with many ranks, over rocemu and over TCP, and the daemon's memory with the most
    ranks."""
    if not ranks.available():
        return {}
    figures = medians(rounds, **{f"{count} ranks, {way}": partial(ranks.all_to_all, way, count)
                                 for count in ranks.RANKS for way in ranks.WAYS})
    most = max(ranks.RANKS)
    figures[f"{most} ranks, rocemu"].update(ranks.memory(most))
    return figures


def lockstep(rounds):
    """Measures lockstep: milliseconds of real time for an exchange of 64 bytes, and seconds of a ring of MPI ranks in
    lockstep and on the real clock."""
    figures = medians(rounds, **{"ibv_rc_pingpong -s 64, ms an exchange": nic.lockstep_exchange})
    if ranks.available():
        figures.update(medians(rounds, **{
            "MPI ring of 16 ranks, lockstep, s": partial(ranks.ring, 16, "--lockstep"),
            "MPI ring of 16 ranks, real clock, s": partial(ranks.ring, 16)}))
    return figures


def other_programs(rounds):
    """Measures the cost for programs that use no RDMA: milliseconds of `rocemu run -- true`, of the programs that it
    starts, and seconds of compiling three small files."""
    figures = medians(5 * rounds, **{
        "rocemu run -- true": nic.start_and_end,
        **{" ".join(command): partial(nic.milliseconds, *command)
           for command in (("rocemu", "--version"), ("rocemud", "--version"), ("true",))}})
    figures.update(medians(rounds, **nic.compiling()))
    return figures


def explore(rounds):
    """Measures a second of `rocemu explore`, which runs two trials at the same time on two processors."""
    return medians(rounds, **{"rping -C 3, both sides": partial(nic.explore, "rping"),
                              "GoogleTest, 40 verbs": partial(nic.explore, "forty_verbs")})


def fabric(rounds):
    """Measures the simulated network by itself, in millions of packet-hops per second, and the seconds of runs in
    lockstep with and without it: rping -C 200 between two devices, and 15 programs that write to one of 16 devices."""
    figures = medians(rounds, **{f"packet-hops, {name}": partial(network.packet_hops, name)
                                 for name in network.TRAFFIC})
    figures.update(medians(rounds, **{
        f"{name}, {'with' if with_network else 'without'} --fabric": partial(network.lockstep, name, with_network)
        for name in network.SCRIPTS for with_network in (False, True)}))
    return figures


def micro(rounds):
    """Measures single parts of rocemu with Google Benchmark."""
    del rounds  # Google Benchmark does its own rounds
    return peers.parts()


PARTS = {"latency": latency, "bandwidth": bandwidth, "message_rate": message_rate, "placement": placement, "sizes": sizes,
         "parties": parties, "empty_polls": empty_polls, "queue_pairs": queue_pairs, "connections": connections, "recording": recording,
         "fault_layer": fault_layer, "sanitizer": sanitizer,
         "adversarial": adversarial, "vipl": vipl, "many_ranks": many_ranks, "lockstep": lockstep,
         "other_programs": other_programs, "explore": explore, "fabric": fabric, "micro": micro}
