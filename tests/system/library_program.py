#!/usr/bin/python3
"""Shows the effects of those scenarios that come with rocemu for which no stock program does:
library_program.py NAME

Uses pyverbs, with a QP on rocemu0 and its peer on rocemu1. Each function does what the scenario with
its name is about, and prints line by line what a program sees.
"""
import os
import sys

import verbs_enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 64
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_REMOTE_ATOMIC)
STATUS = {getattr(e, name): name for name in dir(e) if name.startswith("IBV_WC_") and
          name.endswith(("_ERR", "SUCCESS"))}


class Side:
    """One end of the connection: a context, a CQ with its channel, memory for 64 messages, and a
    QP."""

    def __init__(self, device, psn=0, with_srq=False):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, 128, None, self.channel, 0)
        self.mr = MR(self.pd, 64 * SIZE, ACCESS)
        self.srq = None
        if with_srq:
            self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1)))
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, srq=self.srq, sq_sig_all=1,
                          cap=QPCap(max_send_wr=64, max_recv_wr=64))
        self.psn = psn
        self.qp = QP(self.pd, init)

    def connect(self, peer, rnr_retry):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        self.qp.to_init(attr)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer.qp.qp_num
        attr.rq_psn = peer.psn
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 4
        attr.min_rnr_timer = 12
        route = GlobalRoute(dgid=peer.context.query_gid(1, 0), sgid_index=0)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.sq_psn = 14, 7, rnr_retry, self.psn
        self.qp.to_rts(attr)

    def sge(self, slot, length=SIZE):
        return SGE(self.mr.buf + slot * SIZE, length, self.mr.lkey)

    def receives(self, count):
        for slot in range(count):
            work_request = RecvWR(wr_id=101 + slot, num_sge=1, sg=[self.sge(slot)])
            (self.srq or self.qp).post_recv(work_request)

    def sends(self, count, flags=0):
        for slot in range(count):
            self.mr.write(bytes([slot]) * SIZE, SIZE, slot * SIZE)
            self.qp.post_send(SendWR(wr_id=slot + 1, opcode=e.IBV_WR_SEND, num_sge=1,
                                     sg=[self.sge(slot)], send_flags=flags))

    def completions(self, count):
        found = []
        while len(found) < count:
            found += self.cq.poll(count - len(found))[1]
        return found


def pair(rnr_retry=7, **keywords):
    left, right = Side("rocemu0", **keywords), Side("rocemu1", **keywords)
    left.connect(right, rnr_retry)
    right.connect(left, rnr_retry)
    return left, right


def tell(completions):
    for one in sorted(completions, key=lambda one: one.wr_id > 100):
        queue = "receive" if one.wr_id > 100 else "send"
        print(f"{queue} {one.wr_id % 100}: {STATUS[one.status]}")


def rnr_exceeded():
    left, right = pair(rnr_retry=2)
    right.receives(3)
    left.sends(3)
    tell(left.completions(3))
    tell(right.completions(2))


def duplicate_atomic():
    left, right = pair()
    right.mr.write((100).to_bytes(8, "little"), 8, 0)
    for number in range(5):
        work_request = SendWR(wr_id=number + 1, opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, num_sge=1,
                              sg=[left.sge(0, 8)])
        work_request.set_wr_atomic(right.mr.rkey, right.mr.buf, 1, 0)
        left.qp.post_send(work_request)
        tell(left.completions(1))
        print("it was", int.from_bytes(left.mr.read(8, 0), "little"))
    print("in the end", int.from_bytes(right.mr.read(8, 0), "little"))


def psn_wrap_loss():
    left, right = pair(psn=0xfffff0)
    right.receives(40)
    left.sends(40)
    tell(left.completions(40))
    right.completions(40)
    whole = all(right.mr.read(SIZE, slot * SIZE) == bytes([slot]) * SIZE for slot in range(40))
    print("all arrived, in order" if whole else "something is missing")


def flush_after_error():
    left, right = pair()
    right.receives(5)
    left.receives(1)
    left.sends(5)
    print("requester")
    tell(left.completions(6))
    print("responder")
    tell(right.completions(5))


def solicited_only_wakeups():
    left, right = pair()
    right.receives(12)
    right.cq.req_notify(True)
    for _ in range(3):
        left.sends(4, e.IBV_SEND_SOLICITED)
        right.channel.get_cq_event(right.cq)
        right.cq.ack_events(1)
        right.cq.req_notify(True)
        here = 0
        while found := right.cq.poll(16)[0]:
            here += found
        print("woken for", here)


def device_removal():
    left, right = pair()
    right.receives(20)
    left.sends(20)
    event = left.context.get_async_event()
    print("event", event.event_type == e.IBV_EVENT_DEVICE_FATAL and "DEVICE_FATAL")
    event.ack()
    try:
        left.context.query_port(1)
    except PyverbsRDMAError as error:
        print("ibv_query_port:", os.strerror(error.error_code))
    right.sends(1)
    found = []
    while not found:  # it comes after the completions of the messages that had arrived
        found = [one for one in right.cq.poll(16)[1] if one.wr_id == 1]
    tell(found)
    sys.stdout.flush()
    os._exit(0)  # the objects of the removed device cannot be destroyed


def srq_limit():
    left, right = pair(with_srq=True)
    right.receives(3)
    left.sends(3)
    tell(left.completions(3))
    event = right.context.get_async_event()
    print("event", event.event_type == e.IBV_EVENT_SRQ_LIMIT_REACHED and "SRQ_LIMIT_REACHED")
    event.ack()
    right.receives(1)  # replenished
    left.sends(1)
    tell(left.completions(1))


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
