"""Tests that programs that wait forever are reported at once, with what each thread waits for, and that slow
programs are not reported."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

from rocemu import (BIN, CM_PAIR, HERE, ROCEMU, free_port, processes_of, rocemu_run, run,
                    side_by_side, temporary_directory)

LOCKSTEP = ("--lockstep",)
DEADLOCK, TIMEOUT = 123, 124
SOON = 4  # seconds. A report takes a tenth of a second, and much of that is the start of python.
CHANNEL = r"ibv_get_cq_event: completion channel of CQ \d+, "
NEVER = r"waits for a lock, a condition or a thread \(futex 0x[0-9a-f]+\)"

# The report's text for each kind of hang.
DEADLOCKS = {
    "solicited_only": [CHANNEL + "armed, with 1 completion to"],
    "not_armed_again": [CHANNEL + "not armed, with 2 completions to"],
    "both_receive": [CHANNEL + "armed, with 0 completions"] * 2 + [r"0 sends and 1 receive "] * 2,
    "condition": [NEVER],
    "locks": [NEVER, r"thread \d+ .*" + NEVER],
    "srq_never_refilled": [CHANNEL + "armed, with 0 completions", "RTS, 1 send ",
                           r"SRQ 1 of .*: 0 of 10 receives posted", r"NAK|RNR"],
    "join": [NEVER, CHANNEL + "armed, with 0"],
    "own_pipe": [r"waits for its children \(pid \d+\)", r"waits for a pipe \(descriptor \d+\)"],
    "both_read_socket": [r"waits for a socket .* whose other end is that of pid \d+"] * 2,
    "async_event": ["waits in ibv_get_async_event"],
    "epoll": [r"waits for a pipe .*among them .*channel of CQ 1.*channel of CQ 2"],
    "shared_semaphore": ["waits for its children", NEVER + " in shared memory"],
    "sigwait_beside_a_child": ["waits for its children", CHANNEL],
}
LIVE = ["sleeps", "computes", "condition_with_timeout", "polls_with_timeout", "polls_cq_for_a_time",
        "alarm", "child_sleeps", "socket_with_timeout", "srq_refilled_late"]


def hanging(name):
    return ["/usr/bin/python3", HERE / "hanging.py", name]


class Deadlocks(unittest.TestCase):
    def assert_reported(self, result, parts):
        self.assertEqual(result.returncode, DEADLOCK, result.stdout)
        self.assertIn("rocemu: deadlock at ", result.stdout)
        for part in set(parts):
            found = re.findall(part, result.stdout)
            self.assertGreaterEqual(len(found), parts.count(part), (part, result.stdout))

    def took_to_start(self):
        """Returns how long a run without a hang takes at this time, since other tests may keep the machine busy."""
        start = time.monotonic()
        result = rocemu_run(*hanging("ends"), options=LOCKSTEP)
        self.assertEqual(result.returncode, 0, result.stdout)
        return time.monotonic() - start

    def test_each_way_to_hang_is_reported_at_once(self):
        def check(name):
            start = time.monotonic()
            result = rocemu_run(*hanging(name), options=LOCKSTEP)
            took = time.monotonic() - start
            self.assert_reported(result, DEADLOCKS[name])
            if took > SOON:
                self.assertLess(took, SOON + 2 * self.took_to_start(), result.stdout)
        side_by_side(self, check, DEADLOCKS)

    def test_both_poll(self):
        result = rocemu_run(*hanging("both_poll"), options=LOCKSTEP)
        self.assert_reported(result, ["polls a completion queue"] * 2)

    def test_a_program_whose_main_thread_has_ended(self):
        result = rocemu_run(BIN / "main_thread_ends", "waits", options=LOCKSTEP)
        self.assert_reported(result, [r"thread \d+ .*waits in ibv_get_async_event"])
        result = rocemu_run(BIN / "main_thread_ends", "waits", options=("--timeout", "1"))
        self.assertEqual(result.returncode, TIMEOUT)
        self.assertRegex(result.stdout, r"thread \d+ .*waits in ibv_get_async_event")

    def test_threads_that_spin(self):
        result = rocemu_run(BIN / "determinism_programs", "spin_for_ever", options=LOCKSTEP)
        self.assert_reported(result, [NEVER] + [r"thread \d+ .* spins: it repeatedly reads memory"] * 2)

    def test_an_established_that_is_lost(self):
        with temporary_directory() as directory:
            scenario = pathlib.Path(directory) / "lost.yaml"
            scenario.write_text(
                "rules:\n- {name: lost, on: cm_event, event: ESTABLISHED, do: drop}\n")
            port = str(free_port())
            rping = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "1"]
            result = rocemu_run(*CM_PAIR, port, *rping, "-s", "--", *rping, "-c",
                                options=(*LOCKSTEP, "--scenario", scenario))
            self.assert_reported(result, [r"rdma_get_cm_event: event channel of .*CM id \d+, "
                                          "connecting or connected", r"lost: acted \d+ time"])

    def test_a_server_that_nobody_calls(self):
        result = rocemu_run("rping", "-s", "-a", "127.0.0.1", "-p", str(free_port()),
                            options=LOCKSTEP)
        self.assert_reported(result, [r"rdma_get_cm_event: .*CM id \d+, listening"])

    def test_nothing_is_left_of_the_programs(self):
        marker = f"left-{os.getpid()}-{time.monotonic_ns()}"
        result = rocemu_run("sh", "-c", "trap '' TERM; \"$@\" & wait", "sh", *hanging("join"), marker,
                            options=LOCKSTEP)
        self.assertEqual(result.returncode, DEADLOCK, result.stdout)
        self.assertEqual(processes_of(marker), [])

    def test_the_recording_is_kept_on_failure_only(self):
        with temporary_directory() as directory:
            kept = pathlib.Path(directory) / "kept"
            options = (*LOCKSTEP, "--keep-on-failure", kept)
            result = rocemu_run(*hanging("both_receive"), options=options)
            self.assert_reported(result, [])
            self.assertEqual({entry.name for entry in kept.iterdir()},
                             {"journal", "events.jsonl", "trace.pcap", "report.txt"})
            self.assertRegex((kept / "report.txt").read_text(), CHANNEL)
            replay = run(ROCEMU, "replay", kept)
            self.assertEqual(replay.returncode, 0, replay.stdout)
            self.assertNotIn("cut off", replay.stdout)
            failed = rocemu_run("sh", "-c", "ibv_devinfo; exit 7", options=options)
            self.assertEqual(failed.returncode, 7, failed.stdout)
            self.assertEqual({entry.name for entry in kept.iterdir()},
                             {"journal", "events.jsonl", "trace.pcap"})
            well = rocemu_run("ibv_devinfo", options=options)
            self.assertEqual(well.returncode, 0, well.stdout)
            self.assertFalse(kept.exists())


class Live(unittest.TestCase):
    def test_slow_programs_come_to_their_end(self):
        def check(name):
            result = rocemu_run(*hanging(name), options=LOCKSTEP)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertNotIn("deadlock", result.stdout)
        side_by_side(self, check, LIVE)

    def start(self, name):
        process = subprocess.Popen([ROCEMU, "run", "--private", *LOCKSTEP, "--", *hanging(name)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def assert_waits_for_us(self, process):
        """Checks that the process waits for this test. It would wait for any time; a second must be enough here."""
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(1)

    def test_one_that_reads_a_pipe_from_outside(self):
        process = self.start("reads_outside")
        self.assert_waits_for_us(process)
        process.stdin.write("go on\n")
        process.stdin.flush()
        self.assertEqual(process.wait(60), 0)

    def test_one_that_writes_to_a_pipe_whose_reader_is_outside(self):
        process = self.start("writes_to_a_slow_reader")
        self.assert_waits_for_us(process)
        self.assertEqual(len(process.stdout.read()), 300_000)
        self.assertEqual(process.wait(60), 0)

    def test_one_that_waits_for_a_signal(self):
        process = self.start("signal_from_outside")
        pid = int(process.stdout.readline().split()[1])
        self.assert_waits_for_us(process)
        os.kill(pid, signal.SIGUSR1)
        self.assertEqual(process.wait(60), 0)

    def test_one_that_waits_for_a_connection(self):
        process = self.start("accepts")
        port = int(process.stdout.readline().split()[1])
        self.assert_waits_for_us(process)
        with socket.create_connection(("127.0.0.1", port)):
            self.assertEqual(process.wait(60), 0)

    def test_retries_of_hours(self):
        result = rocemu_run(BIN / "dead_peer", options=LOCKSTEP)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_nic_that_is_paused_or_whose_time_is_held(self):
        result = rocemu_run("sh", "-c", f"""
            {ROCEMU} pause; (sleep 1; {ROCEMU} resume) & exec {hanging('x')[0]} {hanging('x')[1]} \
            computes""", options=LOCKSTEP)
        self.assertEqual(result.returncode, 0, result.stdout)


class Timeouts(unittest.TestCase):
    def test_it_is_told_who_waits_for_what_on_any_clock(self):
        def check(case):
            options, name, waits = case
            result = rocemu_run(*hanging(name), options=(*options, "--timeout", "4s"))
            self.assertEqual(result.returncode, TIMEOUT, result.stdout)
            self.assertRegex(result.stdout, r"pid \d+ \(python3\) " + waits)
            self.assertRegex(result.stdout, "QP 0x11 of pid")
        side_by_side(self, check, [((), "sleeps_for_a_minute", "sleeps for a time"),
                                   (LOCKSTEP, "accepts", "waits for a socket")])

    def test_a_program_that_ends_in_time_has_its_own_status(self):
        result = rocemu_run("sh", "-c", "exit 3", options=("--timeout", "1m"))
        self.assertEqual(result.returncode, 3, result.stdout)

    def test_what_is_no_time_is_refused(self):
        for wrong in ("", "x", "0", "-1", "5d", "nan", "1e30", "5 s"):
            result = rocemu_run("true", options=("--timeout", wrong))
            self.assertEqual(result.returncode, 2, wrong)
            self.assertIn("--timeout", result.stdout)


class DeadNic(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def kill_beside(self, name, options=()):
        """Kills the daemon while the program waits. Until then, another program waits for this test, so that there
        is no deadlock."""
        process = subprocess.Popen(
            [ROCEMU, "run", "--private", *map(str, options), "--", "sh", "-c",
             "exec 3<&0; (read _ <&3; kill -9 $(pgrep -P $PPID -x rocemud)) & "
             f"{' '.join(map(str, hanging(name)))}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        said = b""
        while not said.endswith(b"ready\n"):
            part = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(part, said)
            said += part
        return said.decode() + process.communicate("now\n", timeout=60)[0], process.returncode

    def test_programs_that_wait_for_each_other_are_reported_and_ended(self):
        for options in ((), LOCKSTEP, ("--keep-on-failure", self.directory / "kept")):
            said, status = self.kill_beside("condition", options)
            self.assertIn("the emulated NIC is gone: rocemud was killed by signal 9", said)
            self.assertIn("deadlock: the NIC is gone", said)
            self.assertRegex(said, NEVER)
            self.assertEqual(status, DEADLOCK, said)
        self.assertIn("latest events in the recording", said)
        self.assertRegex((self.directory / "kept" / "report.txt").read_text(), NEVER)

    def test_programs_that_can_go_on_do(self):
        said, status = self.kill_beside("child_sleeps")
        self.assertIn("the emulated NIC is gone: rocemud was killed by signal 9", said)
        self.assertNotIn("deadlock", said)
        self.assertNotEqual(status, DEADLOCK, said)


if __name__ == "__main__":
    unittest.main()
