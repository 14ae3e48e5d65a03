"""`cmake --install`: what is installed works from there, also through a link."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import PYTHON, TIMEOUT, CommandTest

PRINT_PRELOAD = "import os; print(os.environ['LD_PRELOAD'])"


class Install(CommandTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.scratch / "prefix"
        subprocess.run(["cmake", "--install", os.environ["ROCEMU_BUILD"], "--prefix", self.prefix],
                       check=True, capture_output=True, timeout=TIMEOUT)

    def run_installed(self, *arguments, program=None):
        result = subprocess.run([program or self.prefix / "bin" / "rocemu", *arguments],
                                capture_output=True, text=True, env=self.environment,
                                timeout=TIMEOUT, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_runs_with_the_installed_parts(self):
        preload = self.run_installed("run", "--", *PYTHON, PRINT_PRELOAD).strip()
        shim = pathlib.Path(preload.split(":")[-1])
        self.assertTrue(shim.is_relative_to(self.prefix), shim)
        self.assertIn(f"{self.prefix}/bin/rocemud", self.run_installed("doctor"))

    def test_the_scenarios_are_installed(self):
        for one in json.loads(self.run_installed("scenarios", "--json")):
            self.assertTrue(pathlib.Path(one["file"]).is_relative_to(self.prefix), one)
            self.run_installed("check", one["name"])

    def test_runs_through_a_link(self):
        link = self.scratch / "rocemu"
        link.symlink_to(self.prefix / "bin" / "rocemu")
        self.run_installed("run", "--", "true", program=link)

    @unittest.skipIf(shutil.which("ibv_devices") is None, "ibverbs-utils is not installed")
    def test_programs_find_the_installed_provider(self):
        self.assertIn("rocemu1", self.run_installed("run", "--", "ibv_devices"))


if __name__ == "__main__":
    unittest.main()
