"""The ratios that rocemu must keep, computed from the figures of a run."""

THREADS = ("", ", 2 threads")  # ends of row names
WITHOUT_NIC = ("UDP", "spinning on memory, relayed")  # beginnings of table names


def ratios(results):
    """Returns a list of {name, value, limit, holds}. `limit` is a text, such as "<= 1.0"."""
    found = []

    def ratio(name, value, at_most=None, at_least=None):
        holds = value <= at_most if at_most is not None else value >= at_least
        limit = f"<= {at_most:g}" if at_most is not None else f">= {at_least:g}"
        found.append({"name": name, "value": round(value, 3), "limit": limit, "holds": holds})

    if "latency" in results:
        rows = results["latency"]
        busy, blocking = rows["UDP, busy"]["p50"], rows["UDP, blocking"]["p50"]
        relayed = rows["UDP, busy, relayed"]["p50"]
        for threads in THREADS:
            send, write = rows[f"ib_send_lat{threads}"], rows[f"ib_write_lat{threads}"]
            over_udp = rows[f"ib_send_lat over UDP{threads}"]
            ratio(f"64 B latency to busy UDP{threads}", send["p50"] / busy, at_most=1.0)
            ratio(f"64 B latency to blocking UDP{threads}", send["p50"] / blocking, at_most=0.35)
            ratio(f"64 B ib_write_lat to ib_send_lat{threads}", write["p50"] / send["p50"],
                  at_most=2.0)
            ratio(f"64 B ib_write_lat, 99.9 % to median{threads}", write["p99.9"] / write["p50"],
                  at_most=20.0)
            ratio(f"64 B latency between two daemons to busy UDP, relayed{threads}",
                  over_udp["p50"] / relayed, at_most=1.25)
    if "bandwidth" in results:
        rows = {name: row["MB/s"] for name, row in results["bandwidth"].items()}
        limit = rows["one process_vm_readv and one process_vm_writev"]
        for threads in THREADS:
            for program, least in (("ib_write_bw", 1.3), ("ib_send_bw", 0.75)):
                rate = rows[f"{program}{threads}"]
                ratio(f"64 KiB {program} to TCP (iperf3){threads}", rate / rows["TCP, iperf3"],
                      at_least=1.2)
                ratio(f"64 KiB {program} to one process_vm_readv and one process_vm_writev"
                      f"{threads}", rate / limit, at_least=least)
            ratio(f"64 KiB ib_send_bw between two daemons to UDP with GSO and GRO{threads}",
                  rows[f"ib_send_bw over UDP{threads}"] / rows["UDP with GSO and GRO"],
                  at_least=0.5)
            ratio(f"64 KiB ib_write_bw between two daemons to UDP with GSO and GRO, as WRITEs"
                  f"{threads}", rows[f"ib_write_bw over UDP{threads}"]
                  / rows["UDP with GSO and GRO, as WRITEs"], at_least=0.6)
            ratio(f"64 KiB ib_write_bw between two daemons to UDP with GSO and GRO, as WRITEs, relayed"
                  f"{threads}", rows[f"ib_write_bw over UDP{threads}"]
                  / rows["UDP with GSO and GRO, as WRITEs, relayed"], at_least=0.7)
    if "message_rate" in results:
        for threads in THREADS:
            ratio(f"64 B ib_send_bw, million messages a second{threads}",
                  results["message_rate"][f"ib_send_bw{threads}"], at_least=1.5)
            ratio(f"64 B ib_write_bw, million messages a second{threads}",
                  results["message_rate"][f"ib_write_bw{threads}"], at_least=4.0)
    if "sizes" in results:
        for threads in THREADS:
            latency, rate = results["sizes"]["latency"], results["sizes"]["bandwidth"]
            times = {size: time / latency["UCX, tcp"][size]
                     for size, time in latency[f"rocemu{threads}"].items()}
            rates = {size: each / rate["UCX, tcp"][size]
                     for size, each in rate[f"rocemu{threads}"].items()}
            slowest, least = max(times, key=times.get), min(rates, key=rates.get)
            ratio(f"latency to UCX over TCP, at the worst size ({slowest} B){threads}",
                  times[slowest], at_most=1.0)
            ratio(f"1 MiB latency to UCX over TCP{threads}", times[1 << 20], at_most=1.0)
            ratio(f"bandwidth to UCX over TCP, at the worst size ({least} B){threads}",
                  rates[least], at_least=1.0)
    if "parties" in results:
        for how, rows in results["parties"].items():
            if how.startswith(WITHOUT_NIC):
                continue
            if how.startswith("polling"):
                asleep = results["parties"]["blocking" + how[how.index(";"):]]
                slowest = max(rows, key=lambda name: rows[name]["p50"] / asleep[name]["p50"])
                ratio(f"latency {how}, to blocking, at the worst ({slowest})",
                      rows[slowest]["p50"] / asleep[slowest]["p50"], at_most=1.0)
            latest = max(rows, key=lambda name: rows[name]["p99.9"] / rows[name]["p50"])
            ratio(f"{how}, 99.9 % to median, at the worst ({latest})",
                  rows[latest]["p99.9"] / rows[latest]["p50"], at_most=20.0)
    if "empty_polls" in results:
        for load, rows in results["empty_polls"].items():
            for name in rows:
                if name.endswith(", spinning"):
                    continue
                if load == "idle":
                    ratio(f"µs of an empty poll of {name}, idle", rows[name]["mean"] / 1000, at_most=2.0)
                else:
                    ratio(f"an empty poll of {name} to one that spins, {load}",
                          rows[name]["mean"] / rows[f"{name}, spinning"]["mean"], at_most=10.0)
    if "queue_pairs" in results:
        times = results["queue_pairs"]["ns a message"]
        ratio("a message with 1,024 QPs to one with 2", times[1024] / times[2], at_most=1.3)
        ratio("a message with 16,384 QPs to one with 2", times[16384] / times[2], at_most=2.0)
        memory = results["queue_pairs"]["bytes a QP"]
        ratio("KiB of the daemon for an idle QP", memory[max(memory)] / 1024, at_most=4.0)
        ratio("wake-ups a second with 10,000 idle QPs",
              results["queue_pairs"]["10,000 idle QPs"]["wake-ups per second"], at_most=0.0)
    if "recording" in results:
        plain, recorded = results["recording"]["not recorded"], results["recording"]["recorded"]
        ratio("64 KiB bandwidth to the same recorded", plain["MB/s"] / recorded["MB/s"],
              at_most=2.0)
        ratio("frames a message when recorded to those without",
              recorded["frames a message"] / plain["frames a message"], at_most=1.02)
        ratio("time of a replay to that of the recorded transfer",
              recorded["replay, s"] / recorded["transfer, s"], at_most=1.0)
    if "fault_layer" in results:
        rows = results["fault_layer"]
        ratio("64 B round trip to one without a fault layer",
              rows["round trip"] / rows["round trip, without"], at_most=1.02)
        ratio("64 KiB write time to one without a fault layer",
              rows["write, without"] / rows["write"], at_most=1.02)
    if "sanitizer" in results:
        rows = results["sanitizer"]
        for program in ("ib_send_bw", "ib_write_bw"):
            for rules, at_most in (("rules without payload", 1.3), ("all rules", 3.0)):
                for figure, plain in rows[program].items():
                    ratio(f"{program} {figure.partition(',')[0]} to the same with the sanitizer, {rules}",
                          plain / rows[f"{program}, {rules}"][figure], at_most=at_most)
    if results.get("many_ranks"):
        times = {name: row["seconds"] for name, row in results["many_ranks"].items()}
        ratio("time of 64 MPI ranks to UCX over TCP", times["64 ranks, rocemu"] / times["64 ranks, UCX over TCP"],
              at_most=1.5)
    if "lockstep" in results:
        rows = results["lockstep"]
        ratio("milliseconds of an exchange in lockstep", rows["ibv_rc_pingpong -s 64, ms an exchange"], at_most=0.1)
        if "MPI ring of 16 ranks, lockstep, s" in rows:
            ratio("time of an MPI ring of 16 ranks in lockstep to the real clock",
                  rows["MPI ring of 16 ranks, lockstep, s"] / rows["MPI ring of 16 ranks, real clock, s"], at_most=20.0)
    if "other_programs" in results:
        rows = results["other_programs"]
        ratio("milliseconds of rocemu run -- true", rows["rocemu run -- true"], at_most=25.0)
        ratio("rocemu run -- true to rocemu --version, rocemud --version and true", rows["rocemu run -- true"]
              / sum(rows[name] for name in ("rocemu --version", "rocemud --version", "true")), at_most=1.5)
        ratio("compiling under rocemu run to plain", rows["under"] / rows["plain"], at_most=1.05)
    if "explore" in results:
        rows = results["explore"]
        ratio("rocemu explore, runs a second of rping", rows["rping -C 3, both sides"],
              at_least=100.0)
        ratio("rocemu explore, runs a second of GoogleTest with 40 verbs",
              rows["GoogleTest, 40 verbs"], at_least=250.0)
    if "fabric" in results:
        rows = results["fabric"]
        for name in ("16 hosts, permutation", "1,024 hosts, WebSearch"):
            ratio(f"million packet-hops a second, {name}", rows[f"packet-hops, {name}"], at_least=1.0)
    return found


