"""Programs that wait for something that can never happen, and others that only seem to:
hanging.py NAME"""
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CompChannel, CQ
from pyverbs.device import Context
from verbs_enums import IBV_ACCESS_LOCAL_WRITE, IBV_MTU_1024, IBV_QPT_RC, IBV_WR_SEND
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

SIZE = 64
LONG = 3  # seconds, longer than rocemu takes to find a deadlock


class Side:
    """A queue pair with a separate CQ and completion channel."""

    def __init__(self, with_srq=False):
        self.context = Context(name="rocemu0")
        self.pd = PD(self.context)
        self.mr = MR(self.pd, SIZE, IBV_ACCESS_LOCAL_WRITE)
        before = descriptors()
        self.channel = CompChannel(self.context)
        self.channel_fd, = descriptors() - before
        self.cq = CQ(self.context, 10, None, self.channel, 0)
        self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=10))) if with_srq else None
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, srq=self.srq, sq_sig_all=1,
                          cap=QPCap(10, 0 if with_srq else 10, 1, 0 if with_srq else 1, 0))
        self.qp = QP(self.pd, init)
        self.sge = SGE(self.mr.buf, SIZE, self.mr.lkey)

    def connect(self, qp_num):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = qp_num
        attr.path_mtu = IBV_MTU_1024
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        attr.min_rnr_timer = 12
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=self.context.query_gid(1, 0), sgid_index=0),
                              is_global=1, port_num=1)
        self.qp.to_rts(attr)
        return self

    def recv(self):
        wr = RecvWR(wr_id=1, num_sge=1, sg=[self.sge])
        self.srq.post_recv(wr) if self.srq else self.qp.post_recv(wr)

    def send(self):
        self.qp.post_send(SendWR(wr_id=2, num_sge=1, sg=[self.sge], opcode=IBV_WR_SEND))

    def event(self):
        self.channel.get_cq_event(self.cq)


def descriptors():
    return {int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


def pair(with_srq=False):
    a, b = Side(), Side(with_srq)
    return a.connect(b.qp.qp_num), b.connect(a.qp.qp_num)


def two_processes(work):
    """Runs work(side, number) in a parent and its child, whose queue pairs are connected."""
    ours, theirs = socket.socketpair()
    number = 0 if os.fork() else 1
    (theirs if number == 0 else ours).close()
    link = ours if number == 0 else theirs
    side = Side()
    link.send(side.qp.qp_num.to_bytes(4, "little"))
    side.connect(int.from_bytes(link.recv(4), "little"))
    work(side, number, link)
    if number == 0:
        os.wait()


# ---- Deadlocks ----

def solicited_only():
    """The CQ is armed for solicited completions, but the message is not solicited."""
    a, b = pair()
    b.recv()
    b.cq.req_notify(solicited_only=True)
    a.send()
    b.event()


def not_armed_again():
    a, b = pair()
    b.cq.req_notify()
    b.recv()
    b.recv()
    a.send()
    b.event()
    a.send()
    b.event()


def both_receive():
    def work(side, *_):
        side.cq.req_notify()
        side.recv()
        side.event()
    two_processes(work)


def both_poll():
    def work(side, *_):
        side.recv()
        while side.cq.poll(1)[0] == 0:
            pass
    two_processes(work)


def condition():
    pair()
    never = threading.Condition()
    with never:
        print("ready", flush=True)
        never.wait()


def locks():
    _sides = pair()
    a, b, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def take(first, second):
        with first:
            both.wait()
            with second:
                pass
    other = threading.Thread(target=take, args=(b, a))
    other.start()
    take(a, b)


def srq_never_refilled():
    a, _b = pair(with_srq=True)
    a.cq.req_notify()
    a.send()
    a.event()


def join():
    """The main thread waits for another thread, which waits for a message that is never sent."""
    _a, b = pair()
    b.cq.req_notify()
    b.recv()
    other = threading.Thread(target=select.select, args=([b.channel_fd], [], []))
    other.start()
    other.join()


def own_pipe():
    """A child reads from a pipe, and only the child itself has the pipe's write end."""
    Side()
    reader, _writer = os.pipe()
    if os.fork() == 0:
        os.read(reader, 1)
        os._exit(0)
    os.wait()


def both_read_socket():
    def work(_side, _number, link):
        link.recv(1)
    two_processes(work)


def async_event():
    side = Side()
    side.context.get_async_event()


def epoll():
    a, b = pair()
    ours, _theirs = os.pipe()
    watch = select.epoll()
    for fd in (a.channel_fd, b.channel_fd, ours):
        watch.register(fd, select.EPOLLIN)
    b.recv()
    watch.poll()


def shared_semaphore():
    """A child and its parent wait for each other."""
    Side()
    never = multiprocessing.get_context("fork").Semaphore(0)
    if os.fork() == 0:
        never.acquire()
    os.wait()


def sigwait_beside_a_child():
    """Waits for the end of a child, as a shell does, while the child waits for a message."""
    _a, b = pair()
    if os.fork() == 0:
        os.read(b.channel_fd, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    signal.sigwait({signal.SIGCHLD})


# ---- Live ----

def ends():
    pair()


def exchange(a, b):
    b.cq.req_notify()
    b.recv()
    a.send()
    b.event()


def sleeps():
    sides = pair()
    time.sleep(LONG)
    exchange(*sides)


def sleeps_for_a_minute():
    sides = pair()
    time.sleep(60)
    exchange(*sides)


def computes():
    sides = pair()
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        pass
    exchange(*sides)


def reads_outside():
    sides = pair()
    sys.stdin.readline()
    exchange(*sides)


def condition_with_timeout():
    sides = pair()
    never = threading.Condition()
    with never:
        never.wait(LONG)
    exchange(*sides)


def polls_with_timeout():
    a, b = pair()
    b.cq.req_notify()
    select.poll().poll(LONG * 1000)
    exchange(a, b)


def polls_cq_for_a_time():
    a, b = pair()
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        b.cq.poll(1)
    exchange(a, b)


def alarm():
    sides = pair()
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, LONG)
    signal.pause()
    exchange(*sides)


def signal_from_outside():
    sides = pair()
    signal.signal(signal.SIGUSR1, lambda *_: None)
    print("pid", os.getpid(), flush=True)
    signal.pause()
    exchange(*sides)


def accepts():
    sides = pair()
    with socket.create_server(("127.0.0.1", 0)) as server:
        print("port", server.getsockname()[1], flush=True)
        server.accept()
    exchange(*sides)


def child_sleeps():
    sides = pair()
    print("ready", flush=True)
    subprocess.run(["sleep", str(LONG)], check=True)
    exchange(*sides)


def socket_with_timeout():
    sides = pair()
    here, _there = socket.socketpair()
    here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                    int(LONG).to_bytes(8, "little") + (500_000).to_bytes(8, "little"))
    try:
        here.recv(1)
    except BlockingIOError:
        pass
    exchange(*sides)


def srq_refilled_late():
    a, b = pair(with_srq=True)
    a.cq.req_notify()
    a.send()
    time.sleep(LONG)
    b.recv()
    a.event()


def writes_to_a_slow_reader():
    sides = pair()
    data = b"x" * 300_000
    while data:
        data = data[os.write(1, data):]
    exchange(*sides)


globals()[sys.argv[1]]()
