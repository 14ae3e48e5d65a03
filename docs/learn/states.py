#!/usr/bin/python3
"""Lesson 8: moves a QP through its states to the error state, and back."""
from pyverbs.qp import QPAttr
from verbs import e, pair

NAMES = {getattr(e, name): name[8:] for name in dir(e) if name.startswith("IBV_QPS_")}


def state(side):
    return NAMES[side.qp.query(e.IBV_QP_STATE)[0].qp_state]


left, right = pair(connect=False)
print("created:", state(left))
left.connect(right)
right.connect(left)
print("connected:", state(left))
right.receive(wr_id=100, length=4)  # too short for the message
left.send(wr_id=1, length=5)
left.send(wr_id=2, length=5)
left.completions(2)
right.completions(1)
print("after the error:", state(left), "and", state(right))
attr = QPAttr(port_num=1)
attr.qp_state = e.IBV_QPS_RESET
for one in (left, right):
    one.qp.modify(attr, e.IBV_QP_STATE)
print("reset:", state(left))
left.connect(right)
right.connect(left)
right.receive(wr_id=101)
left.send(wr_id=3, length=5)
left.completions(1)
right.completions(1)
