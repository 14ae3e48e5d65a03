"""Runs all tests of qperf that use RDMA. (Debian's qperf is built without those for XRC.)"""
import unittest

from client_server import run_pair
from rocemu import free_port

TESTS = ["rc_bi_bw", "rc_bw", "rc_lat", "uc_bi_bw", "uc_bw", "uc_lat", "ud_bi_bw", "ud_bw", "ud_lat",
         "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat",
         "rc_rdma_write_poll_lat", "uc_rdma_write_bw", "uc_rdma_write_lat",
         "uc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap",
         "ver_rc_fetch_add"]


class Qperf(unittest.TestCase):
    def test_every_test(self):
        """Runs each test for a second, which is the shortest time that qperf accepts."""
        port = free_port()
        server = ["qperf", "-lp", port]
        client = ["qperf", "-lp", port, "-t", "1", "localhost", *TESTS, "quit"]
        result = run_pair(server, client, port=port)
        self.assertEqual(result.returncode, 0, result.stdout)
        for test in TESTS:
            self.assertIn(f"{test}:", result.stdout)
        self.assertNotIn("failed", result.stdout)


if __name__ == "__main__":
    unittest.main()
