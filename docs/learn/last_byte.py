#!/usr/bin/python3
"""Lesson 11: waits for a message by polling its last byte in memory, which is wrong, or, with the argument
"fixed", for the completion of a receive."""
import os
import sys

from verbs import e, pair

TEXT = "a message of some words, from the first byte to the last one"

left, right = pair()
left.write_memory(TEXT)
if sys.argv[1:] == ["fixed"]:
    right.receive(100, 0)
    left.post(1, e.IBV_WR_RDMA_WRITE_WITH_IMM, len(TEXT), remote=right)
    right.completions(1)
else:
    left.post(1, e.IBV_WR_RDMA_WRITE, len(TEXT), remote=right)
    while right.memory.read(1, len(TEXT) - 1) == b"\0":
        os.sched_yield()
left.completions(1)
found = right.memory.read(len(TEXT), 0).decode().replace("\0", ".")
print("received:", found)
sys.exit(found != TEXT)
