"""Tests `rocemu run`: the command behaves as it does without rocemu, and nothing remains afterwards."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest

from support import BIN, PYTHON, ROCEMU, TIMEOUT, CommandTest, give_away, wait_for


class ExitStatus(CommandTest):
    def test_of_the_command_is_passed_on(self):
        for status in (0, 1, 2, 77, 255):
            result = self.rocemu("run", "--", "sh", "-c", f"exit {status}")
            self.assertEqual((result.returncode, result.stderr), (status, ""))

    def test_is_128_and_the_signal_that_killed_the_command(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGINT):
            result = self.rocemu("run", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(result.returncode, 128 + number)

    def test_is_127_if_there_is_no_such_program(self):
        for name in ("rocemu-no-such-program", "/no/such/program", "./no-such-program"):
            self.assert_one_line(self.rocemu("run", "--", name), 127, name)

    def test_is_126_if_it_cannot_be_executed(self):
        file = self.scratch / "data"
        file.write_text("no program")
        self.assert_one_line(self.rocemu("run", "--", file), 126, str(file), "chmod +x")
        self.assert_one_line(self.rocemu("run", "--", self.scratch), 126, str(self.scratch), "is a directory")
        self.assert_one_line(self.rocemu("run", "--", "data", env={"PATH": str(self.scratch)}),
                             126, "data")

    def script(self, text, name="script"):
        file = self.scratch / name
        file.write_bytes(text)
        file.chmod(0o755)
        return file

    def test_is_127_if_the_interpreter_of_a_script_is_missing(self):
        for line, name in ((b"#!/no/such/interpreter\n", "/no/such/interpreter"),
                           (b"#! /no/such/interpreter -u\n", "/no/such/interpreter"),
                           (b"#!no-such-interpreter", "no-such-interpreter"),
                           (b"#!/usr/bin/env rocemu-no-such-program\n", "rocemu-no-such-program"),
                           (b"#!/usr/bin/env -S rocemu-no-such-program -u\n", "rocemu-no-such-program")):
            script = self.script(line)
            said = f"the interpreter {name} of {script}"
            self.assert_one_line(self.rocemu("run", "--", script), 127, said, "install")
            self.assert_one_line(self.rocemu("run", "--", "script", env={"PATH": f"{self.scratch}:/usr/bin"}), 127, said)
            self.assert_one_line(self.rocemu("explore", "--output", self.scratch / "found", "--", script), 127, said)

    def test_is_127_for_a_script_with_the_line_ends_of_dos(self):
        for line in (b"#!/bin/sh\r\n", b"#!/usr/bin/env sh\r\n"):
            self.assert_one_line(self.rocemu("run", "--", self.script(line + b"exit\r\n")), 127, "carriage return")

    def test_is_126_if_the_interpreter_cannot_be_executed(self):
        for interpreter in (self.scratch, "/etc/passwd"):
            script = self.script(f"#!{interpreter}\n".encode())
            self.assert_one_line(self.rocemu("run", "--", script), 126, f"the interpreter {interpreter} of {script}")

    def test_is_126_for_a_program_of_another_machine(self):
        program = bytearray(pathlib.Path("/bin/true").read_bytes())
        program[18:20] = (183 if os.uname().machine == "x86_64" else 62).to_bytes(2, "little")  # e_machine
        foreign = self.script(bytes(program), "foreign")
        try:
            subprocess.run([foreign], check=False)
            self.skipTest("this machine runs programs of others, by binfmt_misc")
        except OSError:
            pass
        result = self.rocemu("run", "--", foreign)
        self.assert_one_line(result, 126, str(foreign), "built for another machine")

    def test_of_scripts_that_run_is_their_own(self):
        for text in (b"#!/bin/sh\nexit 3\n", b"#! /bin/sh -e\nexit 3\n", b"#!/usr/bin/env sh\nexit 3\n",
                     b"#!/usr/bin/env -S sh -e\nexit 3\n", b"#!/usr/bin/env -S A=3 sh\nexit $A\n",
                     b"exit 3\n"):  # without "#!", a shell runs the file
            result = self.rocemu("run", "--", self.script(text))
            self.assertEqual((result.returncode, result.stderr), (3, ""))

    def test_is_1_if_the_nic_cannot_start(self):
        result = self.rocemu("run", "--capture", "/no/such/folder/x.pcap", "--", "true")
        self.assert_one_line(result, 1, "/no/such/folder/x.pcap", "No such file")
        self.assert_one_line(self.rocemu("run", "--capture", self.scratch, "--", "true"), 1,
                             str(self.scratch))

    def test_is_1_if_the_nic_dies_under_a_command_that_succeeds(self):
        code = """if True:
            import json, os, signal, subprocess, sys, time
            show = [sys.argv[1], "show", "--json"]
            os.kill(json.loads(subprocess.check_output(show))["pid"], signal.SIGKILL)
            time.sleep(0.2)
        """
        result = self.rocemu("run", "--", *PYTHON, code, ROCEMU)
        self.assert_one_line(result, 1, "rocemud was killed by signal 9")


class TheCommandSees(CommandTest):
    def test_its_input_and_output(self):
        result = subprocess.run([ROCEMU, "run", "--", "sh", "-c", "cat; echo oops >&2"],
                                input="in\n", capture_output=True, text=True, timeout=TIMEOUT,
                                env=self.environment, check=False)
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("in\n", "oops\n", 0))

    def test_its_arguments_as_they_are(self):
        arguments = ["", " ", "a b", "*", "$HOME", "--", "--devices", "'\"", "line\nbreak", "\\"]
        code = "import json, sys; print(json.dumps(sys.argv[1:]))"
        result = self.rocemu("run", "--", *PYTHON, code, *arguments)
        self.assertEqual(json.loads(result.stdout), arguments)

    def test_its_folder_and_process_group(self):
        code = "import os; print(os.getcwd(), os.getpgrp() == os.getpgid(os.getppid()))"
        self.assertEqual(self.run_python(code, cwd=self.scratch), f"{self.scratch} True\n")

    def test_a_private_directory(self):
        code = "import os; d = os.environ['ROCEMU_DIR']; print(d, oct(os.stat(d).st_mode))"
        directory, mode = self.run_python(code).split()
        self.assertRegex(directory, rf"\A{self.base}/run-\d+-[0-9a-f]+\Z")
        self.assertEqual(mode, oct(stat.S_IFDIR | 0o700))

    def test_the_shim_before_what_was_preloaded(self):
        # The program loads this library anyway, so preloading it changes nothing.
        code = "import os; print(os.environ['LD_PRELOAD'])"
        other = "libc.so.6"
        # In a sanitizer build, rocemu itself needs the sanitizer's run-time to be loaded first, which is not the case
        # here.
        environment = {"LD_PRELOAD": other,
                       "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        preload = self.run_python(code, env=environment).strip().split(":")
        self.assertEqual(os.path.basename(preload[-2]), "librocemu.so")
        self.assertEqual(preload[-1], other)

    def test_the_shim_once_in_a_run_within_a_run(self):
        code = "import os; print(os.environ['LD_PRELOAD'].count('librocemu.so'))"
        result = self.rocemu("run", "--", ROCEMU, "run", "--", *PYTHON, code)
        self.assertEqual((result.stdout, result.stderr), ("1\n", ""))

    def test_one_virtual_clock_in_a_run_within_a_run(self):
        for outer, inner in (("--lockstep", ["run", "--private", "--lockstep", "--", "true"]),
                             ("--lockstep", ["run", "--lockstep", "--check-determinism", "2", "--", "true"]),
                             ("--lockstep", ["up", "--lockstep"]),
                             ("--lockstep", ["explore", "--output", self.scratch / "found", "--", "true"])):
            result = self.rocemu("run", outer, "--", ROCEMU, *inner)
            self.assertIn("cannot contain another run in lockstep; use the real clock", result.stderr)
            self.assertNotIn(result.returncode, (0, 123, 124))
        for outer, inner in (("--lockstep", "--private"), ("--private", "--lockstep")):
            result = self.rocemu("run", outer, "--", ROCEMU, "run", inner, "--", "ibv_devices")
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_descriptor_of_ours(self):
        code = "import os; print([os.path.exists(f'/proc/self/fd/{i}') for i in range(3, 20)])"
        self.assertNotIn("True", self.run_python(code))

    def test_the_descriptors_it_was_given(self):
        read_end, write_end = os.pipe()
        self.run_python(f"import os; os.write({write_end}, b'x')", pass_fds=[write_end])
        os.close(write_end)
        self.assertEqual(os.read(read_end, 9), b"x")
        os.close(read_end)

    def test_no_zombie_of_programs_that_it_left(self):
        # Orphans of the run become children of this code, which then has none (prctl(2), PR_SET_CHILD_SUBREAPER = 36).
        code = ("import ctypes, os, subprocess, sys\nctypes.CDLL(None).prctl(36, 1)\nsubprocess.run(sys.argv[1:])\n"
                "try: print(os.waitpid(-1, 0))\nexcept ChildProcessError: print('none')")
        leave = "for i in 1 2 3 4 5 6; do rping -s -a 127.0.0.1 -p 7$i & done; sleep 1"
        for clock in ("--private", "--lockstep"):
            command = [*PYTHON, code, ROCEMU, "run", clock, "--", "sh", "-c", leave]
            result = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True, timeout=TIMEOUT, check=True)
            self.assertEqual(result.stdout.splitlines()[-1], "none", clock)

    def test_closed_standard_descriptors_as_closed(self):
        # exits with a bit for each standard descriptor that is open
        shows = ["sh", "-c", "s=0; for f in 0 1 2; do test -e /proc/$$/fd/$f && s=$((s + (1 << f))); done; exit $s"]
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"):
            statuses = [subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *prefix, *shows], env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       timeout=TIMEOUT, check=False).returncode
                        for prefix in ([], [ROCEMU, "run", "--private", "--"], [ROCEMU, "run", "--lockstep", "--"])]
            open_bits = 7 - sum(1 << int(digit) for digit in closed if digit.isdigit())
            self.assertEqual(statuses, [open_bits] * 3, closed)

    def test_the_signals_as_they_were(self):
        def odd_signals():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])

        for change in (None, odd_signals):
            command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
            plain = subprocess.run(command, capture_output=True, text=True, check=True,
                                   restore_signals=False, preexec_fn=change)
            result = self.rocemu("run", "--", *command, restore_signals=False, preexec_fn=change)
            self.assertEqual((result.stdout, result.returncode), (plain.stdout, 0))

    def test_a_capture_beside_it(self):
        self.assertEqual(self.run_python("", "--capture", "a.pcap", cwd=self.scratch), "")
        self.assertGreaterEqual((self.scratch / "a.pcap").stat().st_size, 24)


def read_bytes(path):
    """Returns the content of the file, or nothing if it does not exist any more."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class TheNic(CommandTest):
    def test_keeps_no_descriptor_of_others(self):
        read_end, write_end = os.pipe()
        name = os.readlink(f"/proc/self/fd/{write_end}")
        code = """if True:
            import json, os, subprocess, sys
            show = [sys.argv[1], "show", "--json"]
            pid = json.loads(subprocess.check_output(show))["pid"]
            for fd in os.listdir(f"/proc/{pid}/fd"):
                print(fd, os.readlink(f"/proc/{pid}/fd/{fd}"))
            print("session", os.getsid(pid) == pid)
        """
        result = self.rocemu("run", "--", *PYTHON, code, ROCEMU, pass_fds=[write_end])
        os.close(read_end)
        os.close(write_end)
        self.assertNotIn(name, result.stdout)
        self.assertIn("session True", result.stdout)

    def test_has_the_devices_asked_for(self):
        code = """if True:
            import json, os, subprocess, sys
            show = [sys.argv[1], "show", "--json"]
            devices = json.loads(subprocess.check_output(show))["fabric"]["devices"]
            print(*(device["name"] for device in devices))
        """
        for options, names in (([], "rocemu0 rocemu1"), (["--devices", "1"], "rocemu0"),
                               (["--device", "b", "--device=a=10.0.0.1,fd00::1"], "b a")):
            result = self.rocemu("run", *options, "--", *PYTHON, code, ROCEMU)
            self.assertEqual((result.stdout.strip(), result.stderr), (names, ""))

    def test_is_another_one_for_each_of_many_at_once(self):
        directories = []

        def one():
            directories.append(self.run_python("import os; print(os.environ['ROCEMU_DIR'])"))

        threads = [threading.Thread(target=one) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(directories)), 16)

    def test_goes_when_rocemu_is_killed(self):
        process = self.start("run", "--", "sh", "-c", "echo $$; exec sleep 60")
        program = int(process.stdout.readline())
        process.kill()
        process.wait()
        wait_for(lambda: not os.path.exists(self.base), "the runtime directory to go")
        os.kill(program, signal.SIGKILL)

    def test_goes_when_rocemu_is_killed_while_it_starts_in_lockstep(self):
        """During the start, the NIC may have any parent, so other processes of the machine must not count as its
        programs."""
        def is_anything_left():
            # The command line of rocemu, and later that of its NIC, contains the directory.
            return os.path.exists(self.base) or any(
                os.fsencode(self.base) in read_bytes(name) for name in pathlib.Path("/proc").glob("[0-9]*/cmdline"))

        bystander = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            for delay in range(40):
                process = subprocess.Popen(
                    [ROCEMU, "run", "--lockstep", "--", "sh", "-c", "while :; do :; done", self.base],
                    env=self.environment, start_new_session=True, stderr=subprocess.DEVNULL)
                time.sleep(0.001 * delay)
                process.kill()
                process.wait()
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # its program
                except ProcessLookupError:
                    pass
                wait_for(lambda: not is_anything_left(), "the NIC and its directories to go")
            status = pathlib.Path(f"/proc/{bystander.pid}/status").read_text()
            self.assertIn("TracerPid:\t0\n", status)
        finally:
            bystander.kill()
            bystander.wait()

    def test_goes_when_nobody_reads_the_report(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        process = subprocess.Popen(
            [ROCEMU, "run", "--lockstep", "--", sys.executable, "-c",
             "import os, threading; print(os.getpid(), flush=True); threading.Lock().acquire(); "
             "lock = threading.Lock(); lock.acquire(); lock.acquire()"],
            env=self.environment, stdout=subprocess.PIPE, stderr=write_end, text=True)
        os.close(write_end)
        program = int(process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(), 123)
        self.assertFalse(os.path.exists(f"/proc/{program}"))
        wait_for(lambda: not os.path.exists(self.base), "the runtime directory to go")


class OneProcessor(CommandTest):
    def setUp(self):
        super().setUp()
        self.all = sorted(os.sched_getaffinity(0))
        self.one = self.all[-1]

    def told(self, code, *command):
        result = self.rocemu("run", "--lockstep", "--processor", str(self.one), "--", *command,
                             sys.executable, "-c", code)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_keeps_programs_there_and_tells_them_of_all(self):
        told = self.told("import os, threading\n"
                         "seen = [os.sched_getaffinity(0), os.sched_getaffinity(os.getpid())]\n"
                         "thread = threading.Thread(target=lambda: "
                         "seen.append(os.sched_getaffinity(0)))\n"
                         "thread.start(); thread.join()\n"
                         "import ctypes\n"
                         "libc, words = ctypes.CDLL(None), (ctypes.c_uint64 * 16)()\n"
                         "size = libc.syscall(%d, 0, 128, words)\n"
                         "seen.append({64 * i + bit for i in range(size // 8) for bit in range(64) "
                         "if words[i] >> bit & 1})\n"
                         "print(*map(sorted, seen), sep='\\n')\n"
                         "print(open('/proc/self/status').read())"
                         % {"x86_64": 204}.get(os.uname().machine, 123))
        self.assertEqual(told.splitlines()[:4], [str(self.all)] * 4)
        self.assertIn(f"Cpus_allowed_list:\t{self.one}\n", told)

    def test_tells_each_thread_of_its_own_choice(self):
        for chosen in self.all[:2]:
            code = ("import os, subprocess, sys, threading\n"
                    "def seen(): return len(os.sched_getaffinity(0))\n"
                    "told = [seen()]\n"
                    "def choose():\n"
                    f"    os.sched_setaffinity(0, {{{chosen}}}); told.append(seen())\n"
                    "    inner = threading.Thread(target=lambda: told.append(seen()))\n"
                    "    inner.start(); inner.join()\n"
                    "for run in choose, lambda: told.append(seen()):\n"
                    "    thread = threading.Thread(target=run); thread.start(); thread.join()\n"
                    "told.append(seen())\n"
                    "told.append(int(subprocess.run(['nproc'], stdout=subprocess.PIPE).stdout))\n"
                    "os.environ.clear(); told.append(seen())\n"
                    "print(told)")
            many = len(self.all)
            self.assertEqual(self.told(code), f"{[many, 1, 1, many, many, many, many]}\n")

    def test_tells_what_remains_of_a_choice_beyond_the_processors_that_are_there(self):
        self.assertEqual(self.told(f"import os; os.sched_setaffinity(0, {{{self.one}, 1000}}); "
                                   "print(os.sched_getaffinity(0))"), f"{{{self.one}}}\n")

    def test_tells_the_truth_of_processors_that_a_program_chose(self):
        told = self.told(f"import os; os.sched_setaffinity(0, {{{self.one}}}); "
                         "print(os.sched_getaffinity(0))")
        self.assertEqual(told, f"{{{self.one}}}\n")
        code = "import os; print(os.sched_getaffinity(0))"
        self.assertEqual(self.told(code, "taskset", "-c", str(self.one)), f"{{{self.one}}}\n")

    def test_is_one_that_may_be_used_and_for_lockstep(self):
        self.assert_one_line(self.rocemu("run", "--lockstep", "--processor", "100000", "--", "true"),
                             2, "not one of the processors that may be used here")
        self.assert_one_line(self.rocemu("run", "--processor", str(self.one), "--", "true"),
                             2, "--processor needs --lockstep")


class RuntimeDirectory(CommandTest):
    def test_of_another_kind_is_not_trusted(self):
        os.symlink(self.scratch, self.base)
        self.assert_one_line(self.rocemu("run", "--", "true"), 1, self.base, "not a directory")
        self.assertEqual(os.listdir(self.scratch), [])
        os.unlink(self.base)

    def test_can_be_used_later_whatever_the_umask_was_first(self):
        inside = self.rocemu("run", "--", "stat", "-c", "%a", self.base, umask=0o777)
        if os.geteuid() == 0:  # with this umask, only root can use the directory
            self.assertEqual(inside.stdout, "700\n", inside.stderr)
        result = self.rocemu("run", "--", "true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_open_to_others_is_not_trusted(self):
        os.mkdir(self.base)
        os.chmod(self.base, 0o777)
        self.assert_one_line(self.rocemu("run", "--", "true"), 1, "chmod 700")
        os.rmdir(self.base)

    @unittest.skipIf(os.geteuid() == 65534, "that user")
    def test_of_another_user_is_not_trusted(self):
        os.mkdir(self.base, 0o700)
        try:
            give_away(self.base)
            self.assert_one_line(self.rocemu("run", "--", "true"), 1, "belongs to user 65534")
        finally:
            os.rmdir(self.base)

    def test_with_too_long_a_name_is_refused(self):
        long = self.scratch / ("x" * 100)
        long.mkdir()
        result = self.rocemu("run", "--", "true", env={"XDG_RUNTIME_DIR": str(long)})
        self.assert_one_line(result, 1, "too long", "XDG_RUNTIME_DIR")

    def test_is_in_memory_or_in_tmp_without_xdg_runtime_dir(self):
        bases = tuple(f"{parent}/rocemu-{os.geteuid()}/" for parent in ("/dev/shm", "/tmp"))
        for value in ("", "relative", "/no/such/folder"):
            code = "import os; print(os.environ['ROCEMU_DIR'])"
            directory = self.run_python(code, "--private", env={"XDG_RUNTIME_DIR": value})
            self.assertTrue(directory.startswith(bases), directory)
            self.assertFalse(os.path.exists(directory), directory)


class MissingParts(CommandTest):
    def copy_of_rocemu(self):
        (self.scratch / "bin").mkdir()
        copy = self.scratch / "bin" / "rocemu"
        copy.write_bytes((BIN / "rocemu").read_bytes())
        copy.chmod(0o755)
        return copy

    def run_copy(self, copy):
        return subprocess.run([copy, "run", "--", "true"], capture_output=True, text=True,
                              env=self.environment, timeout=TIMEOUT, check=False)

    def test_are_named(self):
        copy = self.copy_of_rocemu()
        self.assert_one_line(self.run_copy(copy), 1, "rocemud")
        os.symlink(BIN / "rocemud", copy.parent / "rocemud")
        self.assert_one_line(self.run_copy(copy), 1, "librocemu.so")


if __name__ == "__main__":
    unittest.main()
