#!/usr/bin/python3
"""Lesson 6: causes 6 completions on a CQ for 4. overrun.py [CQ_SIZE]"""
import sys
import time

from verbs import e, pair

EVENT = {getattr(e, name): name for name in dir(e) if name.startswith("IBV_EVENT_")}
size = int(sys.argv[1]) if len(sys.argv) > 1 else 4
left, right = pair(cq_size=size)
for number in range(6):
    right.receive(wr_id=100 + number)
for number in range(6):
    left.send(wr_id=1 + number, length=5)
time.sleep(0.1)  # no thread polls meanwhile
if size < 6:
    event = right.context.get_async_event()
    print("rocemu1:", EVENT[event.event_type])
    event.ack()
else:
    left.completions(6)
