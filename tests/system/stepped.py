"""Sends COUNT messages between two connected RC queue pairs of one process, each message after both completions
of the previous one: stepped.py events|polling COUNT"""
import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CompChannel, CQ
from pyverbs.device import Context
from verbs_enums import (IBV_ACCESS_LOCAL_WRITE, IBV_MTU_1024, IBV_QPT_RC, IBV_WC_SUCCESS,
                           IBV_WR_SEND)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

SIZE = 64


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    context = Context(name="rocemu0")
    pd = PD(context)
    mr = MR(pd, SIZE, IBV_ACCESS_LOCAL_WRITE)
    channel = CompChannel(context) if kind == "events" else None
    cq = CQ(context, 10, None, channel, 0)
    init = QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(10, 10, 1, 1, 0), sq_sig_all=1)
    qps = [QP(pd, init) for _ in range(2)]
    for qp, peer in ((qps[0], qps[1]), (qps[1], qps[0])):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp_num
        attr.path_mtu = IBV_MTU_1024
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0),
                              is_global=1, port_num=1)
        qp.to_rts(attr)
    sge = SGE(mr.buf, SIZE, mr.lkey)
    if channel:
        cq.req_notify()
    for number in range(count):
        qps[1].post_recv(RecvWR(wr_id=number, num_sge=1, sg=[sge]))
        qps[0].post_send(SendWR(wr_id=number, num_sge=1, sg=[sge], opcode=IBV_WR_SEND))
        done = 0
        while done < 2:
            if channel:
                channel.get_cq_event(cq)
                cq.req_notify()
            while True:
                polled, completions = cq.poll(4)
                if not polled:
                    break
                for completion in completions:
                    if completion.status != IBV_WC_SUCCESS:
                        sys.exit(f"completion with status {completion.status}")
                done += polled
    print(f"{count} messages")


main()
