"""Tests the arithmetic of scripts/bench, without measuring."""
import contextlib
import io
import pathlib
import sys
import unittest
from unittest import mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = SOURCE / "tests" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from bench import parts, ranks, verdicts  # noqa: E402


class Ranks(unittest.TestCase):
    def test_divides_the_memory_by_ranks_and_qps(self):
        shown = {"fabric": {"devices": [{"qps": [{}] * 30}, {"qps": [{}] * 2}]}}
        lines = "rocemud\nVmPeak: 9999 kB\nVmHWM:\t   65536 kB\nVmRSS: 5 kB\nRss: 7 kB\nPss:               32768 kB\n"
        figures = ranks.memory_figures(shown, lines, 8)
        self.assertEqual(figures, {"QPs": 32, "MiB RSS at most": 64, "MiB PSS": 32, "KiB RSS a rank": 8192,
                                   "KiB PSS a rank": 4096, "KiB RSS a QP": 2048, "KiB PSS a QP": 1024})

    def test_refuses_the_memory_of_another_process(self):
        with self.assertRaisesRegex(ranks.Failed, "not rocemud"):
            ranks.memory_figures({}, "bash\n", 8)

    def test_reads_the_times_of_the_program(self):
        self.assertEqual(ranks.parse_all_to_all("init 1.500 s\nfirst 9.000 ms, each 2.250 ms\ntotal 3.250 s\n"),
                         {"seconds": 3.25, "s in MPI_Init": 1.5, "ms an exchange": 2.25})
        with self.assertRaisesRegex(ranks.Failed, "did not print its times:\nsomething else"):
            ranks.parse_all_to_all("something else")

    def test_says_what_is_missing_and_skips(self):
        with mock.patch("shutil.which", return_value=None), contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(parts.many_ranks(1), {})
        self.assertIn("skipped, since PATH has no mpirun.openmpi and no mpicc.openmpi; install openmpi-bin", said.getvalue())

    def test_has_no_verdict_on_what_was_skipped(self):
        self.assertEqual(verdicts.ratios({"many_ranks": {}}), [])

    def test_judges_64_ranks(self):
        figures = {f"64 ranks, {way}": {"seconds": time} for way, time in (("rocemu", 9.0), ("UCX over TCP", 5.0))}
        self.assertEqual(verdicts.ratios({"many_ranks": figures}), [
            {"name": "time of 64 MPI ranks to UCX over TCP", "value": 1.8, "limit": "<= 1.5", "holds": False}])


if __name__ == "__main__":
    unittest.main()
