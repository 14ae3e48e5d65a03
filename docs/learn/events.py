#!/usr/bin/python3
"""Lesson 5: sleeps until a completion arrives that the sender marked as solicited."""
from verbs import e, pair

left, right = pair()
for number in range(4):
    right.receive(wr_id=100 + number)
right.cq.req_notify(solicited_only=True)
for number in range(4):
    left.send(wr_id=1 + number, length=5, flags=e.IBV_SEND_SOLICITED if number == 3 else 0)
right.channel.get_cq_event(right.cq)
right.cq.ack_events(1)
print("rocemu1 is woken")
right.completions(4)
