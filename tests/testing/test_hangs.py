"""Tests that tests that hang fail with a report: with a separate Fabric, and in a `rocemu run` as in README.md and
docs/ci.md."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ROCEMU_BUILD"])
ROCEMU = str(BUILD / "bin" / "rocemu")
HANGING = str(BUILD / "bin" / "hanging_test")
TIMEOUT = 200  # seconds, far longer than any of the programs takes
WHO = r"waiting threads:\n(  .*\n)*"
ASYNC = WHO + r"  pid \d+ \(hanging_test\) waits in ibv_get_async_event"
CM = WHO + r"  pid \d+(, thread \d+)? \(rping\) .*rdma_get_cm_event: event channel of .*listening"


class HangTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="rocemu-test-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def run_here(self, *command, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
        environment.update(PYTHONPATH=str(BUILD / "share" / "rocemu" / "python"),
                           ROCEMU_COMMAND=ROCEMU, **variables)
        return subprocess.run([str(word) for word in command], cwd=self.scratch, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT, check=False)

    def in_run(self, *options):
        return self.run_here(ROCEMU, "run", *options)


class OutsideOfARun(HangTest):
    def test_a_deadlock_of_the_test_itself_is_reported_and_ends_it(self):
        result = self.run_here(HANGING, "itself", "lockstep")
        self.assertRegex(result.stdout, r"rocemu: deadlock at .*\n" + ASYNC)
        self.assertEqual(result.returncode, -signal.SIGABRT)

    def test_a_deadlock_of_its_programs_is_an_error_where_it_waits(self):
        result = self.run_here(HANGING, "program", "lockstep")
        self.assertRegex(result.stdout, r"rping does not end: deadlock at .*\n" + CM)
        self.assertEqual(result.returncode, 7)

    def test_destroying_what_has_unacknowledged_events_is_named_with_the_remedy(self):
        for clock, variables in (("lockstep", {}), ("real", {"ROCEMU_TIMEOUT": "2s"})):
            result = self.run_here(HANGING, "destroy_cq", clock, **variables)
            self.assertRegex(result.stdout, WHO + r"  pid \d+ \(hanging_test\) waits in ibv_destroy_cq: "
                             r"CQ 1 has 1 completion and 0 async events that were not acknowledged by "
                             "ibv_ack_cq_events\n")
            self.assertEqual(result.returncode, -signal.SIGABRT)

    def test_destroying_what_has_too_many_acknowledgements_is_named_with_the_remedy(self):
        """One event was received and acknowledged three times, so there are two acknowledgements too many."""
        for clock, variables in (("lockstep", {}), ("real", {"ROCEMU_TIMEOUT": "2s"})):
            result = self.run_here(HANGING, "destroy_cq_acknowledged_thrice", clock, **variables)
            self.assertRegex(result.stdout, WHO + r"  pid \d+ \(hanging_test\) waits in ibv_destroy_cq: "
                             "the program acknowledged 2 more completion events of CQ 1 than it received; "
                             "acknowledge each event once with ibv_ack_cq_events\n")
            self.assertEqual(result.returncode, -signal.SIGABRT)

    def test_on_the_real_clock_there_is_a_limit(self):
        for command, variables in ((("limit", "real"), {}),
                                   (("itself", "real"), {"ROCEMU_TIMEOUT": "1s"})):
            result = self.run_here(HANGING, *command, **variables)
            self.assertRegex(result.stdout, "the time limit of the test's NIC is over.*\n" + ASYNC)
            self.assertEqual(result.returncode, -signal.SIGABRT)

    def test_what_does_not_hang_ends_well(self):
        for clock in ("real", "lockstep"):
            result = self.run_here(HANGING, "ends", clock, ROCEMU_TIMEOUT="2m")
            self.assertEqual((result.returncode, result.stdout), (0, ""))

    def slow_to_close(self, seconds):
        """Returns a PATH with a slow `cat`, the program that keeps the NIC of a Fabric running: it ends some
        seconds of the real clock after its input."""
        folder = self.scratch / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "cat").write_text(f"#!/bin/sh\n/bin/cat\nLD_PRELOAD= exec sleep {seconds}\n")
        (folder / "cat").chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    def test_waiting_for_the_nic_to_end_is_no_hang(self):
        python = """if True:
            import rocemu, sys
            rocemu.Fabric(clock=sys.argv[1]).close()
            """
        for command in ((HANGING, "ends"), (HANGING, "message"), (sys.executable, "-c", python)):
            result = self.run_here(*command, "lockstep", PATH=self.slow_to_close(1))
            self.assertEqual((result.returncode, result.stdout), (0, ""))
        for command in ((HANGING, "ends", "real"), (sys.executable, "-c", python, "real")):
            result = self.run_here(*command, PATH=self.slow_to_close(5), ROCEMU_TIMEOUT="4s")
            self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_a_test_that_notices_the_end_of_a_program_late_does_not_hang(self):
        (self.scratch / "late.py").write_text("""if True:
            import rocemu, subprocess, sys, time
            real_sleep = time.sleep
            seconds = float(sys.argv[1])
            with rocemu.Fabric(clock="lockstep") as fabric:
                port = str(rocemu.free_port())
                rping = ["-a", "127.0.0.1", "-p", port, "-C", "2"]
                servers = []
                if sys.argv[2] == "beside":  # a server that nobody has called yet
                    servers.append(fabric.popen(["rping", "-s", *rping], stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL))
                    fabric.wait_listening(int(port))
                subprocess.time.sleep = lambda _: real_sleep(seconds)  # a wait with a limit looks so often
                fabric.run(["sleep", "0.2"], check=True, timeout=60)
                subprocess.time.sleep = real_sleep
                if servers:
                    fabric.run(["rping", "-c", *rping], check=True)
                    servers[0].wait()
            print("done")
            """)
        for seconds, programs in ((4, "alone"), (1, "beside")):
            with self.subTest(programs=programs):
                result = self.run_here(sys.executable, "late.py", seconds, programs)
                self.assertEqual(result.stdout, "done\n")

    def test_in_python_it_is_an_exception(self):
        (self.scratch / "hang.py").write_text("""if True:
            import rocemu, sys, threading, time
            way, clock = sys.argv[1:]
            with rocemu.Fabric(clock=clock, timeout=1 if clock == "real" else None) as fabric:
                rping = ["rping", "-s", "-a", "127.0.0.1", "-p", str(rocemu.free_port())]
                try:
                    if way == "run":
                        fabric.run(rping, timeout=600)
                    elif way == "popen":
                        fabric.popen(rping).wait()
                    else:  # the main thread waits for another, which waits for the program
                        thread = threading.Thread(target=fabric.popen(rping).wait)
                        thread.daemon = True
                        thread.start()
                        thread.join()
                except rocemu.Hang as hang:
                    print("Hang:", hang)
            print("closed")
            """)
        for way in ("run", "popen", "thread"):
            for clock in ("lockstep", "real"):
                with self.subTest(way, clock=clock):
                    result = self.run_here(sys.executable, "hang.py", way, clock)
                    self.assertRegex(result.stdout, r"Hang: (deadlock at|the time limit of).*\n" + CM)
                    self.assertIn("closed", result.stdout)
                    self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_test_that_starts_the_client_later_does_not_hang(self):
        (self.scratch / "later.py").write_text("""if True:
            import rocemu, threading, time
            with rocemu.Fabric(clock="lockstep") as fabric:
                port = str(rocemu.free_port())
                server = fabric.popen(["rping", "-s", "-a", "127.0.0.1", "-p", port, "-C", "2"])
                waits = threading.Thread(target=server.wait)
                waits.start()
                fabric.wait_listening(int(port))
                time.sleep(2)  # longer than it takes to find a deadlock
                fabric.run(["rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2"], check=True)
                waits.join()
                print("done", server.returncode)
            """)
        result = self.run_here(sys.executable, "later.py")
        self.assertIn("done 0\n", result.stdout)


class InARun(HangTest):
    """Tests the commands of README.md and docs/ci.md."""

    def test_timeout_reports_what_the_test_waits_for_and_keeps_its_recording(self):
        result = self.in_run("--timeout", "3s", "--keep-on-failure", "failed", "--", HANGING,
                             "itself", "real")
        self.assertRegex(result.stdout, "--timeout is over.*\n" + ASYNC)
        self.assertEqual(result.returncode, 124)
        self.assertIn("ibv_get_async_event", (self.scratch / "failed" / "report.txt").read_text())
        self.assert_has_the_recording(result)

    def assert_has_the_recording(self, result):
        self.assertIn("rocemu: the recording of this run is in ", result.stdout)
        self.assertEqual({one.name for one in (self.scratch / "failed").iterdir()},
                         {"journal", "events.jsonl", "trace.pcap"} |
                         {one.name for one in (self.scratch / "failed").glob("report.txt")})
        shown = self.run_here(ROCEMU, "timeline", "failed", "--html", "failed.html")
        self.assertEqual(shown.returncode, 0, shown.stdout)
        events = self.run_here(ROCEMU, "timeline", "failed", "--events").stdout.splitlines()
        self.assertTrue(any("alloc_pd" in event for event in events), events)

    def test_a_deadlock_of_the_test_is_kept_as_well(self):
        result = self.in_run("--timeout", "5m", "--keep-on-failure", "failed", "--", HANGING,
                             "itself", "lockstep")
        self.assertRegex(result.stdout, r"rocemu: deadlock at .*\n" + ASYNC)
        self.assertEqual(result.returncode, 128 + signal.SIGABRT)
        self.assert_has_the_recording(result)

    def test_of_a_test_that_passes_nothing_is_kept(self):
        for options in ((), ("--lockstep",)):
            result = self.in_run(*options, "--timeout", "5m", "--keep-on-failure", "failed", "--",
                                 HANGING, "ends", "lockstep")
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertFalse((self.scratch / "failed").exists())

    def test_lockstep_reports_a_deadlock_of_the_test_and_of_its_programs(self):
        for way, who in (("itself", ASYNC), ("program", CM)):
            result = self.in_run("--lockstep", "--timeout", "5m", "--keep-on-failure", "failed", "--",
                                 HANGING, way, "lockstep")
            self.assertRegex(result.stdout, r"rocemu: deadlock at .*\n" + who)
            self.assertEqual(result.returncode, 123)
            shown = self.run_here(ROCEMU, "timeline", "failed")
            self.assertEqual(shown.returncode, 0, shown.stdout)

    def test_a_fabric_in_lockstep_is_the_nic_of_the_run(self):
        (self.scratch / "same.py").write_text("""if True:
            import os, rocemu
            for keywords in ({}, {"clock": "lockstep"}, {"devices": 2}, {"scenario": "lost-send"}):
                with rocemu.Fabric(**keywords) as fabric:
                    assert fabric.directory == os.environ["ROCEMU_DIR"]
                    print(fabric.clock().kind, len(fabric.rules()))
            with rocemu.Fabric.current() as fabric:
                print(len(fabric.rules()))
            for keywords in ({"devices": 3}, {"devices": ["mlx5_0"]}, {"seed": 1}):
                try:
                    rocemu.Fabric(**keywords)
                except rocemu.Error as error:
                    print(error)
            """)
        result = self.in_run("--lockstep", "--", sys.executable, "same.py")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:5], ["virtual 0"] * 3 + ["virtual 1", "0"], result.stdout)
        self.assertEqual([line.startswith("the test runs in a `rocemu run`, whose NIC this Fabric uses; ")
                          for line in lines[5:]], [True] * 3, result.stdout)


if __name__ == "__main__":
    unittest.main()
