"""Tests signals while a command runs under `rocemu run`."""
import os
import signal
import subprocess
import time
import unittest

from support import (PYTHON, ROCEMU, TIMEOUT, CommandTest, Terminal, processes_naming, sleepers,
                     wait_for)

# Reports when it is ready, then which signal it got, and then whether its NIC still exists. It does not use print(),
# which must not be interrupted by another print(). It sleeps for short times only, because if a signal arrives just
# before a sleep, Python runs the handler after the sleep.
PROGRAM = """if True:
    import os, signal, subprocess, sys, time
    def report(number, frame):
        show = subprocess.run([sys.argv[1], "show"], stdout=subprocess.DEVNULL)
        os.write(1, f"{signal.Signals(number).name} {show.returncode}\\n".encode())
        sys.exit(5)
    for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"):
        signal.signal(getattr(signal, name), report)
    os.write(1, b"ready\\n")
    for _ in range(600):
        time.sleep(0.1)
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

    def test_int_and_quit_sent_to_rocemu_alone_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGQUIT):
            process = self.start_program()
            process.send_signal(number)
            output, errors = process.communicate()
            self.assertEqual((output, errors, process.returncode), (f"{number.name} 0\n", "", 5))

    def test_ctrl_c_in_a_terminal_reaches_the_command_once_and_not_its_nic(self):
        for key, name in ((b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")):
            with Terminal([ROCEMU, "run", "--", *PYTHON, PROGRAM, ROCEMU], self.environment) as terminal:
                terminal.read_until("ready")
                terminal.write(key)
                said, status = terminal.finish()
                self.assertEqual((said.count(f"{name} 0"), status), (1, 5), said)

    def test_a_command_that_dies_of_ctrl_c_gives_130(self):
        process = self.start("run", "--", "sh", "-c", "echo ready; exec sleep 60",
                             start_new_session=True)
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)

    def test_term_before_the_command_starts_ends_it_all(self):
        # The signal can arrive at any time: while the NIC starts, or before or after the command starts.
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
        # The shell has a child and then becomes rocemu, so rocemu has a child that it did not start.
        result = subprocess.run(["sh", "-c", f"sleep 0.05 & exec {ROCEMU} run -- sleep 0.2"],
                                env=self.environment, check=False)
        self.assertEqual(result.returncode, 0)
        other = subprocess.run(
            ["sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $!; exec {ROCEMU} run -- true"],
            env=self.environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.assertEqual((other.returncode, other.stderr), (0, ""))
        os.kill(int(other.stdout), signal.SIGKILL)


# Commands whose programs a signal reaches only indirectly. SLEEP stands for a program that only a signal ends, with any
# clock.
STOPPED = "a stopped one"
HARD_TO_REACH = {
    "a command behind a shell": "SLEEP; true",
    "a background job, which ignores SIGINT": "SLEEP & SLEEP; true",
    "another process group": "timeout 0 SLEEP & timeout 0 SLEEP; true",
    "another session": "setsid SLEEP & wait",
    "nohup": "nohup SLEEP >/dev/null 2>&1 & wait",
    "a daemon": "(setsid SLEEP &); SLEEP; true",
    STOPPED: "SLEEP & wait",
    "one that ignores all": "trap '' TERM INT HUP QUIT; SLEEP & exec SLEEP",
    "a run inside of the run": f"{ROCEMU} run --private -- sh -c 'setsid SLEEP & wait'; true",
}


class EveryProgramEnds(CommandTest):
    def start_sleepers(self, script, *options):
        """Returns the run, as soon as every SLEEP in the script runs, and the argument by which sleepers() finds
        them."""
        mark = self.make_fifo()
        process = self.start("run", *options, "--", "sh", "-c", script.replace("SLEEP", f"cat {mark}"))
        wait_for(lambda: len(sleepers(mark)) == script.count("SLEEP"), "the programs")
        return process, mark

    def assert_ends(self, number, name, script, *options):
        process, mark = self.start_sleepers(script, *options)
        for pid in sleepers(mark) if name == STOPPED else ():
            os.kill(pid, signal.SIGSTOP)
        process.send_signal(number)
        errors = process.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(processes_naming(mark), [], errors)
        self.assertEqual(process.returncode, 128 + number, errors)

    def test_by_a_signal_to_rocemu(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            for name, script in HARD_TO_REACH.items():
                with self.subTest(name, number=number.name):
                    self.assert_ends(number, name, script)

    def test_in_turns(self):
        for name, script in HARD_TO_REACH.items():
            with self.subTest(name):
                self.assert_ends(signal.SIGTERM, name, script, "--lockstep")

    def test_at_once_if_they_can(self):
        # rocemu waits for the whole grace period only if programs do not end.
        for options in ((), ("--lockstep",)):
            process, mark = self.start_sleepers("timeout 0 SLEEP & SLEEP; true", *options)
            start = time.monotonic()
            process.terminate()
            errors = process.communicate()[1]
            self.assertNotIn("killed", errors)
            self.assertLess(time.monotonic() - start, 60, options)
            self.assertEqual(sleepers(mark), [])

    def test_by_kill_if_they_do_not_and_are_named(self):
        process, mark = self.start_sleepers("trap '' TERM; SLEEP & exec SLEEP")
        pids = sleepers(mark)
        process.terminate()
        errors = process.communicate()[1]
        self.assertIn("rocemu: programs that SIGTERM did not end get SIGKILL:\n", errors)
        for pid in pids:
            self.assertIn(f"  pid {pid}: cat {mark}\n", errors)

    def test_by_ctrl_c_in_a_terminal_in_other_groups_too(self):
        mark = self.make_fifo()
        script = f"cat {mark} & timeout 0 cat {mark}; true"
        with Terminal([ROCEMU, "run", "--", "sh", "-c", script], self.environment) as terminal:
            wait_for(lambda: len(sleepers(mark)) == 2, "the programs")
            terminal.write(b"\x03")
            said, status = terminal.finish()
        self.assertEqual((sleepers(mark), status), ([], 130), said)

    def test_at_once_by_a_second_ctrl_c(self):
        code = ("import os, signal, sys, time; signal.signal(signal.SIGINT, lambda *_: os.write(1, b'no\\n'))\n"
                "os.write(1, b'ready\\n')\nwhile True: time.sleep(0.1)")
        with Terminal([ROCEMU, "run", "--", *PYTHON, code], self.environment) as terminal:
            terminal.read_until("ready")
            terminal.write(b"\x03")
            terminal.read_until("no")
            # with less time between them, rocemu takes two signals for one, because timeout(1) sends two
            time.sleep(0.3)
            terminal.write(b"\x03")
            said, status = terminal.finish()
        self.assertEqual(status, 130, said)

    def test_but_not_what_nohup_protects(self):
        mark = self.make_fifo()
        process = subprocess.Popen(["nohup", ROCEMU, "run", "--", "cat", mark], env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        wait_for(lambda: sleepers(mark), "the program")
        process.send_signal(signal.SIGHUP)
        process.terminate()
        process.wait()
        process.stderr.close()
        self.assertEqual((process.returncode, sleepers(mark)), (128 + signal.SIGTERM, []))


class LeftInTheBackground(CommandTest):
    def test_is_named_and_ended(self):
        for options in ((), ("--lockstep",)):
            for start in ("SLEEP &", "setsid SLEEP &", "(setsid SLEEP &)", "trap '' TERM; SLEEP &"):
                with self.subTest(start, options=options):
                    mark = self.make_fifo()
                    # The shell starts the program with some delay.
                    script = (start.replace("SLEEP", f"cat {mark} >/dev/null 2>&1") +
                              f"\nuntil pgrep -fx 'cat {mark}' >/dev/null; do sleep 0.01; done; exit 3")
                    result = self.rocemu("run", *options, "--", "sh", "-c", script)
                    self.assertEqual((sleepers(mark), result.returncode), ([], 3), result.stderr)
                    self.assertRegex(result.stderr, "the command and its NIC have ended; .*\n"
                                     rf"  pid \d+: cat {mark}\n\Z")

    def test_may_finish_what_it_does(self):
        result = self.rocemu("run", "--", "sh", "-c", "sleep 0.05 & exit 3")
        self.assertEqual((result.returncode, result.stderr), (3, ""))

    def test_stays_on_a_shared_nic(self):
        self.assertEqual(self.rocemu("up").returncode, 0)
        self.addCleanup(self.rocemu, "down")
        result = self.rocemu("run", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
        self.assertEqual(result.stderr, "")
        os.kill(int(result.stdout), signal.SIGKILL)
        self.assertEqual(self.rocemu("down").returncode, 0)


if __name__ == "__main__":
    unittest.main()
