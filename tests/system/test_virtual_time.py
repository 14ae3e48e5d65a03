"""Tests lockstep: the virtual clock, and that each run is the same, however busy the machine is."""
import os
import pathlib
import re
import subprocess
import time
import unittest

from rocemu import (BIN, CM_PAIR, PAIR, ROCEMU, free_port, pingpong_pair, rocemu_run, run,
                    temporary_directory)

# ROCEMU_LOCKSTEP_RUNS=50 runs more.
RUNS = int(os.environ.get("ROCEMU_LOCKSTEP_RUNS", "4"))


class VirtualClock(unittest.TestCase):
    def test_the_most_patient_retries_are_over_in_a_second(self):
        start = time.monotonic()
        result = rocemu_run(BIN / "dead_peer", options=("--lockstep",))
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(result.returncode, 0, result.stdout)
        found = re.search(r"transport retry counter exceeded after ([\d.]+) s, "
                          r"by the device's clock (\d+) s", result.stdout)
        self.assertIsNotNone(found, result.stdout)
        # The clock of the program is that of the device.
        self.assertAlmostEqual(float(found[1]), int(found[2]), delta=1)
        # IBTA vol 1, 9.7.6.1.3: each of the 8 attempts takes from 4.096 us * 2^31, which is 8796 s, to 4 times that.
        self.assertGreaterEqual(int(found[2]), 8 * 8796)
        self.assertLessEqual(int(found[2]), 4 * 8 * 8797)

    def check_sentences(self, sentences):
        """Runs tests of man pages, which ctest runs on the real clock."""
        result = rocemu_run(BIN / "man_page_tests", f"--gtest_filter={sentences}",
                            options=("--lockstep",))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"PASSED  \] [1-9]")

    def test_completions_have_the_wall_clock_of_the_programs(self):
        self.check_sentences("PollCqEx.ReadsTimestampsOfTheDevicesClockAndTheWallClock")

    def test_attributes_addresses_and_ports_are_as_on_the_real_clock(self):
        self.check_sentences("QueryQp.*:AddressVector.*:Ports.*:OnDemand.TheDeviceOffersIt")

    def test_who_runs_without_verbs_is_named_and_not_waited_for(self):
        # The timeout is long, because on a busy machine a program that computes gets little processor time.
        result = rocemu_run("sh", "-c", "timeout 200 sh -c 'while :; do i=$((i+1)); done' & "
                                        "ibv_devinfo; kill $!; wait", options=("--lockstep",))
        self.assertIn("rocemu0", result.stdout)
        self.assertRegex(result.stdout, r"thread sh \(tid \d+\) of pid \d+.*without calling a verb|"
                                        r"without calling a verb: .*thread sh \(tid \d+\) of pid \d+")
        self.assertEqual(result.stdout.count("without calling a verb"), 1, result.stdout)

    def test_a_child_that_a_signal_stops_while_its_parent_waits(self):
        """SIGSTOP can arrive before the child joins the run, and while it sleeps; then another child lets it go on."""
        for before, seconds in (("", "[34]"), ("sleep 1; ", "[34]")):
            script = (f"sleep 3 & a=$!; {before}kill -STOP $a; (sleep 1; kill -CONT $a) & wait $a; "
                      'echo "status $? after $SECONDS s"')
            for _ in range(5):
                result = rocemu_run("bash", "-c", script, options=("--lockstep", "--timeout", "60s"))
                self.assertRegex(result.stdout, f"^status 0 after {seconds} s$")

    def test_a_stopped_child_is_killed(self):
        result = rocemu_run("bash", "-c", "sleep 3 & a=$!; kill -STOP $a; sleep 1; kill -KILL $a; wait $a; echo $? $SECONDS",
                            options=("--lockstep", "--timeout", "60s"))
        self.assertEqual(result.stdout.splitlines()[-1], "137 1")

    def test_perftest_by_the_connection_manager(self):
        """Its client connects at once after a message whose completion the server awaits before it listens again."""
        for program in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
                        "ib_atomic_bw", "ib_atomic_lat"):
            with self.subTest(program):
                port = free_port()
                tool = f"{program} -d rocemu0 -p {port} -n 50 -F -R"
                result = rocemu_run("sh", "-c", f"{tool} & sleep 1; {tool} 127.0.0.1 && wait $!",
                                    options=("--lockstep",))
                self.assertEqual(result.returncode, 0, result.stdout)


