"""Tests the exploration of a pytest test with the marker rocemu_explore."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

from support import ROCEMU, TIMEOUT, VICTIM, ExploreTest

PLUGIN = pathlib.Path(__file__).resolve().parents[3] / "testing" / "python"
TESTS = """
import ctypes, os, pytest, subprocess

@pytest.mark.rocemu_explore("--only", "verbs:reg_mr")
@pytest.mark.parametrize("manner", ["survives", "crashes"])
def test_registers(manner):
    result = subprocess.run([os.environ["ROCEMU_VICTIM"], manner], capture_output=True, text=True)
    assert result.stdout == "registered 4096 bytes\\n"

def test_that_is_not_explored():
    assert "ROCEMU_DIR" not in os.environ
"""


@unittest.skipUnless(importlib.util.find_spec("pytest"), "python3-pytest is not installed")
class Pytest(ExploreTest):
    def test_the_marker_explores_a_test(self):
        (self.scratch / "conftest.py").write_text('pytest_plugins = ["rocemu"]\n')
        (self.scratch / "test_it.py").write_text(TESTS)
        environment = {**self.environment, "PYTHONPATH": str(PLUGIN), "ROCEMU_COMMAND": ROCEMU,
                       "ROCEMU_VICTIM": VICTIM}
        result = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
                                cwd=self.scratch, env=environment, timeout=TIMEOUT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertIn("1 failed, 2 passed", result.stdout)
        self.assertIn("explore_victim#1 received SIGSEGV after explore_victim#1's 1st reg_mr fails",
                      result.stdout)
        self.assertIn("reproduce: rocemu run --lockstep --scenario", result.stdout)
        self.assertTrue(os.listdir(self.scratch / "rocemu-findings"))


if __name__ == "__main__":
    unittest.main()
