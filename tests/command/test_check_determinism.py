"""Tests `rocemu run --check-determinism N` with commands whose runs differ on purpose."""
import os
import signal
import subprocess
import textwrap
import unittest

from support import ROCEMU, CommandTest

# Sets $n to the number of the run, which is counted in a file.
COUNT = "n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count; "


class CheckDeterminism(CommandTest):
    def check(self, script, runs=2, options=()):
        return self.rocemu("run", "--lockstep", "--check-determinism", runs, *options, "--", "sh",
                           "-c", script, cwd=self.scratch, env={"TMPDIR": str(self.scratch)})

    def assert_differs(self, result, *parts):
        self.assertEqual(result.returncode, 1, result.stderr)
        for part in parts:
            self.assertRegex(result.stderr, part)

    def test_runs_that_are_the_same(self):
        result = self.check("ibv_devices; echo to stderr >&2", runs=4)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("rocemu0"), 1)  # only one run's output is printed
        self.assertRegex(result.stderr, r"\Ato stderr\nrocemu: 4 runs, 2 of them under load, "
                                        r"were identical: \d+ events and frames, and all output\n\Z")
        self.assertEqual(os.listdir(self.scratch), [])

    def test_it_runs_as_often_as_told(self):
        self.check(COUNT, runs=5)
        self.assertEqual((self.scratch / "count").read_text(), "5\n")

    def test_the_status_is_that_of_the_command(self):
        self.assertEqual(self.check("exit 3").returncode, 3)

    def test_another_output_is_shown(self):
        result = self.check(COUNT + "echo first; echo run $n")
        self.assert_differs(result, r"of 2 runs, run 2 \(under load\) differs from run 1\n",
                            r"standard output differs in line 2:\nrun 1: run 1\n"
                            r"run 2 \(under load\): run 2\n",
                            "cause: not the NIC, since both recordings are the same, but for example process IDs")

    def test_an_output_that_ends_early_is_shown(self):
        self.assert_differs(self.check(COUNT + "[ $n = 1 ] || echo more"),
                            r"standard output differs in line 1:\nrun 1: \(no more\)\n.*: more\n")
        self.assert_differs(self.check(COUNT + "[ $n = 3 ] || echo more >&2"),
                            r"standard error differs in line 1:\nrun 1: \(no more\)\n.*: more\n")

    def test_another_exit_status_is_shown(self):
        self.assert_differs(self.check(COUNT + "exit $n"),
                            r"exit status: run 1: 1, run 2 \(under load\): 2\n")

    def test_a_call_that_only_one_run_makes_is_named_with_its_process(self):
        result = self.check(COUNT + "ibv_devinfo > /dev/null; "
                            "[ $n != 3 ] || ibv_devinfo -d rocemu0 > /dev/null", runs=3)
        self.assert_differs(result, r"of 3 runs, run 3 \(on one processor\) differs from run 1\n",
                            r"run 1: \(no more\)\n", r"run 3 .*: client \d \(ibv_devinfo\): attach",
                            r"cause: client \d \(ibv_devinfo\) called attach in one run, and not",
                            r"\n  unshare -rpf --mount-proc rocemu run --lockstep --record DIR -- COMMAND\n")

    def test_data_that_differ_in_frames_are_of_a_program(self):
        """For example, frames contain a process number, while the NIC's actions are the same."""
        script = self.scratch / "send_number.py"
        script.write_text(textwrap.dedent("""\
            import ctypes, os, socket, struct, time
            r = ctypes.CDLL("librdmacm.so.1")
            address = struct.pack("=H", socket.AF_INET) + struct.pack(">H4s8x", 7471, socket.inet_aton("127.0.0.1"))
            new = lambda: r.rsocket(socket.AF_INET, socket.SOCK_STREAM, 0)
            if os.fork() == 0:
                time.sleep(1)
                connection = new()
                assert r.rconnect(connection, address, len(address)) == 0
                assert r.rsend(connection, b"%8d" % os.getpid(), 8, 0) == 8
                r.rclose(connection)
                os._exit(0)
            listener = new()
            assert r.rbind(listener, address, len(address)) == 0 and r.rlisten(listener, 1) == 0
            connection = r.raccept(listener, None, None)
            assert r.rrecv(connection, ctypes.create_string_buffer(8), 8, 0) == 8
            r.rclose(connection)
            assert os.wait()[1] == 0
            """))
        result = self.check(f"/usr/bin/python3 {script}")
        self.assert_differs(result, r"their captures differ from frame \d+ on\n"
                                    r"cause: a program sends different data; the NIC does the same in both runs\n",
                            r"process IDs, use this command, which gives them the same IDs in each run:\n  unshare -rpf")

    @unittest.skipUnless(subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], check=False).returncode == 0,
                         "this machine gives no PID namespaces")
    def test_process_numbers_are_the_same_in_a_namespace_of_each_runs_own(self):
        said = [subprocess.run(["unshare", "-rpf", "--mount-proc", ROCEMU, "run", "--lockstep", "--record",
                                self.scratch / str(i), "--", "sh", "-c", "echo $$; ibv_devinfo"],
                               env=self.environment, check=True, capture_output=True, text=True).stdout
                for i in range(2)]
        self.assertEqual(said[0], said[1])
        self.assertEqual(self.rocemu("diff", self.scratch / "0", self.scratch / "1").returncode, 0)

    def test_a_call_with_another_argument_is_named(self):
        result = self.check(COUNT + "ibv_devinfo -d rocemu$((n - 1)) > /dev/null")
        self.assert_differs(result, "first differ at line 1 of events.jsonl", "attach device=rocemu0", "device=rocemu1",
                            "made the same call, attach, with another device")

    def test_runs_that_differ_are_kept_where_told(self):
        kept = self.scratch / "kept"
        self.check(COUNT + "ibv_devinfo -d rocemu$((n - 1))", options=("--keep-on-failure", kept))
        for name in ("first", "other"):
            self.assertEqual({path.name for path in (kept / name).iterdir()},
                             {"journal", "events.jsonl", "trace.pcap"})
            replayed = self.rocemu("replay", kept / name)
            self.assertEqual(replayed.returncode, 0, replayed.stderr)
        events = [(kept / name / "events.jsonl").read_text() for name in ("first", "other")]
        self.assertIn('"device":"rocemu0"', events[0])
        self.assertIn('"device":"rocemu1"', events[1])

    def test_what_rocemu_says_is_no_difference(self):
        """Messages of rocemu contain process numbers, which differ."""
        rule = self.scratch / "rule.yaml"
        rule.write_text("rules:\n- {name: idle, on: frame, opcode: SEND, nth: 3, do: drop}\n")
        result = self.check("ibv_devices", options=("--scenario", rule))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("never acted"), 1)

    def test_a_command_that_is_ended_leaves_nothing(self):
        started, held = self.scratch / "started", self.scratch / "held"
        os.mkfifo(started)
        os.mkfifo(held)
        holder = os.open(held, os.O_RDWR)  # keeps the FIFO open, so that cat waits
        self.addCleanup(os.close, holder)
        temporary = self.scratch / "temporary"
        temporary.mkdir()
        process = self.start("run", "--lockstep", "--check-determinism", "2", "--", "sh", "-c",
                             f"echo > {started}; exec cat {held}", env={"TMPDIR": str(temporary)})
        started.read_text()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertEqual(os.listdir(temporary), [])

    def test_wrong_usage(self):
        lockstep = ("--lockstep", "--check-determinism", "2")
        for options, reason in ((("--lockstep", "--check-determinism", "1"), "from 2 to 1000"),
                                (("--lockstep", "--check-determinism=2x"), "'2x' is not a number of runs from 2 to"),
                                (("--check-determinism", "2"), "needs --lockstep"),
                                ((*lockstep, "--record", "x"), "leave out --record"),
                                ((*lockstep, "--capture", "x"), "leave out --capture"),
                                ((*lockstep, "--expect", "x"), "leave out --expect")):
            result = self.rocemu("run", *options, "--", "true", cwd=self.scratch)
            self.assert_one_line(result, 2, reason)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_help_names_it(self):
        text = subprocess.run([ROCEMU, "help", "run"], capture_output=True, text=True,
                              check=True).stdout
        self.assertIn("--check-determinism N", text)


if __name__ == "__main__":
    unittest.main()
