"""Tests programs whose main thread ends before the others. Their memory and descriptors are those of the remaining
threads: pthread_exit(3) lets the process continue."""
import unittest

from rocemu import BIN, rocemu_run


class AProgramWithoutItsMainThread(unittest.TestCase):
    def test_transfers_registers_and_opens_as_before(self):
        for options in ((), ("--lockstep",), ("--exact-memory",), ("--sanitize",), ("--lockstep", "--sanitize")):
            with self.subTest(options=options):
                result = rocemu_run(BIN / "main_thread_ends", "uses", options=options)
                self.assertEqual((result.stdout, result.returncode), ("right\n", 0))


if __name__ == "__main__":
    unittest.main()
