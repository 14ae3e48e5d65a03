#!/usr/bin/python3
"""Lesson 2: posts the receive 2 ms after the message was sent. late.py [RNR_RETRY]"""
import sys
import time

from verbs import pair

left, right = pair(rnr_retry=int(sys.argv[1]) if len(sys.argv) > 1 else 7)
left.write_memory("hello")
left.send(wr_id=1, length=5)
time.sleep(0.002)
right.receive(wr_id=100)
[done] = left.completions(1)
if done.status == 0:
    right.completions(1)
