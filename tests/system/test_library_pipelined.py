"""Runs each scenario that comes with rocemu with five stock programs that keep much work outstanding, on the
virtual clock: each program recovers, or fails, as the scenario's text says."""
import json
import re
import sys
import unittest

from library_programs import library
from rocemu import HERE, free_port, rocemu_run, side_by_side


LONGEST, TO_HANG = "3600", "3"  # seconds of virtual time: limit of a run, and time after which a side hangs


def two_sides(kind, port, server, client):
    return [kind, port, *server.split(), "--", *client.split()]


def over_tcp(command):
    port = str(free_port())
    return two_sides("tcp", port, f"{command} -p {port} -d rocemu0",
                     f"{command} -p {port} -d rocemu1 localhost")


PROGRAMS = {
    "ibv_rc_pingpong": lambda: over_tcp("ibv_rc_pingpong -g 0 -n 50"),
    "ib_read_bw": lambda: over_tcp("ib_read_bw -F -s 65536 -n 200 -o 16"),
    "ib_write_bw": lambda: over_tcp("ib_write_bw -F -s 65536 -n 200 -t 64"),
    "ib_send_bw": lambda: over_tcp("ib_send_bw -F -s 65536 -n 100"),
    "rping": lambda: two_sides("cm", "7174", "rping -s -a 127.0.0.1 -V -C 20",
                               "rping -c -a 127.0.0.1 -I 127.0.0.2 -V -C 20"),
}
PINGPONG, READ, WRITE, SEND, RPING = PROGRAMS

# The results that are not a recovery: a text in the output of one side, or that both sides wait forever. In all
# other cases, the programs recover.
HANGS = "neither side ends"
RETRY_EXC = r"status (transport retry counter exceeded \(12\)|12\b)"
REM_INV_REQ = r"status (remote invalid request error \(9\)|9\b)"
REM_ACCESS = r"status 10\b"
REM_OP = r"status (remote operation error \(11\)|11\b)"
LOC_PROT = r"status (local protection error \(4\)|4\b)"
NO_MEMORY = r"Couldn't register MR|ailed to create (mr|MR)|reg_mr failed"
OVERRUN = r"(poll|Poll)[\w ]* CQ failed -1"
NO_POST = r"ouldn't post send|ailed to post|post send error 12"
KILLED_PEER_OF_ONE_THAT_WAITS = r"server: \nclient: "
FAILS = {
    "cm-reject": {RPING: "RDMA_CM_EVENT_REJECTED, error 28"},
    "cm-timeout": {RPING: "RDMA_CM_EVENT_UNREACHABLE, error -110"},
    "stale-connection": {RPING: "RDMA_CM_EVENT_REJECTED, error 10"},
    # rping's server only waits for completion events, so it does not notice the overrun. rping's client gets the
    # error of its retries.
    "cq-overrun": {**dict.fromkeys(PROGRAMS, OVERRUN), RPING: RETRY_EXC},
    # The client's device is removed while it sends, so none of its requests completes.
    "device-removal": {PINGPONG: RETRY_EXC, READ: HANGS, WRITE: HANGS, SEND: HANGS,
                       RPING: RETRY_EXC},
    "flush-after-error": dict.fromkeys(PROGRAMS, REM_INV_REQ),
    "local-protection-error": dict.fromkeys(PROGRAMS, LOC_PROT),
    # The scenario kills a program at a completion, and READs and WRITEs cause none at the server.
    "killed-peer": {PINGPONG: KILLED_PEER_OF_ONE_THAT_WAITS, SEND: RETRY_EXC,
                    RPING: "client DISCONNECT EVENT"},
    "post-send-enomem": dict.fromkeys(PROGRAMS, NO_POST),
    "remote-access-error": {READ: REM_ACCESS, WRITE: REM_ACCESS, RPING: REM_ACCESS},
    "remote-operational-error": dict.fromkeys(PROGRAMS, REM_OP),
    "retry-exceeded": dict.fromkeys(PROGRAMS, RETRY_EXC),
    # All these programs have an rnr_retry of 7, which means no limit.
    "rnr-exceeded": {PINGPONG: HANGS, SEND: HANGS, RPING: HANGS},
    "verb-enomem": dict.fromkeys(PROGRAMS, NO_MEMORY),
}


class Pipelined(unittest.TestCase):
    def check(self, program, scenario):
        wanted = FAILS.get(scenario, {}).get(program)
        result = rocemu_run(sys.executable, HERE / "two_sides.py",
                            TO_HANG if wanted is HANGS else LONGEST, *PROGRAMS[program](),
                            options=("--lockstep", "--scenario", scenario))
        said = [line for line in result.stdout.splitlines() if line.startswith('{"server"')]
        self.assertEqual(len(said), 1, result.stdout)
        sides = json.loads(said[0])
        statuses = {side: sides[side]["status"] for side in sides}
        output = "\n".join(f"{side}: {sides[side]['output']}" for side in sides)
        story = f"{program} with {scenario}: {statuses}\n{output}\n{result.stdout}"
        if wanted is None:
            self.assertEqual(statuses, {"server": 0, "client": 0}, story)
        elif wanted is HANGS:
            self.assertEqual(statuses, {"server": None, "client": None}, story)
        else:
            self.assertTrue(any(statuses.values()), story)
            self.assertRegex(output, re.compile(wanted), story)


def add_test(program):
    def test(self):
        side_by_side(self, lambda scenario: self.check(program, scenario), library(), at_once=2)
    setattr(Pipelined, f"test_{program}", test)


for each in PROGRAMS:
    add_test(each)


if __name__ == "__main__":
    unittest.main()
