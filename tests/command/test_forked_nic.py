"""Tests that the NIC of `rocemu run` is a child that becomes rocemud without execve(2), and that it looks like an
executed program."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import BIN, PYTHON, ROCEMU, TIMEOUT, CommandTest

LIBRARIES = BIN.parent / "lib" / "rocemu"

# Prints what /proc shows about the run's NIC.
LOOK = """if True:
    import json, os, re, subprocess, sys, time
    pid = json.loads(subprocess.check_output([sys.argv[1], "show", "--json"]))["pid"]
    read = lambda name: open(f"/proc/{pid}/{name}", encoding="utf-8").read()
    status = dict(line.split(":\\t", 1) for line in read("status").splitlines())
    arguments = read("cmdline").split("\\0")
    # It has reported that it is ready, and closes that descriptor; the connection of `show` may then have its number.
    ready = arguments[arguments.index("--ready-fd") + 1]
    until = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}/fd/{ready}") and time.monotonic() < until:
        time.sleep(0.01)
    descriptors = {number: re.sub(r"\\d+|run-.*", "", os.readlink(f"/proc/{pid}/fd/{number}"))
                   for number in os.listdir(f"/proc/{pid}/fd")}
    print(json.dumps({
        "executable": os.path.basename(os.readlink(f"/proc/{pid}/exe")), "name": read("comm"),
        "program": os.path.basename(arguments[0]),
        "options": [re.sub(r"run-.*|^\\d+$", "", one) for one in arguments[1:]],
        "directory": os.readlink(f"/proc/{pid}/cwd"), "leads": [os.getsid(pid) == pid, os.getpgid(pid) == pid],
        "limits": read("limits"), "descriptors": descriptors,
        "status": {name: value for name, value in status.items()
                   if name in ("Threads", "NoNewPrivs", "Umask", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")
                   or name.startswith("Cap")},
        "libraries": sorted(set(re.findall(r"/librocemu[^/]*$", read("maps"), re.M)))}))
"""


class ForkedNic(CommandTest):
    def look(self, rocemu=ROCEMU, env=None):
        """Returns what /proc shows about the NIC if its parent ignores a signal and has one more descriptor than
        usual."""
        read_end, write_end = os.pipe()
        try:
            result = subprocess.run(["sh", "-c", 'trap "" USR1; exec "$@"', "sh", rocemu, "run", "--", *PYTHON, LOOK,
                                     rocemu],
                                    capture_output=True, text=True, timeout=TIMEOUT, check=False, pass_fds=[write_end],
                                    env={**self.environment, **(env or {})})
        finally:
            os.close(read_end)
            os.close(write_end)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def copy_with_a_script_as_rocemud(self):
        prefix = self.scratch / "prefix"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(BIN / "rocemu", prefix / "bin")
        shutil.copytree(LIBRARIES, prefix / "lib" / "rocemu", symlinks=True)
        script = prefix / "bin" / "rocemud"
        script.write_text(f'#!/bin/sh\nexec "{BIN}/rocemud" "$@"\n')
        script.chmod(0o755)
        return str(prefix / "bin" / "rocemu")

    def test_looks_like_one_that_was_executed(self):
        # If rocemud is a script, it is always executed.
        executed = self.look(self.copy_with_a_script_as_rocemud())
        self.assertEqual((executed.pop("executable"), executed["name"]), ("rocemud", "rocemud\n"))
        forked = self.look()
        if forked.pop("executable") == "rocemud":
            self.skipTest("a sanitizer build, or a kernel without PR_SET_MM_MAP: the NIC is executed")
        self.assertEqual(forked, executed)

    def test_is_executed_if_a_library_is_preloaded_into_rocemu(self):
        seen = self.look(env={"LD_PRELOAD": str(LIBRARIES / "librocemu.so")})
        self.assertEqual((seen["executable"], seen["libraries"]), ("rocemud", []))

    def test_is_executed_if_the_file_of_rocemud_has_privileges(self):
        copy = pathlib.Path(self.copy_with_a_script_as_rocemud())
        daemon = copy.parent / "rocemud"
        shutil.copy(BIN / "rocemud", daemon)
        daemon.chmod(0o4755)
        self.assertEqual(self.look(str(copy))["executable"], "rocemud")


if __name__ == "__main__":
    unittest.main()
