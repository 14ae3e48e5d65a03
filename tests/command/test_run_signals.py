"""Signals while a command runs under `rocemu run`."""
import os
import signal
import subprocess
import time
import unittest

from support import PYTHON, ROCEMU, CommandTest

# Says when it is ready, then which signal it got, then whether its NIC is still there. Not by print,
# which cannot be interrupted by itself.
PROGRAM = """if True:
    import os, signal, subprocess, sys, time
    def report(number, frame):
        show = subprocess.run([sys.argv[1], "show"], stdout=subprocess.DEVNULL)
        os.write(1, f"{signal.Signals(number).name} {show.returncode}\\n".encode())
        sys.exit(5)
    for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"):
        signal.signal(getattr(signal, name), report)
    os.write(1, b"ready\\n")
    time.sleep(60)
"""


class Signals(CommandTest):
    def start_program(self, **keywords):
        process = self.start("run", "--", *PYTHON, PROGRAM, ROCEMU, **keywords)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_term_and_hup_are_passed_on(self):
        for name in ("SIGTERM", "SIGHUP"):
            process = self.start_program()
            process.send_signal(getattr(signal, name))
            output, errors = process.communicate()
            self.assertEqual((output, errors, process.returncode), (f"{name} 0\n", "", 5))

    def test_int_and_quit_are_left_to_the_command(self):
        process = self.start_program()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGQUIT)
        time.sleep(0.1)
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.communicate()[0], "SIGTERM 0\n")

    def test_ctrl_c_in_a_terminal_reaches_the_command_but_not_its_nic(self):
        for number in (signal.SIGINT, signal.SIGQUIT):
            process = self.start_program(start_new_session=True)
            os.killpg(process.pid, number)
            output, errors = process.communicate()
            self.assertEqual((output, errors), (f"{number.name} 0\n", ""))
            self.assertEqual(process.returncode, 5)

    def test_a_command_that_dies_of_ctrl_c_gives_130(self):
        process = self.start("run", "--", "sh", "-c", "echo ready; exec sleep 60",
                             start_new_session=True)
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)

    def test_term_before_the_command_starts_ends_it_all(self):
        # At whatever moment it comes: while the NIC starts, before or after the command does.
        for delay_ms in range(0, 40, 2):
            process = self.start("run", "--", "sleep", "60")
            time.sleep(delay_ms / 1000)
            process.terminate()
            process.communicate()
            self.assertIn(process.returncode, (-signal.SIGTERM, 128 + signal.SIGTERM))

    def test_a_stopped_and_continued_job_goes_on(self):
        process = self.start_program(start_new_session=True)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.killpg(process.pid, signal.SIGCONT)
        process.terminate()
        self.assertEqual(process.communicate()[0], "SIGTERM 0\n")

    def test_children_from_before_are_no_concern(self):
        # A shell that has a child and then becomes rocemu leaves the child to it.
        result = subprocess.run(["sh", "-c", f"sleep 0.05 & exec {ROCEMU} run -- sleep 0.2"],
                                env=self.environment, check=False)
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
