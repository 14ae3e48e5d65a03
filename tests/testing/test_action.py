"""Tests the steps of the GitHub action, which are run in the same way as GitHub does: outputs, annotations, and the
files of a failed job."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ROCEMU_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
STEP = ROOT / "packaging" / "action-step"
# The command with which GitHub runs steps with `shell: bash`.
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


def action():
    try:
        import yaml
    except ImportError as error:
        raise unittest.SkipTest(f"{error}: apt-get install python3-yaml") from error
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


class Job(unittest.TestCase):
    """A job with this action as its only step. A `rocemu` is already in PATH."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(directory.cleanup)
        self.workspace = pathlib.Path(directory.name)
        self.outputs = self.workspace / "outputs"

    def environment(self):
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith(("ROCEMU_", "LD_PRELOAD", "GITHUB_"))}
        return {**inherited, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(self.outputs),
                "GITHUB_WORKSPACE": str(self.workspace)}

    def run_steps(self, **inputs):
        """Runs the steps. Returns the exit status of the first step that fails, or 0, and all output."""
        declared = action()
        values = {name: one.get("default", "") for name, one in declared["inputs"].items()} | inputs
        printed = ""
        for step in declared["runs"]["steps"]:
            named = re.search(r"inputs\.(\w+) != ''", step.get("if", ""))
            if "uses" in step or (named and not values[named[1]]) or "install-release" in step["run"]:
                continue
            variables = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)
                         for name, text in step.get("env", {}).items()}
            script = self.workspace / "step.sh"
            script.write_text(step["run"], encoding="utf-8")
            result = subprocess.run([*BASH, script], cwd=self.workspace, env={**self.environment(), **variables},
                                    text=True, check=False, timeout=240, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT)
            printed += result.stdout
            if result.returncode != 0:
                return result.returncode, printed
        return 0, printed

    def given_outputs(self):
        return dict(line.split("=", 1) for line in self.outputs.read_text(encoding="utf-8").splitlines())

    def test_outputs_describe_the_devices(self):
        status, printed = self.run_steps(options="--device one=127.0.0.7 --device two=fd00::2")
        self.assertEqual(status, 0, printed)
        self.assertEqual(self.given_outputs(),
                         {"devices": "one,two", "device": "one", "gid-index": "0",
                          "addresses": "127.0.0.7,fd00:0000:0000:0000:0000:0000:0000:0002",
                          "options": "--device one=127.0.0.7 --device two=fd00::2"})

    def test_every_output_has_a_line(self):
        self.run_steps()
        used = {re.fullmatch(r"\$\{\{ steps\.describe\.outputs\.([\w-]+) \}\}", one["value"])[1]
                for one in action()["outputs"].values()}
        self.assertEqual(used, set(self.given_outputs()))

    def test_options_that_are_wrong_end_the_job(self):
        status, printed = self.run_steps(options="--devices none")
        self.assertEqual(status, 2)
        self.assertIn("--devices", printed)

    def test_a_command_runs_with_the_options_and_a_passing_one_leaves_nothing(self):
        status, printed = self.run_steps(options="--devices 3", run="test 'a b' = \"a b\" && ibv_devices")
        self.assertEqual(status, 0, printed)
        self.assertIn("rocemu2", printed)
        self.assertFalse((self.workspace / "rocemu-failed").exists())

    def test_a_command_that_fails_leaves_its_recording(self):
        status, printed = self.run_steps(run="ibv_devinfo -d rocemu0 >devinfo; exit 7")
        self.assertEqual(status, 7, printed)
        self.assertTrue((self.workspace / "rocemu-failed" / "events.jsonl").exists())

    def test_a_fault_that_did_not_happen_is_annotated(self):
        (self.workspace / "faults.yaml").write_text("rules:\n- {name: third, on: frame, opcode: SEND, nth: 3, do: drop}\n")
        status, printed = self.run_steps(options="--scenario faults.yaml --strict", run="ibv_devices")
        self.assertEqual(status, 1, printed)
        self.assertIn("\n::error title=a fault did not happen::the rule 'third' never acted: ", printed)


class Annotations(unittest.TestCase):
    REPORT = """before
rocemu: error [mr-deregistered-in-use]: server#1 deregistered memory region 3 while receive 17 on QP 5 still names it
    posted        refill()  server.cc:88  ibv_post_recv  at 0.014 s
    deregistered  ~Pool()   pool.cc:41    ibv_dereg_mr   at 0.231 s
    Complete or flush 100% of the work first. (man ibv_dereg_mr)
rocemu: warning [imm-byte-order]: client#1 sends 1, as it is in memory
    posted  send()+0x12  libx.so  ibv_post_send  at 0.014 s
after
rocemu: deadlock at 1.5 s of virtual time: every thread waits
"""

    def annotate(self, github, directory, text=REPORT):
        file = pathlib.Path(directory) / "log"
        file.write_text(text, encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
        environment |= {"GITHUB_WORKSPACE": directory} | ({"GITHUB_ACTIONS": "true"} if github else {})
        return subprocess.run([STEP, "annotate", file], env=environment, text=True, check=True,
                              capture_output=True).stdout.splitlines()

    def test_are_workflow_commands_as_github_documents_them(self):
        """Annotations have the form `::error file={name},line={line},title={title}::{message}`, with %, CR and LF
        percent-encoded."""
        with tempfile.TemporaryDirectory(prefix="rocemu-") as directory:
            lines = self.annotate(True, directory)
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("::error file=pool.cc,line=41,title=mr-deregistered-in-use::server#1 "))
        self.assertIn("still names it%0A    posted        refill()", lines[0])
        self.assertIn("flush 100%25 of", lines[0])
        self.assertTrue(lines[1].startswith("::warning title=imm-byte-order::client#1 sends 1"), lines[1])
        self.assertEqual(lines[2], "::error title=the run hangs::deadlock at 1.5 s of virtual time: every thread waits")

    def test_are_lines_of_text_elsewhere(self):
        with tempfile.TemporaryDirectory(prefix="rocemu-") as directory:
            lines = self.annotate(False, directory)
        self.assertTrue(lines[0].startswith("pool.cc:41: error: mr-deregistered-in-use: server#1 "), lines[0])

    @unittest.skipIf(shutil.which("git") is None, "apt-get install git")
    def test_name_the_file_by_its_place_in_the_repository(self):
        with tempfile.TemporaryDirectory(prefix="rocemu-") as directory:
            source = pathlib.Path(directory) / "src" / "memory" / "pool.cc"
            source.parent.mkdir(parents=True)
            source.touch()
            subprocess.run("git init -q && git add src", shell=True, check=True, cwd=directory)
            lines = self.annotate(True, directory)
        self.assertTrue(lines[0].startswith("::error file=src/memory/pool.cc,line=41,"), lines[0])

    def test_are_none_of_a_run_that_is_right(self):
        with tempfile.TemporaryDirectory(prefix="rocemu-") as directory:
            self.assertEqual(self.annotate(True, directory, "all is well\n    indented\n"), [])


if __name__ == "__main__":
    unittest.main()
