"""A test case with a separate daemon in the background, which `rocemu run` uses."""
import json
import os
import pathlib
import subprocess
import time
import unittest

from rocemu import ROCEMU, processes_of, run, temporary_directory


# Versions 4 and 5 of Open MPI leave files with these names.
FILES_OF_MPI = ("vader_segment", "osc_rdma", "sm_segment")


class SharedDaemon(unittest.TestCase):
    """Each test has a separate daemon, in a separate directory."""

    def setUp(self):
        holder = temporary_directory()
        self.addCleanup(holder.cleanup)
        self.base = pathlib.Path(holder.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": holder.name}
        self.environment.pop("ROCEMU_DIR", None)
        self.shared_memory = self.files_of_shared_memory()
        up = self.rocemu("up")
        self.assertEqual(up.returncode, 0, up.stdout)
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self):
        down = self.rocemu("down")
        self.assertEqual(down.returncode, 0, down.stdout)
        self.assertEqual(os.listdir(self.base), [])
        self.assertEqual(processes_of(str(self.base)), [])
        self.assertEqual(self.files_of_shared_memory() - self.shared_memory, set())

    @staticmethod
    def files_of_shared_memory():
        """Returns the files in /dev/shm, without directories, which belong to other tests (see CTestCustom.cmake),
        and without the files of an MPI that runs at the same time."""
        return {entry.name for entry in os.scandir("/dev/shm")
                if not entry.is_dir() and not entry.name.startswith(FILES_OF_MPI)}

    def rocemu(self, *arguments):
        return run(ROCEMU, *arguments, env=self.environment)

    def start(self, *command):
        return subprocess.Popen([ROCEMU, "run", "--", *command], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def fabric(self):
        shown = self.rocemu("show", "--json")
        self.assertEqual(shown.returncode, 0, shown.stdout)
        return json.loads(shown.stdout)

    def objects(self):
        return sum(len(device[kind]) for device in self.fabric()["fabric"]["devices"]
                   for kind in ("qps", "cqs", "mrs"))

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what} did not come about")
            time.sleep(0.005)
