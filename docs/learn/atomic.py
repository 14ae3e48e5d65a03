#!/usr/bin/python3
"""Lesson 9: adds to a number in the peer's memory, then does so through a window, and invalidates the window."""
from pyverbs.mr import MW, MWBindInfo
from pyverbs.wr import SendWR
from verbs import e, pair


def add(left, right, wr_id, rkey):
    work_request = SendWR(wr_id=wr_id, opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, num_sge=1,
                          sg=[left.sge(8)])
    work_request.set_wr_atomic(rkey, right.memory.buf, 1, 0)
    left.qp.post_send(work_request)
    [done] = left.completions(1)
    if done.status == 0:
        print("it was", int.from_bytes(left.memory.read(8, 0), "little"))


left, right = pair()
right.memory.write((41).to_bytes(8, "little"), 8, 0)
add(left, right, 1, right.memory.rkey)
window = MW(right.pd, e.IBV_MW_TYPE_2)
bind = SendWR(wr_id=100, opcode=e.IBV_WR_BIND_MW, num_sge=0, sg=None)
info = MWBindInfo(right.memory, right.memory.buf, 8, e.IBV_ACCESS_REMOTE_ATOMIC)
bind.set_bind_wr(window, info)
right.qp.post_send(bind)
right.completions(1)
rkey = window.rkey
add(left, right, 2, rkey)
invalidate = SendWR(wr_id=101, opcode=e.IBV_WR_LOCAL_INV, num_sge=0, sg=None, imm_data=rkey)
right.qp.post_send(invalidate)
right.completions(1)
add(left, right, 3, rkey)
