"""Runs UCX's own test over verbs: everything that ucx_perftest can do, from 1 byte to 64 MiB."""
import os
import re
import subprocess
import tempfile
import unittest

from client_server import needs_ucx_with_verbs, run_pair

SIZED = ["tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
         "stream_bw", "stream_lat", "ucp_am_lat", "ucp_am_bw"]
ATOMIC = ["ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"]
MIB = 1 << 20


def says_it_is_alone():
    """Returns whether this ucx_perftest refuses to run with a second process, whatever the transport."""
    result = subprocess.run(["ucx_perftest", "localhost", "-p", "1", "-t", "tag_lat"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                            env={**os.environ, "UCX_TLS": "tcp"})
    return "exactly 2 processes" in result.stdout


@needs_ucx_with_verbs
@unittest.skipIf(says_it_is_alone(), "this ucx_perftest says 'exactly 2 processes' without rocemu, too, "
                                     "as that of UCX 1.18 in Debian 13 does")
class Ucx(unittest.TestCase):
    def perftest(self, tests, **variables):
        """Runs the tests of a batch file, which has one line for each: name and arguments."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as batch:
            batch.write("\n".join(tests) + "\n")
            batch.flush()
            result = run_pair(["ucx_perftest", "-b", batch.name],
                              ["ucx_perftest", "localhost", "-b", batch.name],
                              after="cat /sys/class/infiniband/*/ports/1/counters/port_xmit_data",
                              env={**os.environ, **variables})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("Final:"), len(tests), result.stdout)
        return [int(line) * 4 for line in re.findall(r"^\d+$", result.stdout, re.MULTILINE)]

    def all_tests(self, transport):
        tests = [f"{kind}_{size} -t {kind} -s {size} -n {count} -w 1"
                 for size, count in ((1, 20), (8192, 20), (64 * MIB, 1)) for kind in SIZED]
        tests += [f"{kind}_{size} -t {kind} -s {size} -n 20 -w 1"
                  for size in (4, 8) for kind in ATOMIC]
        self.assertGreater(sum(self.perftest(tests, UCX_TLS=transport)), len(SIZED) * 64 * MIB)


class Rc(Ucx):
    def test_every_kind(self):
        self.all_tests("rc")


class Ud(Ucx):
    def test_every_kind(self):
        self.all_tests("ud")


class Rails(Ucx):
    def test_two_share_a_long_message(self):
        sent = self.perftest([f"tag -t tag_bw -s {64 * MIB} -n 4"], UCX_TLS="rc",
                             UCX_NET_DEVICES="rocemu0:1,rocemu1:1", UCX_MAX_RNDV_RAILS="2")
        self.assertEqual(len(sent), 2)
        for rail in sent:
            self.assertGreater(rail, 4 * 64 * MIB * 0.4)


if __name__ == "__main__":
    unittest.main()