def bounds(results):
    """Returns rows of (figure, value, limit, what measured the limit)."""
    latency = results["latency"]

    def mb(name):
        return results["bandwidth"][name]["MB/s"]

    def late(how):
        row = results["parties"][f"{how}; processors: 2"]["2 programs, 1 thread each"]
        return row["p99.9"] / row["p50"]

    copies = "one process_vm_readv and one process_vm_writev"
    rows = _bounds_by_placement(results) + [        ("64 B ib_send_lat, µs", latency["ib_send_lat"]["p50"],
         latency["rings without a NIC"]["p50"], "rings without a NIC"),
        ("64 KiB ib_send_bw, MB/s", mb("ib_send_bw"), mb(copies), copies),
        ("64 KiB ib_write_bw, MB/s", mb("ib_write_bw"), mb(copies), copies),
        ("64 KiB ib_send_bw over UDP, MB/s", mb("ib_send_bw over UDP"),
         mb("UDP with GSO and GRO, relayed"), "UDP with GSO and GRO, relayed"),
        ("64 KiB ib_write_bw over UDP, MB/s", mb("ib_write_bw over UDP"),
         mb("UDP with GSO and GRO, as WRITEs, relayed"), "the same, as WRITEs"),
        ("64 B ib_send_lat over UDP, µs", latency["ib_send_lat over UDP"]["p50"],
         latency["UDP, busy, relayed"]["p50"], "UDP, busy, relayed"),
        ("the same", latency["ib_send_lat over UDP"]["p50"],
         latency["UDP, busy, relayed, acknowledged"]["p50"], "the same, acknowledged"),
        ("64 B ib_write_lat, 99.9 % to median", latency["ib_write_lat"]["p99.9"]
         / latency["ib_write_lat"]["p50"], late("spinning on memory, relayed"),
         "spinning on memory, relayed without a NIC"),
    ]
    return rows


