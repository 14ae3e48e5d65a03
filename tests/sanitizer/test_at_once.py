"""Tests when reports are printed: as soon as their mistake is found, each completely, and in
lockstep at the end of the run."""
import os
import signal
import subprocess
import tempfile
import unittest

from support import LOCKSTEP, ROCEMU, program, rocemu_run

REPORT = "rocemu: error [mr-deregistered-in-use]: bad_end#1 deregistered memory region"
SUMMARY = "1 error in 1 rule; rocemu explain mr-deregistered-in-use"


class AtOnce(unittest.TestCase):
    def start(self, *command, options=()):
        process = subprocess.Popen(
            [ROCEMU, "run", "--private", "--sanitize", *options, "--", *map(str, command)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        return process

    def read_report(self, process):
        """Returns the lines of one report. Its last line is the clause of its rule."""
        lines = []
        while not lines or not lines[-1].endswith(")\n"):
            lines.append(process.stderr.readline())
            self.assertNotEqual(lines[-1], "", lines)
        return lines

    def test_a_report_is_printed_while_the_program_runs(self):
        process = self.start(program("bad_end"), "wait")
        lines = self.read_report(process)
        self.assertTrue(lines[0].startswith(REPORT), lines)
        # the report has two places in the program, and the correct way
        self.assertEqual(len(lines), 4)
        self.assertIsNone(process.poll())
        _, rest = process.communicate()
        self.assertEqual((process.returncode, rest), (3, SUMMARY + "\n"))

    def test_what_interrupts_the_run_does_not_interrupt_its_report(self):
        process = self.start(program("bad_end"), "wait")
        self.read_report(process)
        process.send_signal(signal.SIGTERM)
        process.wait()
        _, rest = process.communicate()
        self.assertEqual((process.returncode, rest), (128 + signal.SIGTERM, SUMMARY + "\n"))

    def test_a_run_that_is_killed_leaves_its_report_and_no_files(self):
        with tempfile.TemporaryDirectory(prefix="rocemu-") as scratch:
            report = os.path.join(scratch, "report.json")
            process = subprocess.Popen(
                [ROCEMU, "run", "--private", "--sanitize", "--sanitize-report", report, "--",
                 str(program("bad_end")), "wait"], env={**os.environ, "TMPDIR": scratch},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.read_report(process)
            process.kill()
            _, rest = process.communicate()
            self.assertIn(SUMMARY, rest)
            self.assertGreater(os.path.getsize(report), 0)
            self.assertEqual([name for name in os.listdir(scratch) if name != "report.json"], [])

    def test_repetitions_are_counted_in_the_end(self):
        result = rocemu_run(program("bad_end"), "repeat", "1000", options=("--sanitize",))
        self.assertEqual(result.stdout.count("[refused-limit]: "), 1, result.stdout)
        self.assertIn("was found 1000 times", result.stdout)

    def test_reports_of_processes_that_fail_together_are_not_mixed(self):
        count = 8
        command = f"for i in $(seq {count}); do {program('bad_end')} _exit & done; wait"
        result = rocemu_run("sh", "-c", command, options=("--sanitize",))
        lines = result.stdout.splitlines()
        self.assertEqual(sum(line.startswith("rocemu: error [mr-dereg") and "found" not in line
                             for line in lines), 1, result.stdout)
        self.assertIn(f"was found {count} times", result.stdout)

    def test_lockstep_prints_the_same_each_time(self):
        command = f"{program('bad_end')} _exit & {program('list_posted_again')}; wait"
        first, second = (rocemu_run("sh", "-c", command, options=("--sanitize", *LOCKSTEP)).stdout
                         for _ in range(2))
        self.assertIn("list-posted-again", first)
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
