"""Tests the input `sanitize` of the GitHub action: runs its step in the same way as GitHub does."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import BIN, program

ACTION = pathlib.Path(__file__).resolve().parents[2] / "action.yml"
# The command with which GitHub runs steps with `shell: bash`.
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


class Action(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import yaml
        except ImportError as error:
            raise unittest.SkipTest(f"{error}: apt-get install python3-yaml") from error
        cls.action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def steps(self, **inputs):
        """Returns (script, environment) of each step that GitHub runs with these inputs."""
        values = {name: one.get("default", "") for name, one in self.action["inputs"].items()}
        values.update(inputs)
        for step in self.action["runs"]["steps"]:
            if "uses" in step:  # actions/cache and actions/upload-artifact
                continue
            condition = step.get("if")
            if condition is not None:
                name, = re.fullmatch(r"inputs\.(\w+) != ''", condition).groups()
                if not values[name]:
                    continue
            self.assertEqual(step["shell"], "bash")
            yield step["run"], {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}",
                                             lambda found: values[found[1]], text)
                                for name, text in step.get("env", {}).items()}

    def run_step(self, command):
        """Returns the exit status of the step, and the SARIF file that it wrote."""
        (script, variables), = [step for step in self.steps(sanitize=command)
                                if "--sanitize" in step[0]]
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ROCEMU", "LD_PRELOAD"))}
        environment["PATH"] = f"{BIN}:{environment['PATH']}"
        environment["GITHUB_ACTION_PATH"] = str(ACTION.parent)
        file = self.directory / "step.sh"
        file.write_text(script, encoding="utf-8")
        result = subprocess.run([*BASH, file], cwd=self.directory, env={**environment, **variables},
                                text=True, check=False, timeout=120, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        sarif = json.loads((self.directory / "rocemu-misuse.sarif").read_text(encoding="utf-8"))
        return result, sarif["runs"][0]["results"]

    def test_each_input_that_a_step_uses_is_declared(self):
        used = set(re.findall(r"inputs\.(\w+)", ACTION.read_text(encoding="utf-8")))
        self.assertEqual(used, set(self.action["inputs"]))

    def test_without_it_no_command_is_run(self):
        self.assertEqual([script for script, _ in self.steps() if "--sanitize" in script], [])

    def test_a_command_that_uses_verbs_wrongly_fails_and_leaves_its_reports(self):
        result, reports = self.run_step(str(program("mr_deregistered_in_use")))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("rocemu: error [mr-deregistered-in-use]", result.stdout)
        self.assertEqual([one["ruleId"] for one in reports], ["mr-deregistered-in-use"])

    def test_a_command_that_is_right_passes_and_leaves_an_empty_file(self):
        result, reports = self.run_step(str(program("mr_deregistered_in_use_right")))
        self.assertEqual((result.returncode, reports), (0, []), result.stdout)

    def test_the_status_of_the_command_stays_and_it_may_be_a_line_of_a_shell(self):
        result, _ = self.run_step("""test 'a b' = "a b" && exit 7""")
        self.assertEqual(result.returncode, 7, result.stdout)


if __name__ == "__main__":
    unittest.main()
