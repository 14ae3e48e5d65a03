"""Tests that programs that do not use RDMA behave under `rocemu run` as they do outside."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from rocemu import HERE, ROCEMU, rocemu_run, run, temporary_directory

LIBC = ctypes.CDLL(None, use_errno=True)


def may_make_namespaces():
    return subprocess.run(["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True, check=False).returncode == 0


class OrdinaryPrograms(unittest.TestCase):
    def same_inside(self, *command, **keywords):
        outside = run(*command, **keywords)
        inside = rocemu_run(*command, **keywords)
        self.assertEqual((inside.returncode, inside.stdout), (outside.returncode, outside.stdout))
        return inside

    def test_git(self):
        with temporary_directory() as directory:
            script = ("git init -q . && git config user.name n && git config user.email e@x && "
                      "echo a > a && git add a && git commit -qm one && git log --format=%s && "
                      "git clone -q . copy && cat copy/a")
            result = rocemu_run("sh", "-ec", script, cwd=directory)
        self.assertEqual((result.returncode, result.stdout), (0, "one\na\n"))

    def test_debuggers(self):
        """A process that a debugger stops must be able to continue before the turn of the programs ends."""
        for options in ((), ("--lockstep",)):
            for debugger in (["strace", "-f", "-o", "/dev/null"],
                             ["gdb", "-batch", "-ex", "run", "--args"]):
                with self.subTest(debugger=debugger[0], options=options):
                    if shutil.which(debugger[0]) is None:
                        self.skipTest(f"there is no {debugger[0]}")
                    result = rocemu_run(*debugger, "/bin/echo", "traced", options=options)
                    self.assertEqual(result.returncode, 0, result.stdout)
                    self.assertIn("traced\n", result.stdout)

    def test_a_debugger_waits_while_the_daemon_looks(self):
        """The daemon sometimes traces a thread for a moment, which the program must not notice. Here the test
        itself traces the thread."""
        seize, interrupt, detach = 0x4206, 0x4207, 17

        def trace(request, process):
            if LIBC.ptrace(request, ctypes.c_long(process), None, None) != 0:
                raise OSError(ctypes.get_errno(), f"ptrace({request:#x})")

        program = ("import ctypes, os\n"
                   "print(os.getpid(), flush=True)\n"
                   "input()\n"
                   "print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))\n")  # PTRACE_TRACEME
        with subprocess.Popen([ROCEMU, "run", "--private", "--lockstep", "--", "python3", "-c", program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
            process = int(running.stdout.readline())
            trace(seize, process)
            running.stdin.write("\n")
            running.stdin.flush()
            time.sleep(0.02)
            trace(interrupt, process)
            os.waitpid(process, 0x40000000)  # __WALL
            trace(detach, process)
            self.assertEqual(running.stdout.read(), "0\n")
        self.assertEqual(running.returncode, 0)

    def test_python(self):
        self.same_inside("python3", "-c",
                         "import os, socket, subprocess, threading, json, tempfile\n"
                         "print(subprocess.check_output(['echo', 'x']))\n"
                         "a, b = socket.socketpair(); a.send(b'y'); print(b.recv(1))\n"
                         "r, w = os.pipe(); os.write(w, b'z'); print(os.read(r, 1))\n"
                         "print(os.fstat(0).st_mode, os.stat('/dev/null').st_rdev)\n"
                         "print(os.path.realpath('/sys/class/net/lo'))\n")

    def test_a_shell_with_background_jobs_pipes_and_exec(self):
        with temporary_directory() as directory:
            self.same_inside("bash", "-c",
                             # the scheduler decides when bash prints "Done", so that line is dropped
                             "set -m; exec 2>/dev/null;"
                             "sleep 0.01 & (exit 3) & wait $!; echo waited $?; wait; echo all;"
                             "mkfifo fifo; cat fifo & echo through > fifo; wait; rm fifo;"
                             "seq 1000 | sort -n | tail -1; (exec sh -c 'echo deeper'); exec echo last",
                             cwd=directory)

    def test_a_failing_program_fails_as_it_does_outside(self):
        self.same_inside("ls", "/no/such/file")
        self.same_inside("sh", "-c", "exit 42")

    def test_a_c_program_is_compiled_and_run(self):
        with temporary_directory() as directory:
            source = pathlib.Path(directory) / "hello.c"
            source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
            result = rocemu_run("sh", "-c", "g++ -x c hello.c -o hello && ./hello", cwd=directory)
        self.assertEqual((result.returncode, result.stdout), (3, "hello\n"))

    def test_this_projects_own_build(self):
        root = HERE.parent.parent
        with temporary_directory() as directory:
            result = rocemu_run("sh", "-c", f"cmake -S {root} -B {directory} -G Ninja && "
                                            f"ninja -C {directory} rocemu_wire", timeout=280)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertTrue((pathlib.Path(directory) / "lib" / "librocemu_wire.a").exists())

    @unittest.skipUnless(may_make_namespaces(), "unshare --pid is not permitted")
    def test_namespaces_of_processes(self):
        """A message names a program that runs in a separate namespace, and the run continues. The program's /proc
        must be that of rocemu's namespace."""
        program = ("unshare", "--map-root-user", "--pid", "--fork")
        result = rocemu_run(*program, "ibv_devinfo", options=("--lockstep",))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("is in a separate PID namespace: rocemu cannot schedule this process", result.stdout)
        self.assertIn("hca_id:\trocemu0", result.stdout)
        inside = (ROCEMU, "run", "--lockstep", "--", "ibv_devinfo")
        result = run(*program, "--mount-proc", *inside)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("warning", result.stdout)
        result = run(*program, *inside)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("/proc is not that of this PID namespace", result.stdout)

    def test_stdin_passes_through(self):
        result = subprocess.run([ROCEMU, "run", "--private", "--",
                                 "tr", "a-z", "A-Z"], input="quiet\n", text=True,
                                stdout=subprocess.PIPE, check=True)
        self.assertEqual(result.stdout, "QUIET\n")


if __name__ == "__main__":
    unittest.main()