class Lockstep(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def record_again_and_again(self, *command):
        """Half of the runs are beside processes that use the processor. Yields each recording except the first,
        after it was compared with the first."""
        first = self.directory / "0"
        for number in range(RUNS):
            recording = self.directory / str(number)
            hogs = None
            if number % 2 == 1:
                hogs = subprocess.Popen(["stress-ng", "--quiet", "--cpu", "4"])
            try:
                result = rocemu_run(*command, options=("--lockstep", "--record", recording))
            finally:
                if hogs is not None:
                    hogs.terminate()
                    hogs.wait()
            self.assertEqual(result.returncode, 0, result.stdout)
            if number == 0:
                continue
            comparison = run(ROCEMU, "diff", first, recording)
            self.assertEqual(comparison.returncode, 0, f"run {number}: {comparison.stdout}")
            yield first, recording

    def test_a_pingpong(self):
        for _ in self.record_again_and_again(*pingpong_pair("-n", "30")):
            pass

    def test_a_bandwidth_test(self):
        port = str(free_port())
        tool = ["ib_send_bw", "-d", "rocemu0", "-p", port, "-n", "1000", "-s", "4096", "-F"]
        for _ in self.record_again_and_again(*PAIR, port, *tool, "--", *tool, "localhost"):
            pass

    def test_four_threads_with_a_queue_pair_each(self):
        for _ in self.record_again_and_again(BIN / "four_threads"):
            pass

    def test_a_program_is_gone_before_the_next_one_comes(self):
        # Before the shell starts the second program, it computes for a while, or not at all.
        for name, count in (("at-once", 0), ("later", 100_000)):
            pause = f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); done"
            result = rocemu_run("sh", "-c", f"ibv_devinfo; {pause}; ibv_devinfo",
                                options=("--lockstep", "--record", self.directory / name))
            self.assertEqual(result.returncode, 0, result.stdout)
        comparison = run(ROCEMU, "diff", self.directory / "at-once", self.directory / "later")
        self.assertEqual(comparison.returncode, 0, comparison.stdout)

    def test_rping_to_the_byte(self):
        port = str(free_port())
        rping = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "20"]
        for first, again in self.record_again_and_again(*CM_PAIR, port, *rping, "-s", "--", *rping,
                                                        "-c"):
            self.assertEqual((first / "trace.pcap").read_bytes(),
                             (again / "trace.pcap").read_bytes(), str(again))


class GoldenRuns(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.golden = pathlib.Path(directory.name) / "golden"

    def run_it(self, *options, messages="10"):
        return rocemu_run(*pingpong_pair("-n", messages),
                          options=("--lockstep", "--expect", self.golden, *options))

    def test_a_run_as_expected_succeeds_and_another_fails(self):
        missing = self.run_it()
        self.assertEqual(missing.returncode, 2, missing.stdout)
        self.assertIn("add --update", missing.stdout)
        self.assertEqual(self.run_it("--update").returncode, 0)
        same = self.run_it()
        self.assertEqual(same.returncode, 0, same.stdout)
        other = self.run_it(messages="11")
        self.assertEqual(other.returncode, 1, other.stdout)
        self.assertIn("the recordings first differ at line", other.stdout)
        self.assertIn("--update", other.stdout)
        self.assertEqual(self.run_it("--update", messages="11").returncode, 0)
        self.assertEqual(self.run_it(messages="11").returncode, 0)


if __name__ == "__main__":
    unittest.main()
