#!/usr/bin/python3
"""Lesson 12: several hosts write to rocemu0 at the same time. incast.py [WRITERS [victim]]

With `victim`, the first writer also writes to a host to which no other host writes.
"""
import sys
import time

from verbs import STATUS, Side, e

MESSAGES, SIZE = 40, 65536
writers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
flows = [(number, 0) for number in range(1, writers + 1)]
if "victim" in sys.argv:
    flows.append((1, writers + 1))

pairs = []
for source, target in flows:
    writer, reader = Side(f"rocemu{source}", size=SIZE), Side(f"rocemu{target}", size=SIZE)
    writer.connect(reader)
    reader.connect(writer)
    pairs.append((writer, reader))

started = time.monotonic()
for number in range(MESSAGES):
    for writer, reader in pairs:
        writer.post(number, e.IBV_WR_RDMA_WRITE, SIZE, remote=reader)
left = {writer: MESSAGES for writer, _ in pairs}
seconds = {}
while left:
    for writer in list(left):
        for done in writer.cq.poll(left[writer])[1]:
            if done.status != e.IBV_WC_SUCCESS:
                sys.exit(f"{writer.name}: {STATUS[done.status]}")
            left[writer] -= 1
        if left[writer] == 0:
            del left[writer]
            seconds[writer] = time.monotonic() - started
for writer, reader in pairs:
    rate = MESSAGES * SIZE * 8 / seconds[writer] / 1e9
    print(f"{writer.name} to {reader.name}: {1e6 * seconds[writer]:.0f} us, {rate:.1f} Gbit/s")