def _bounds_by_placement(results):
    """Returns the bounds() that show how much depends on the system's choice of processors."""
    rows, alone = results.get("placement"), "the daemon alone on a processor (taskset)"
    if not rows:
        return []
    return [
        ("64 B ib_send_lat, µs", results["latency"]["ib_send_lat"]["p50"],
         rows["ib_send_lat, 64 B, µs"], alone),
        ("64 B ib_send_bw, million/s", results["message_rate"]["ib_send_bw"],
         rows["ib_send_bw, 64 B, million/s"], alone),
        *((f"64 KiB {program}, MB/s", results["bandwidth"][program]["MB/s"],
           rows[f"{program}, 64 KiB, MB/s"], alone) for program in ("ib_send_bw", "ib_write_bw")),
        *((f"{size} ib_send_lat, µs", results["sizes"]["latency"]["rocemu"][at],
           rows[f"ib_send_lat, {size}, µs"], alone)
          for size, at in (("1 MiB", 1 << 20), ("8 MiB", 8 << 20))),
        *((f"{size} ib_send_lat, the daemon alone, µs", rows[f"ib_send_lat, {size}, µs"],
           rows[f"process_vm, {size}, µs"], "process_vm_readv and process_vm_writev of 64 KiB pieces")
          for size in ("1 MiB", "8 MiB")),
    ]
