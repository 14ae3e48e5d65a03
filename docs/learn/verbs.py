"""Shared code of the lessons: a QP on rocemu0 and its peer on rocemu1, in one process, by pyverbs.

pyverbs is a thin layer on libibverbs: Side.__init__ and Side.connect show all that a program has to
do before it can send, in the order in which it does it in C.
"""
from types import SimpleNamespace

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

try:
    import pyverbs.enums as e
except ImportError:  # Newer pyverbs has the constants in one class for each enumeration.
    import pyverbs.libibverbs_enums

    e = SimpleNamespace()
    for kind in list(vars(pyverbs.libibverbs_enums).values()):
        vars(e).update(getattr(kind, "__members__", {}))

ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_REMOTE_ATOMIC | e.IBV_ACCESS_MW_BIND)
SIZE = 4096  # bytes of each side's buffer
STATUS = {getattr(e, name): name for name in dir(e)
          if name.startswith("IBV_WC_") and name.endswith(("_ERR", "SUCCESS"))}


class Side:
    """One end of a connection, with the objects that a program creates before it connects."""

    def __init__(self, device, cq_size=64, sends_signaled=True, size=SIZE):
        self.name = device
        self.context = Context(name=device)
        self.pd = PD(self.context)  # QPs can use only memory of their PD
        self.memory = MR(self.pd, size, ACCESS)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, cq_size, None, self.channel, 0)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                         sq_sig_all=int(sends_signaled),
                                         cap=QPCap(max_send_wr=64, max_recv_wr=64)))

    def connect(self, peer, timeout=14, retry_cnt=7, rnr_retry=7):
        """Moves the QP from RESET through INIT and RTR to RTS (lesson 8)."""
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        self.qp.to_init(attr)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer.qp.qp_num
        attr.rq_psn = attr.sq_psn = 100  # real programs choose random numbers
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 4
        attr.min_rnr_timer = 12  # 0.64 ms
        route = GlobalRoute(dgid=peer.context.query_gid(1, 0), sgid_index=0)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = timeout, retry_cnt, rnr_retry
        self.qp.to_rts(attr)

    def write_memory(self, text):
        self.memory.write(text.encode(), len(text), 0)

    def read_memory(self, length):
        return self.memory.read(length, 0).rstrip(b"\0").decode()

    def sge(self, length):
        return SGE(self.memory.buf, length, self.memory.lkey)

    def receive(self, wr_id, length=SIZE):
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[self.sge(length)]))

    def post(self, wr_id, opcode, length, remote=None, flags=0):
        work_request = SendWR(wr_id=wr_id, opcode=opcode, num_sge=1, sg=[self.sge(length)],
                              send_flags=flags)
        if remote is not None:
            work_request.set_wr_rdma(remote.memory.rkey, remote.memory.buf)
        self.qp.post_send(work_request)

    def send(self, wr_id, length, flags=0):
        self.post(wr_id, e.IBV_WR_SEND, length, flags=flags)

    def completions(self, count):
        """Polls until `count` completions have arrived, prints them and returns them."""
        found = []
        while len(found) < count:
            found += self.cq.poll(count - len(found))[1]
        for one in found:
            print(f"{self.name}: work request {one.wr_id} completes: {STATUS[one.status]}")
        return found


def pair(connect=True, timeout=14, retry_cnt=7, rnr_retry=7, **keywords):
    """Returns both sides, connected."""
    left, right = Side("rocemu0", **keywords), Side("rocemu1", **keywords)
    if connect:
        for one, other in ((left, right), (right, left)):
            one.connect(other, timeout, retry_cnt, rnr_retry)
    return left, right
