"""Tests `adversarial` and `seed` of rocemu.Fabric, of the pytest plugin and of the GitHub action
(docs/adversarial.md)."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ROCEMU_BUILD"])
sys.path.insert(0, str(BUILD / "share" / "rocemu" / "python"))
import rocemu  # noqa: E402

PROGRAMS = BUILD / "bin" / "adversarial"
ACTION = pathlib.Path(__file__).resolve().parents[2] / "action.yml"
SEEDS = 20  # a wrong program of tests/adversarial fails with at least one of these seeds


class Fabric(unittest.TestCase):
    def statuses(self, program, **options):
        for seed in range(SEEDS):
            with rocemu.Fabric(clock="lockstep", seed=seed, **options) as fabric:
                yield fabric.run([PROGRAMS / program], stderr=subprocess.DEVNULL).returncode

    def test_a_wrong_program_fails_with_its_class(self):
        for value in ("placement", ["order", "placement"], True):
            with self.subTest(value):
                self.assertIn(1, self.statuses("last_byte", adversarial=value))

    def test_passes_without_and_with_other_classes(self):
        self.assertEqual(set(self.statuses("last_byte")), {0})
        self.assertEqual(set(self.statuses("last_byte", adversarial="order")), {0})

    def test_an_unknown_class_is_an_error(self):
        with self.assertRaisesRegex(rocemu.Error, "--adversarial has no class 'latency'"):
            rocemu.Fabric(adversarial="latency")


class Plugin(unittest.TestCase):
    def pytest(self, *options):
        test = f"""
import pytest

@pytest.mark.rocemu(clock="lockstep")
def test_last_byte(fabric):
    assert fabric.run(["{PROGRAMS / 'last_byte'}"]).returncode == 0
"""
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "test_it.py").write_text(test, encoding="utf-8")
            environment = {**os.environ, "PYTHONPATH": str(BUILD / "share" / "rocemu" / "python")}
            return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "pytest_rocemu", "test_it.py", *options],
                                  cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=120, check=False)

    def setUp(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest: apt-get install python3-pytest")

    def test_the_option_turns_classes_on_and_the_seed_chooses(self):
        statuses = [self.pytest("--rocemu-adversarial=placement", f"--rocemu-seed={seed}").returncode
                    for seed in range(8)]
        self.assertIn(1, statuses)
        self.assertEqual(self.pytest("--rocemu-seed=3").returncode, 0)

    def test_a_path_is_no_class(self):
        result = self.pytest("--rocemu-adversarial", "test_it.py")
        self.assertIn("--rocemu-adversarial takes 'test_it.py' for its classes", result.stdout)


class Action(unittest.TestCase):
    def run_step(self, command):
        try:
            import yaml
        except ImportError as error:
            raise unittest.SkipTest(f"{error}: apt-get install python3-yaml") from error
        steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
        script, = [step["run"] for step in steps if step.get("if") == "inputs.adversarial != ''"]
        environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}",
                       "ROCEMU_ACTION_COMMAND": str(command)}
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)

    def test_ends_at_the_first_seed_that_fails_and_names_it(self):
        result = self.run_step(PROGRAMS / "last_byte")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"rocemu run --adversarial --lockstep --seed \d+\nfailed: ")

    def test_a_right_program_passes_with_all_seeds(self):
        result = self.run_step(PROGRAMS / "last_byte_right")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(len(re.findall("--seed", result.stdout)), SEEDS)


if __name__ == "__main__":
    unittest.main()
