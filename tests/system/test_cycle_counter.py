"""Tests the processor's cycle counter in lockstep: it counts 10^9 cycles per second of virtual time, and programs
otherwise behave as they do outside."""
import os
import pathlib
import re
import shutil
import signal
import time
import unittest

from rocemu import BIN, PAIR, free_port, has_virtual_cycles, rocemu_run, temporary_directory

PROGRAM = str(BIN / "cycle_counter")
STATIC = str(BIN / "cycle_counter_static")
LIKE_GO = str(BIN / "cycle_counter_like_go")
HOUR = 3600 * 10 ** 9  # cycles
SOON = 10 ** 6         # the number of cycles that calls may take in addition to a sleep


@unittest.skipIf(has_virtual_cycles(), "reads of this machine's counter fault")
@unittest.skipUnless(os.path.exists(PROGRAM), "for x86-64")
class RealCycleCounter(unittest.TestCase):
    """Tests machines, and sanitizers of the compiler, that do not allow virtual time in the counter."""

    def test_it_counts_real_time(self):
        result = rocemu_run(PROGRAM, "hour", options=("--lockstep", "--timeout", "200"))
        self.assertEqual(result.returncode, 0, result.stdout)
        [cycles] = re.findall(r"^rdtsc (\d+)$", result.stdout, re.M)
        self.assertLess(int(cycles), HOUR)

    @unittest.skipIf("address" in os.environ.get("ROCEMU_SANITIZE", ""), "AddressSanitizer handles the fault")
    def test_faults_are_the_programs_own(self):
        result = rocemu_run(PROGRAM, "unhandled", options=("--lockstep", "--timeout", "200"))
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV, result.stdout)


@unittest.skipIf(os.environ.get("ROCEMU_SANITIZE", ""), "programs with a compiler's sanitizer keep the real counter")
@unittest.skipUnless(has_virtual_cycles(), "reads of this machine's counter do not fault")
class CycleCounter(unittest.TestCase):
    def said_by(self, *command, status=0):
        """Runs the command in lockstep, and returns the values that it prints, by name."""
        result = rocemu_run(*command, options=("--lockstep", "--timeout", "200"))
        self.assertEqual(result.returncode, status, result.stdout)
        said = {}
        for name, value in re.findall(r"^(\w+) (\d+)$", result.stdout, re.M):
            said.setdefault(name, []).append(int(value))
        return said

    def test_it_counts_the_nanoseconds_of_an_hour(self):
        said = self.said_by(PROGRAM, "hour")
        for instruction in ("rdtsc", "rdtscp"):
            [cycles] = said[instruction]
            self.assertGreaterEqual(cycles, HOUR)
            self.assertLess(cycles, HOUR + SOON)
        self.assertEqual(said["processor"], [0])

    def test_a_library_measures_it_while_it_is_loaded(self):
        [cycles] = self.said_by(str(BIN / "cycle_rate"), "")["rate"]  # cycles in a millisecond
        self.assertAlmostEqual(cycles, 10 ** 6, delta=10 ** 4)

    def test_a_loop_that_reads_nothing_else_ends(self):
        begin = time.monotonic()
        self.said_by(PROGRAM, "spin-minute")
        self.assertLess(time.monotonic() - begin, 50)

    def test_a_program_has_its_own_faults(self):
        """sigaction(2), siglongjmp(3). After the program has left a signal handler, the counter still has virtual
        time, or the program's loop would not end. A fault that occurs deeper in the stack than the previous one does
        not count as a fault of the handler."""
        said = self.said_by(PROGRAM, "faults")
        self.assertEqual(said["own"], [1])
        self.assertEqual(said["faults"], [4])  # three faults, and one signal that is sent
        if "address" not in os.environ.get("ROCEMU_SANITIZE", ""):  # AddressSanitizer has its own handler
            self.assertEqual(said["default"], [1])

    def test_a_fault_in_a_handler_ends_the_program(self):
        # sigaction(2): the signal is blocked while its handler runs. signal(7): a fault then makes the kernel end the
        # program.
        self.assertEqual(self.said_by(PROGRAM, "nested", status=128 + signal.SIGSEGV), {"handler": [1]})

    @unittest.skipIf("address" in os.environ.get("ROCEMU_SANITIZE", ""), "AddressSanitizer handles the fault")
    def test_a_fault_without_handler_ends_the_program(self):
        self.said_by(PROGRAM, "unhandled", status=128 + signal.SIGSEGV)

    def test_threads_and_handlers_that_block_all_signals_read_it(self):
        self.assertEqual(self.said_by(PROGRAM, "masks"), {"handler": [1], "end": [1]})

    def test_programs_that_it_executes_run(self):
        """PR_SET_TSC survives execve(2), and the dynamic loader reads the counter. A static program has no signal
        handler."""
        for other in filter(os.path.exists, (PROGRAM, STATIC)):
            with self.subTest(other):
                said = self.said_by(PROGRAM, "execute", other)
                failed = 9 << 8  # the status of a child that could not find the program
                self.assertEqual(said["status"], [0, 0, 0, 0, 0, 0, failed, 0])
                self.assertEqual((said["system"], said["popen"]), ([0], [0]))

    def test_a_program_with_go_keeps_the_real_counter(self):
        # By the program's clock, an hour of cycles takes no time.
        [cycles] = self.said_by(LIKE_GO, "hour")["rdtsc"]
        self.assertLess(cycles, HOUR)

    @unittest.skipIf(os.environ.get("ROCEMU_SANITIZE", ""), "valgrind runs no sanitizers")
    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    def test_valgrind_reads_it_for_the_program(self):
        self.said_by("valgrind", "-q", "--error-exitcode=9", PROGRAM, "read")

    def test_latencies_that_perftest_measures_are_those_of_the_link(self):
        """docs/design/time.md: a frame takes 1 us in lockstep, and everything else no time."""
        outputs = []
        for _ in range(2):
            port = str(free_port())
            command = ["ib_send_lat", "-d", "rocemu0", "-p", port, "-n", "200"]
            with temporary_directory() as directory:
                files = [pathlib.Path(directory, side) for side in ("server", "client")]
                result = rocemu_run(*PAIR, "--outputs", *files, port, *command, "--", *command, "localhost",
                                    options=("--lockstep",))
                self.assertEqual(result.returncode, 0, result.stdout)
                outputs.append([file.read_text() for file in files])
        for first, second in zip(*outputs):
            self.assertEqual(first, second)
            size, count, *latencies = first.split("#bytes")[1].splitlines()[1].split()
            self.assertEqual((size, count), ("2", "200"))
            self.assertEqual(latencies, ["1.00"] * 4 + ["0.00"] + ["1.00"] * 2)


if __name__ == "__main__":
    unittest.main()
