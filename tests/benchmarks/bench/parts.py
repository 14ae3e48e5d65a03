"""The parts of a run: each takes the number of rounds and gives figures by name."""
from functools import partial

from . import nic, peers
from .harness import medians

SIZES = [2, 64, 512, 4096, 65536, 1 << 20, 8 << 20]
BYTES_A_SIZE = 1 << 30  # are moved to measure bandwidth, but no more messages than
MOST_MESSAGES = 20000


def messages_of(size, total=BYTES_A_SIZE):
    return max(min(total // size, MOST_MESSAGES), 100)


def latency(rounds):
    """64 bytes one way, in microseconds."""
    return medians(
        rounds,
        **{"ib_send_lat": partial(nic.latency, nic.inside, "ib_send_lat", 64),
           "ib_write_lat": partial(nic.latency, nic.inside, "ib_write_lat", 64),
           "ib_send_lat over UDP": partial(nic.latency, nic.over_udp, "ib_send_lat", 64),
           "UDP, busy": partial(peers.udp_latency, "busy", 64),
           "UDP, busy, relayed": partial(peers.udp_latency, "relayed", 64),
           "UDP, blocking": partial(peers.udp_latency, "blocking", 64),
           "UCX, shared memory": partial(peers.ucx_latency, "shared memory", 64),
           "UCX, TCP": partial(peers.ucx_latency, "tcp", 64),
           "libfabric, TCP": partial(peers.libfabric_latency, 64)})


def bandwidth(rounds):
    """64 KiB messages in one direction, in MB (10^6 bytes) a second."""
    def udp_stream(pieces=None):
        return {"MB/s": peers.udp_stream(pieces)}
    return medians(
        rounds,
        **{"ib_write_bw": partial(nic.bandwidth, nic.inside, "ib_write_bw", 65536, 20000),
           "ib_write_bw over UDP": partial(nic.bandwidth, nic.over_udp, "ib_write_bw", 65536, 60000),
           "ib_send_bw over UDP": partial(nic.bandwidth, nic.over_udp, "ib_send_bw", 65536, 60000),
           "UDP with GSO and GRO": udp_stream,
           "UDP with GSO and GRO, as WRITEs": partial(udp_stream, 65536 // 4096),
           "TCP, iperf3": peers.tcp_bandwidth,
           "UCX, shared memory": partial(peers.ucx_bandwidth, "shared memory", 65536, 20000),
           "UCX, TCP": partial(peers.ucx_bandwidth, "tcp", 65536, 20000)})


def message_rate(rounds):
    """64 bytes, in millions of messages a second."""
    def of(where, program):
        return lambda: nic.bandwidth(where, program, 64, 1000000)["million/s"]
    return medians(rounds, **{"ib_send_bw": of(nic.inside, "ib_send_bw"),
                              "ib_write_bw": of(nic.inside, "ib_write_bw"),
                              "ib_send_bw over UDP": of(nic.over_udp, "ib_send_bw"),
                              "rings without a NIC": peers.doorbell_limit})


def sizes(rounds):
    """By size: latency (median, microseconds) and bandwidth (MB/s)."""
    del rounds  # one: what counts is the shape
    figures = {"latency": {}, "bandwidth": {}}
    for name, where in (("rocemu", nic.inside), ("rocemu over UDP", nic.over_udp)):
        figures["latency"][name] = {
            size: nic.latency(where, "ib_send_lat", size, messages_of(size, 1 << 28))["p50"]
            for size in SIZES}
        figures["bandwidth"][name] = {
            size: nic.bandwidth(where, "ib_write_bw", size, messages_of(size))["MB/s"]
            for size in SIZES}
    for way in peers.UCX_WAYS:
        name = f"UCX, {way}"
        figures["latency"][name] = {
            size: peers.ucx_latency(way, size, messages_of(size, 1 << 28))["p50"]
            for size in SIZES}
        figures["bandwidth"][name] = {
            size: peers.ucx_bandwidth(way, size, messages_of(size))["MB/s"] for size in SIZES}
    return figures


def queue_pairs(rounds):
    """A message's time by number of QPs that take turns, in nanoseconds; the daemon's bytes for an
    idle QP; and what a daemon with 10,000 idle QPs does."""
    del rounds  # many_qps has its own
    times, memory = nic.many_qps()
    return {"ns a message": times, "bytes a QP": memory, "10,000 idle QPs": nic.idle()}


def connections(rounds):
    """With librdmacm, 1,000 at a time, 11,000 in all."""
    return medians(max(rounds // 2, 1), cmtime=nic.connections)["cmtime"]


def recording(rounds):
    """ib_write_bw with 64 KiB, in MB/s, and the same recorded; what was recorded and its replay in
    seconds."""
    figures = medians(rounds, plain=nic.write_bw, recorded=nic.recorded_write_bw)
    recorded = figures.pop("recorded")
    return {**figures, "recorded": recorded.pop("MB/s"), **recorded}


def fault_layer(rounds):
    """With the code that asks for fault rules, none given, and built without it: round trip of 64
    bytes in microseconds, 64 KiB ib_write_bw in MB/s."""
    without = nic.without_faults()
    return medians(
        3 * rounds,
        **{"round trip": lambda: nic.pingpong(64, 50000),
           "round trip, without": lambda: nic.pingpong(64, 50000, rocemu=without),
           "write": nic.write_bw,
           "write, without": lambda: nic.write_bw(rocemu=without)})


def vipl(rounds):
    """Round trips of 4 KiB by VIPL and by verbs, in microseconds: each way to learn of a message."""
    return medians(
        rounds,
        **{"vipl_pingpong, polling": partial(nic.vipl_pingpong, "poll", 4096, 5000),
           "ibv_rc_pingpong": partial(nic.pingpong, 4096, 5000),
           "vipl_pingpong, waiting": partial(nic.vipl_pingpong, "wait", 4096, 5000),
           "vipl_pingpong, notified": partial(nic.vipl_pingpong, "notify", 4096, 5000),
           "ibv_rc_pingpong -e": partial(nic.pingpong, 4096, 5000, "-e")})


def other_programs(rounds):
    """What programs pay that use no RDMA: milliseconds of `rocemu run -- true`, and seconds of
    compiling three small files."""
    figures = medians(5 * rounds, **{"rocemu run -- true": nic.start_and_end})
    figures.update(medians(rounds, **nic.compiling()))
    return figures


def micro(rounds):
    """The parts by themselves, with Google Benchmark."""
    del rounds  # it has its own
    return peers.parts()


PARTS = {"latency": latency, "bandwidth": bandwidth, "message_rate": message_rate, "sizes": sizes,
         "queue_pairs": queue_pairs, "connections": connections, "recording": recording,
         "fault_layer": fault_layer, "vipl": vipl, "other_programs": other_programs, "micro": micro}
