"""Opens a device, creates one object of each kind, prints their numbers as JSON, and runs a
command while they exist: hold_objects.py DEVICE COMMAND..."""
import json
import os
import subprocess
import sys

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.xrcd import XRCD, XRCDInitAttr
import verbs_enums as e

with Context(name=sys.argv[1]) as context:
    pd = PD(context)
    cq = CQ(context, 10)
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=10, max_sge=1)))
    mw = MW(pd, e.IBV_MW_TYPE_2)
    xrcd = XRCD(context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS,
                                      os.O_CREAT, -1))
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=4,
                                                                          max_recv_wr=4)))
    print(json.dumps({"lqpn": qp.qp_num, "rkey": mr.rkey, "lkey": mr.lkey,
                      "window_rkey": mw.rkey}), flush=True)
    sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
