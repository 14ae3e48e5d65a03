"""Stock programs of rdma-core and perftest: no report of severity error."""
import shutil
import unittest

from support import BIN, LOCKSTEP, free_port, sanitized, side_by_side

PINGPONGS = ("ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_uc_pingpong", "ibv_ud_pingpong",
             "ibv_srq_pingpong")
PERFTEST = ("ib_send_bw", "ib_send_bw -c UD", "ib_send_lat", "ib_write_bw", "ib_write_lat",
            "ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat")


def pair(server, client, port):
    """Returns a shell command: a server, and a client once the server listens."""
    return f"{server} & {BIN}/rocemu wait --listening {port} && {client}; wait $!"


def both(program):
    port = free_port()
    return pair(f"{program} -p {port}", f"{program} -p {port} 127.0.0.1", port)


class Stock(unittest.TestCase):
    def check(self, command, options=LOCKSTEP):
        name = command.split()[0]
        if shutil.which(name) is None:
            self.skipTest(f"{name} is not installed")
        result, reports = sanitized("sh", "-c", command, options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([one for one in reports if one["severity"] == "error"], [])

    def test_pingpongs(self):
        side_by_side(self, self.check, [both(f"{one} -g 0 -n 100") for one in PINGPONGS])

    def test_perftest(self):
        # It measures the processor's clock, which lockstep has none of.
        def check(command):
            self.check(command, options=())
        side_by_side(self, check, [both(f"{one} -x 0 -n 200") for one in PERFTEST],
                     at_once=2)

    def test_rping(self):
        self.check(pair("rping -s -a 127.0.0.1 -C 5", "rping -c -a 127.0.0.1 -C 5", 7174))


if __name__ == "__main__":
    unittest.main()
