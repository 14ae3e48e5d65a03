"""Common parts of the tests of `rocemu explore`."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROCEMU = str(pathlib.Path(os.environ["ROCEMU_BIN"]) / "rocemu")
VICTIM = os.environ["ROCEMU_VICTIM"]
TIMEOUT = 240  # seconds, far longer than any command of the tests takes


class ExploreTest(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="rocemu-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        # a short name, since it is part of the names of sockets
        self.runtime = tempfile.mkdtemp(prefix="rx-")
        self.addCleanup(shutil.rmtree, self.runtime, ignore_errors=True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime,
                            "TMPDIR": str(self.scratch)}

    def start(self, *arguments, command):
        return subprocess.Popen([ROCEMU, "explore", *arguments, "--", *command],
                                cwd=self.scratch, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def explore(self, *arguments, command):
        """Runs `rocemu explore`. Returns exit status, standard output and standard error."""
        process = self.start(*arguments, command=command)
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, err

    def report(self, *arguments, command, status):
        code, out, err = self.explore("--json", *arguments, command=command)
        self.assertEqual(code, status, out + err)
        return json.loads(out)

    def nothing_is_left(self, word):
        """Checks that no process has `word` in its command line, and that no file of a run
        remains."""
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                self.assertNotIn(word.encode(), line)
        self.assertEqual(list(self.scratch.glob("rocemu-??????")), [])
