"""Tests scripts/page_commands.py and scripts/check-first-page, except for the chroot that the latter makes."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-first-page"
TIMEOUT = 240  # seconds, far longer than any command takes
sys.path.insert(0, str(ROOT / "scripts"))
from page_commands import Command, File, masked, steps_of  # noqa: E402


class Steps(unittest.TestCase):
    def test_are_commands_with_the_output_that_the_page_shows(self):
        page = "Text.\n\n```\n$ one 1  # why\n$ two\n\nfirst\n\n  second\n$ three\n```\n"
        self.assertEqual(steps_of(page), [Command("one 1  # why", ""), Command("two", "first\n\n  second"),
                                          Command("three", "")])

    def test_continue_a_command_after_a_backslash(self):
        page = "```\n$ sh -c 'a & \\\n    b \\\n    c'\nshown \\\nas well\n$ d\n```\n"
        self.assertEqual(steps_of(page), [Command("sh -c 'a & \\\n    b \\\n    c'", "shown \\\nas well"),
                                          Command("d", "")])

    def test_are_files_where_the_page_names_them(self):
        page = "One, `a/x.cc`:\n\n```cpp\nint a;\n```\n\nTwo:\n\n```yaml\n$ b: 1\n```\n\n```\n$ c\n```\n"
        self.assertEqual(steps_of(page), [File("a/x.cc", "int a;\n"), Command("c", "")])

    def test_take_no_output_for_a_command(self):
        self.assertEqual(steps_of("```\nno command\nhost-a$ other\n```\n"), [])

    def test_mask_process_numbers_and_the_directory_of_a_nic_only(self):
        self.assertEqual(masked("a[123]   b, pid 45, QPN 0x11"), "a[PID]  b, pid N, QPN 0x11")
        self.assertEqual(masked("in /run/user/0/rocemu/shared."), "in DIR.")


class FirstPage(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="rocemu-test-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def run_page(self, text):
        page = self.scratch / "page.md"
        page.write_text(text)
        result = subprocess.run([SCRIPT, "--here", page], cwd=self.scratch, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
        return result.returncode, result.stdout, result.stderr

    def test_runs_all_commands_in_one_shell(self):
        status, printed, said = self.run_page(
            "Write `d/file`:\n\n```cpp\nit's \"here\"\n```\n\n"
            "```\n$ cd d; export VALUE=7\n$ cat file   # a comment\nit's \"here\"\n$ echo $VALUE; echo on stderr >&2\n```\n")
        self.assertEqual((status, said), (0, ""))
        self.assertIn("$ cat file   # a comment\nit's \"here\"\n", printed)
        self.assertIn("$ echo $VALUE; echo on stderr >&2\n7\non stderr\n", printed)
        self.assertIn("3 commands of page.md did what the page says", printed)

    def test_stops_at_the_first_command_that_fails(self):
        status, printed, said = self.run_page("```\n$ echo before\n$ false\n$ echo after\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("command 2 of 3: status 1: false", said)
        self.assertNotIn("after", printed)

    def test_stops_at_an_output_that_the_page_shows_otherwise(self):
        status, printed, said = self.run_page("```\n$ echo 1; echo 2\n1\n$ touch after\n```\n")
        self.assertEqual(status, 1)
        self.assertFalse((self.scratch / "after").exists())
        self.assertIn("the page shows another output of: echo 1; echo 2", said)
        self.assertNotIn("$ touch after", printed)

    def test_compares_what_is_printed_without_process_numbers(self):
        self.assertEqual(self.run_page("```\n$ echo \"x[$$]  pid $$\"\nx[1]  pid 1\n```\n")[0], 0)
        self.assertEqual(self.run_page("```\n$ echo \"x $$\"\nx 1\n```\n")[0], 1)

    def test_fails_if_the_shell_itself_ends(self):
        status, _, said = self.run_page("```\n$ exit 0\n$ echo after\n```\n")
        self.assertEqual(status, 1)
        self.assertIn("the shell ended with status 0", said)

    def test_gives_commands_no_input(self):
        self.assertEqual(self.run_page("```\n$ cat\n$ echo 1\n1\n```\n")[0], 0)


class Readme(unittest.TestCase):
    """Tests the commands of README.md that the script runs."""

    def setUp(self):
        self.steps = steps_of((ROOT / "README.md").read_text())
        self.commands = [step.text for step in self.steps if isinstance(step, Command)]

    def test_begins_with_the_build(self):
        self.assertEqual(self.commands[0].split()[0], "scripts/demo")

    def test_names_the_files_of_its_examples(self):
        files = {step.name: step.text for step in self.steps if isinstance(step, File)}
        self.assertEqual(set(files), {"my_tests/CMakeLists.txt", "my_tests/my_test.cc", "my_tests/test_pingpong.py"})
        self.assertIn("find_package(rocemu REQUIRED)", files["my_tests/CMakeLists.txt"])
        self.assertIn("import rocemu", files["my_tests/test_pingpong.py"])

    def test_uses_each_file_after_it_is_written(self):
        written = max(number for number, step in enumerate(self.steps) if isinstance(step, File))
        uses = [number for number, step in enumerate(self.steps) if isinstance(step, Command) and "my_tests" in step.text]
        self.assertTrue(uses)
        self.assertGreater(min(uses), written)

    def test_needs_no_program_that_it_does_not_install(self):
        """Python is needed only by the lessons' programs and by the examples of test suites, so no command may use
        it before the one that installs it."""
        installs = next(number for number, text in enumerate(self.commands) if text.startswith("apt-get install"))
        for text in self.commands[:installs]:
            self.assertNotRegex(text, r"python|\.py\b")


if __name__ == "__main__":
    unittest.main()
