"""Runs the distribution's other pingpongs: UC, UD, with an SRQ, and XRC."""
import unittest

from rocemu import pingpong_pair, rocemu_run


class Pingpong:
    """The common checks: each side prints how many bytes it exchanged, and how often."""
    program = ""
    default_size = 4096

    def check(self, *arguments, size=None, iterations=1000, **devices):
        size = size or self.default_size
        for client_device in ("rocemu0", "rocemu1"):
            devices["client_device"] = client_device
            with self.subTest(arguments=arguments, client_device=client_device):
                result = rocemu_run(*pingpong_pair(*arguments, program=self.program, **devices))
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertEqual(result.stdout.count(f"{2 * size * iterations} bytes in"), 2,
                                 result.stdout)
                self.assertEqual(result.stdout.count(f"{iterations} iters in"), 2, result.stdout)
                self.assertNotIn("invalid data", result.stdout)

    def check_size(self, size, *arguments, iterations=100):
        self.check("-s", size, "-n", iterations, *arguments, size=size, iterations=iterations)

    def test_defaults(self):
        self.check()

    def test_without_a_gid_index(self):
        self.check(gid=False)

    def test_over_ipv6(self):
        self.check("-g", 1, gid=False)

    def test_events(self):
        self.check("-e")


class UcPingpong(Pingpong, unittest.TestCase):
    program = "ibv_uc_pingpong"

    def test_sizes(self):
        for size in (1, 4096, 1000000):
            self.check_size(size, "-c")

    def test_path_mtus(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            self.check_size(10000, "-c", "-m", mtu)

    def test_receive_depths(self):
        for depth in (1, 500):
            self.check("-r", depth)
            self.check("-r", depth, "-e")


class UdPingpong(Pingpong, unittest.TestCase):
    program = "ibv_ud_pingpong"
    default_size = 1024  # the real default, although --help prints another one

    def test_sizes(self):
        """Tests sizes up to the port's MTU, since a datagram is one packet."""
        for size in (1, 2047, 4096):
            self.check_size(size, "-c")
            self.check_size(size, "-e")


class SrqPingpong(Pingpong, unittest.TestCase):
    program = "ibv_srq_pingpong"

    def test_sizes(self):
        for size in (1, 4096, 1000000):
            self.check_size(size, "-c")

    def test_numbers_of_queue_pairs(self):
        for number in (1, 2, 128):
            self.check("-q", number)
            self.check("-q", number, "-e")

    def test_path_mtus(self):
        for mtu in (256, 4096):
            self.check_size(10000, "-c", "-m", mtu)

    def test_receive_depths(self):
        for depth in (16, 2000):
            self.check("-r", depth)


class XsrqPingpong(unittest.TestCase):
    """Runs ibv_xsrq_pingpong, which sends each message back and checks its bytes itself."""

    def check(self, *arguments, gid=True):
        for client_device in ("rocemu0", "rocemu1"):
            with self.subTest(arguments=arguments, client_device=client_device):
                result = rocemu_run(*pingpong_pair(*arguments, program="ibv_xsrq_pingpong", gid=gid,
                                                   client_device=client_device))
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertNotRegex(result.stdout, "(?i)fail|error|couldn't")

    def test_defaults(self):
        self.check()

    def test_events(self):
        self.check("-e")

    def test_sizes(self):
        for size in (1, 4096, 1000000):
            self.check("-s", size)
            self.check("-s", size, "-e")

    def test_path_mtus(self):
        for mtu in (256, 4096):
            self.check("-s", 10000, "-m", mtu)

    def test_many_exchanges(self):
        self.check("-n", 500)


if __name__ == "__main__":
    unittest.main()
