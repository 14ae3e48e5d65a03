#!/usr/bin/python3
"""Lesson 3: writes into the peer's memory and reads from it; the peer's program does nothing."""
from verbs import e, pair

left, right = pair()
left.write_memory("written by rocemu0")
left.post(1, e.IBV_WR_RDMA_WRITE, 18, remote=right)
left.completions(1)
print("rocemu1's memory:", right.read_memory(18))
right.write_memory("changed by rocemu1")
left.post(2, e.IBV_WR_RDMA_READ, 18, remote=right)
left.completions(1)
print("rocemu0's memory:", left.read_memory(18))
