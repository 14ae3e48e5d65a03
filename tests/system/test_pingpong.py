"""Runs the distribution's ibv_rc_pingpong, in two processes, with every relevant option."""
import unittest

from rocemu import pingpong_pair, rocemu_run


class Pingpong(unittest.TestCase):
    def check(self, *arguments, iterations=1000, size=4096, **devices):
        result = rocemu_run(*pingpong_pair(*arguments, **devices))
        self.assertEqual(result.returncode, 0, result.stdout)
        # Each side prints how many bytes it exchanged, and how fast.
        self.assertEqual(result.stdout.count(f"{2 * size * iterations} bytes in"), 2, result.stdout)
        self.assertEqual(result.stdout.count(f"{iterations} iters in"), 2, result.stdout)

    def test_defaults_on_one_device(self):
        self.check()

    def test_defaults_between_two_devices(self):
        self.check(client_device="rocemu1")

    def test_without_a_gid_index(self):
        self.check(gid=False)
        self.check(gid=False, client_device="rocemu1")

    def test_over_ipv6(self):
        self.check("-g", "1", gid=False)

    def test_events(self):
        self.check("-e")
        self.check("-e", client_device="rocemu1")

    def test_data_is_right(self):
        self.check("-c")
        self.check("-c", "-s", "1000000", "-n", "50", size=1000000, iterations=50,
                   client_device="rocemu1")

    def test_new_send_interface(self):
        self.check("-N")
        self.check("-N", "-e", "-c")

    def test_sizes(self):
        for size in (1, 4096, 1000000):
            with self.subTest(size=size):
                self.check("-c", "-s", str(size), "-n", "200", size=size, iterations=200)

    def test_path_mtus(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            with self.subTest(mtu=mtu):
                self.check("-c", "-m", str(mtu), "-s", "10000", size=10000)

    def test_receive_depths(self):
        for depth in (1, 500):
            with self.subTest(depth=depth):
                self.check("-r", str(depth))
                self.check("-r", str(depth), "-e")

    def test_a_hundred_thousand_iterations(self):
        self.check("-n", "100000", iterations=100000)


if __name__ == "__main__":
    unittest.main()
