#!/usr/bin/python3
"""Lesson 10: copies a text in pieces; the program has a bug. transfer.py [fixed]"""
import sys

from verbs import STATUS, e, pair

PIECES = ["It ", "is ", "all ", "there."]
left, right = pair()
copied = ""
for number, piece in enumerate(PIECES):
    left.write_memory(piece)
    left.post(number, e.IBV_WR_RDMA_WRITE, len(piece), remote=right)
    done = []
    while not done:
        done = left.cq.poll(1)[1]
    if "fixed" in sys.argv and done[0].status != e.IBV_WC_SUCCESS:
        sys.exit(f"piece {number}: {STATUS[done[0].status]}")
    copied += right.read_memory(len(piece))
print("copied:", copied)
