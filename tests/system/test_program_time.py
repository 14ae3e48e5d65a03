"""Tests virtual time for programs: sleeps and waits take no real time, and the programs' clocks advance."""
import re
import time
import unittest

from rocemu import BIN, ROCEMU, AtOnce, free_port, rocemu_run, run, temporary_directory

# seconds of real time that suffice beside other tests; without virtual time, each run would take at least a minute
SOON = 20
WAIT = 1000  # seconds of each wait of timed_waits
CLOSE = 0.01  # seconds that the programs themselves and the NIC may take


class ProgramTime(unittest.TestCase):
    def soon(self, *command, status=0, options=()):
        """Runs the command, checks that it ends soon, and returns its output."""
        begin = time.monotonic()
        result = rocemu_run(*command, options=("--timeout", "50", "--lockstep", *options))
        took = time.monotonic() - begin
        self.assertEqual(result.returncode, status, result.stdout)
        self.assertLess(took, SOON, result.stdout)
        return result.stdout

    def python(self, script, **keywords):
        return self.soon("/usr/bin/python3", "-c", script, **keywords)

    def assert_times(self, text, expected):
        """Checks that each line of the text is a time and a name, as expected."""
        found = [(name, float(at)) for at, name in re.findall(r"^([\d.]+) (.+)$", text, re.M)]
        self.assertEqual([name for name, _ in found], [name for name, _ in expected], text)
        for (name, at), (_, wanted) in zip(found, expected):
            self.assertGreaterEqual(at, wanted, name)
            self.assertLess(at, wanted + 1, text)

    def polls(self, way, count, **keywords):
        """Returns the program's output, and how long its polls took by its own clock."""
        said = self.soon(BIN / "empty_polls", way, str(count), **keywords)
        took = re.search(r"^\d+ polls took ([\d.]+) s$", said, re.M)
        return said, float(took[1]) if took else None

    def test_no_timer_comes_early_while_a_program_polls(self):
        # docs/design/time.md: up to 65,536 consecutive polls take 50 ns each.
        for way in ("alarm", "lease"):
            for count in (8, 100, 65_536):
                said, took = self.polls(way, count)
                self.assertNotIn("lease is over", said)
                self.assertAlmostEqual(took, count * 50e-9, delta=2e-6 + count * 50e-9 / 8, msg=said)

    def test_a_loop_of_a_million_polls_ends(self):
        _, took = self.polls("once", 1 << 20)
        self.assertAlmostEqual(took, (1 << 20) * 50e-9, delta=1e-4)

    def test_threads_that_poll_under_a_lock_end(self):
        _, took = self.polls("lock", 1000)
        self.assertLess(took, 1e-3)

    def test_a_program_that_polls_for_ever_is_reported_as_one(self):
        said, _ = self.polls("for-ever", 1000, status=123, options=("--poll-patience", "1s"))
        self.assertRegex(said, r"deadlock at 0\.00000\d s .*every thread waits or polls without success")
        self.assertIn("polls a completion queue", said)

    def test_an_hour_of_sleep(self):
        self.soon("sleep", "3600")

    def test_threads_that_wait_are_canceled(self):
        text = self.soon(BIN / "canceled_waits")
        self.assertEqual(text, "".join(
            f"{name}: canceled\n" for name in ("condition", "semaphore", "read", "poll", "sleep"))
            + "mutex: free\n")

    def test_a_program_that_closes_all_descriptors(self):
        text = self.soon(BIN / "closed_descriptors")
        self.assertEqual(text, "closed\nreplaced\nchild 3\n")

    def test_a_call_that_waits_keeps_its_file(self):
        for way in ("read", "recv", "poll", "poll-timeout", "select-timeout", "epoll-of-it", "flock"):
            with self.subTest(way):
                outside = run(BIN / "closed_while_waiting", way)
                self.assertEqual(outside.returncode, 0, outside.stdout)
                self.assertEqual(self.soon(BIN / "closed_while_waiting", way), outside.stdout)

    def test_each_way_to_wait(self):
        text = self.soon(BIN / "timed_waits")
        lines = re.findall(r"^(.+): ([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) (\d+)$", text, re.M)
        self.assertEqual(len(lines), 49, text)
        for name, *times in lines:
            for clock, passed in zip(("monotonic", "real", "gettimeofday", "system call"), times):
                self.assertGreaterEqual(float(passed), WAIT - CLOSE, (name, clock))
                # A program that waits in a loop advances the clock in steps that grow with the time that it has
                # waited.
                late = WAIT / 1000 if name.startswith("loop") else CLOSE
                self.assertLess(float(passed), WAIT + late, (name, clock))
            self.assertIn(int(times[-1]), (WAIT, WAIT + 1), (name, "time()"))

    def test_system_is_as_it_is_outside(self):
        """system(3): the status is that of the shell. Meanwhile SIGINT and SIGQUIT are ignored in the program,
        but not in the shell."""
        script = """if True:
            import os, signal
            print([os.system(command) for command in
                   ("exit 3", "kill -9 $$", "/nonexistent 2>/dev/null", "kill -INT $PPID; kill -QUIT $PPID",
                    "kill -INT $$", "trap")])
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print(os.system("kill -INT $$"), signal.getsignal(signal.SIGINT), os.system("true"))
        """
        outside = run("/usr/bin/python3", "-c", script)
        self.assertEqual(outside.returncode, 0, outside.stdout)
        self.assertEqual(self.python(script), outside.stdout)

    def test_python_sleeps(self):
        script = """if True:
            import threading, time
            begin, began = time.monotonic(), time.time()
            def sleep(name, seconds):
                time.sleep(seconds)
                print(f"{time.monotonic() - begin:.3f} {name}", flush=True)
            threads = [threading.Thread(target=sleep, args=one)
                       for one in (("c", 3000), ("a", 1000), ("b", 2000))]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            time.sleep(600)
            print(f"{time.time() - began:.3f} end")
        """
        text = self.python(script)
        self.assert_times(text, [("a", 1000), ("b", 2000), ("c", 3000), ("end", 3600)])

    def test_clocks_of_ticks_and_seconds(self):
        """Tests times(2), and the uptime of sysinfo(2)."""
        script = """if True:
            import ctypes, os, time
            def uptime():
                libc, info = ctypes.CDLL(None), (ctypes.c_long * 32)()
                assert libc.sysinfo(info) == 0
                return info[0]
            def times():
                return os.times().elapsed, ctypes.CDLL(None).times(None) / 100, uptime()
            before = times()
            time.sleep(1000)
            print(*(now - then for now, then in zip(times(), before)))
        """
        text = self.python(script)
        for passed in map(float, text.split()):
            self.assertGreaterEqual(passed, 999.98)
            self.assertLess(passed, 1001.01)

    def test_python_asyncio(self):
        script = """if True:
            import asyncio
            async def main():
                loop = asyncio.get_running_loop()
                begin = loop.time()
                def note(name):
                    print(f"{loop.time() - begin:.3f} {name}", flush=True)
                async def task(name, seconds):
                    await asyncio.sleep(seconds)
                    note(name)
                await asyncio.gather(task("c", 90), task("a", 30), task("b", 60))
                try:
                    await asyncio.wait_for(asyncio.Event().wait(), 60)
                except asyncio.TimeoutError:
                    note("timeout")
                process = await asyncio.create_subprocess_exec("sleep", "100")
                await process.wait()
                note("child")
            asyncio.run(main())
        """
        text = self.python(script)
        self.assert_times(text, [("a", 30), ("b", 60), ("c", 90), ("timeout", 150),
                                 ("child", 250)])

    def test_python_waits_with_timeouts(self):
        script = """if True:
            import queue, select, signal, socket, subprocess, threading, time
            begin = time.monotonic()
            def note(name):
                print(f"{time.monotonic() - begin:.3f} {name}", flush=True)
            threading.Event().wait(60); note("event")
            try: queue.Queue().get(timeout=60)
            except queue.Empty: note("queue")
            a, b = socket.socketpair()
            select.select([a], [], [], 60); note("select")
            a.settimeout(60)
            try: a.recv(1)
            except TimeoutError: note("socket")
            try: subprocess.run(["sleep", "1000"], timeout=60)
            except subprocess.TimeoutExpired: note("subprocess")
            signal.signal(signal.SIGALRM, lambda *_: note("alarm"))
            signal.alarm(60); signal.pause()
            lock = threading.Lock(); lock.acquire()
            lock.acquire(timeout=60); note("lock")
        """
        names = ("event", "queue", "select", "socket", "subprocess", "alarm", "lock")
        text = self.python(script)
        self.assert_times(text, [(name, 60 * i) for i, name in enumerate(names, 1)])

    def test_a_shell_loop(self):
        script = ("begin=$(date +%s); for i in 1 2 3 4 5 6 7 8 9 10; do sleep 10; done;"
                  "echo $(($(date +%s) - begin)) loop")
        text = self.soon("sh", "-c", script)
        self.assert_times(text, [("loop", 100)])

    def test_shell_jobs_end_in_the_order_of_their_sleeps(self):
        script = "for i in 50 10 40 20 30; do (sleep $i; echo $i job) & done; wait; echo 60 all"
        text = self.soon("sh", "-c", script)
        self.assertEqual(text.split("\n")[:-1],
                         ["10 job", "20 job", "30 job", "40 job", "50 job", "60 all"])

    def test_commands_to_the_nic_take_no_time(self):
        script = f"""if True:
            import subprocess, time
            rule = "{{name: x, on: frame, opcode: SEND, do: drop}}"
            for command in (["show"], ["set", "rocemu0", "port", "down"], ["set", "rocemu0", "port", "up"],
                            ["inject", rule], ["inject", "--list"], ["inject", "--clear"],
                            ["wait", "--device-ready"]):
                begin = time.monotonic_ns()
                subprocess.run(["{ROCEMU}", *command], check=True, stdout=subprocess.DEVNULL)
                print(time.monotonic_ns() - begin, command[0])
        """
        text = self.python(script)
        self.assertEqual(text.split(), "0 show 0 set 0 set 0 inject 0 inject 0 inject 0 wait".split())

    def test_what_a_command_does_happens_when_it_is_given(self):
        script = (f"ibv_asyncwatch -d rocemu0 & sleep 7; {ROCEMU} set rocemu0 port down; sleep 2;"
                  f"{ROCEMU} set rocemu0 port up; kill $!; wait $!; true")
        with temporary_directory() as directory:
            rocemu_run("sh", "-c", script, options=("--timeout", "50", "--lockstep", "--record", f"{directory}/run"))
            shown = run(ROCEMU, "timeline", f"{directory}/run", "--kind", "event", check=True).stdout
        self.assertEqual(re.findall(r"(\d+ m?s) .*port (down|up)", shown), [("7 s", "down"), ("9 s", "up")], shown)

    def test_timeout_ends_its_command(self):
        script = ("begin=$(date +%s); timeout 60 sleep 3600; echo status $?;"
                  "echo $(($(date +%s) - begin)) timeout")
        text = self.soon("sh", "-c", script)
        self.assertIn("status 124\n", text)
        self.assert_times(text, [("timeout", 60)])

    def test_timeout_leaves_a_quick_command_alone(self):
        text = self.soon("timeout", "60", "sh", "-c", "sleep 59; ibv_devices")
        self.assertIn("rocemu0", text)

    def test_rping_gives_up_when_nobody_answers(self):
        rping = "rping -c -a 127.0.0.1 -p 7174 -C 1"
        lost = ("--scenario", "cm-timeout")
        script = f"begin=$(date +%s); rping -s -a 127.0.0.1 -p 7174 -C 1 & {rping};" \
                 "kill $!; echo took $(($(date +%s) - begin)) s"
        text = self.soon("sh", "-c", script, options=lost)
        self.assertIn("UNREACHABLE", text)
        # All attempts take a minute (IBTA vol 1, 12.7.27: the response timeout of the request).
        self.assertGreater(int(re.search(r"took (\d+) s", text)[1]), 10, text)

    def test_sleeping_between_messages(self):
        """Starts a server and a client with a sleep in between, as scripts do."""
        pingpong = f"ibv_rc_pingpong -g 0 -n 5 -p {free_port()}"
        script = f"{pingpong} & sleep 1; {pingpong} 127.0.0.1 && wait $! && sleep 100"
        text = self.soon("sh", "-c", script)
        self.assertEqual(text.count("5 iters in"), 2, text)


def load_tests(_loader, tests, _pattern):
    return AtOnce(tests)


if __name__ == "__main__":
    unittest.main()
