"""The ratios that rocemu wants to hold, from a run's figures."""


def ratios(results):
    """A list of {name, value, limit, holds}; `limit` as text, such as "<= 1.0"."""
    found = []

    def ratio(name, value, at_most=None, at_least=None):
        holds = value <= at_most if at_most is not None else value >= at_least
        limit = f"<= {at_most:g}" if at_most is not None else f">= {at_least:g}"
        found.append({"name": name, "value": round(value, 3), "limit": limit, "holds": holds})

    if "latency" in results:
        rows = results["latency"]
        send, write = rows["ib_send_lat"], rows["ib_write_lat"]
        over_udp = rows["ib_send_lat over UDP"]
        busy, blocking = rows["UDP, busy"]["p50"], rows["UDP, blocking"]["p50"]
        ratio("64 B latency to busy UDP", send["p50"] / busy, at_most=1.0)
        ratio("64 B latency to blocking UDP", send["p50"] / blocking, at_most=0.35)
        ratio("64 B ib_write_lat to ib_send_lat", write["p50"] / send["p50"], at_most=2.0)
        ratio("64 B ib_write_lat, p99 to median", write["p99"] / write["p50"], at_most=5.0)
        ratio("64 B latency between two daemons to busy UDP", over_udp["p50"] / busy, at_most=1.5)
    if "bandwidth" in results:
        rows = {name: row["MB/s"] for name, row in results["bandwidth"].items()}
        write = rows["ib_write_bw"]
        ratio("64 KiB bandwidth to UCX over TCP", write / rows["UCX, TCP"], at_least=1.0)
        for program in ("ib_send_bw", "ib_write_bw"):
            ratio(f"64 KiB {program} between two daemons to UDP with GSO and GRO",
                  rows[f"{program} over UDP"] / rows["UDP with GSO and GRO"], at_least=0.4)
        if "micro" in results:
            copy = results["micro"]["copy_process_vm_readv/65536"]["MB/s"]
            wanted = min(3 * rows["TCP, iperf3"], copy / 2)
            ratio("64 KiB bandwidth to 3 x TCP or half of process_vm_readv, the lower of them",
                  write / wanted, at_least=1.0)
    if "message_rate" in results:
        ratio("64 B ib_send_bw, million messages a second",
              results["message_rate"]["ib_send_bw"], at_least=1.5)
    if "queue_pairs" in results:
        times = results["queue_pairs"]["ns a message"]
        ratio("a message with 1,024 QPs to one with 2", times[1024] / times[2], at_most=1.3)
        ratio("a message with 16,384 QPs to one with 2", times[16384] / times[2], at_most=2.0)
        memory = results["queue_pairs"]["bytes a QP"]
        ratio("KiB of the daemon for an idle QP", memory[max(memory)] / 1024, at_most=4.0)
        ratio("wake-ups a second with 10,000 idle QPs",
              results["queue_pairs"]["10,000 idle QPs"]["wake-ups per second"], at_most=0.0)
    if "recording" in results:
        rows = results["recording"]
        ratio("64 KiB bandwidth to the same recorded", rows["plain"] / rows["recorded"],
              at_most=2.0)
        ratio("time of a replay to that of the recorded run",
              rows["replayed, s"] / rows["recorded, s"], at_most=1.0)
    if "fault_layer" in results:
        rows = results["fault_layer"]
        ratio("64 B round trip to one without a fault layer",
              rows["round trip"] / rows["round trip, without"], at_most=1.02)
        ratio("64 KiB write time to one without a fault layer",
              rows["write, without"] / rows["write"], at_most=1.02)
    if "other_programs" in results:
        rows = results["other_programs"]
        ratio("milliseconds of rocemu run -- true", rows["rocemu run -- true"], at_most=50.0)
        ratio("compiling under rocemu run to plain", rows["under"] / rows["plain"], at_most=1.05)
    return found
