"""Tests every option and argument that names a file to read, with names that are not text files."""
import os
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, CommandTest

TRUE = ("--", "true")
# The arguments before and behind the name, the exit status, and whether the file is read more than once
INPUTS = {
    "run --topology": (("run", "--topology"), TRUE, 2, True),
    "up --topology": (("up", "--topology"), (), 2, True),
    "explore --topology": (("explore", "--topology"), TRUE, 2, True),
    "run --fabric": (("run", "--lockstep", "--fabric"), TRUE, 2, True),
    "explore --fabric": (("explore", "--fabric"), TRUE, 2, True),
    "check --fabric": (("check", "rtu-lost", "--fabric"), (), 1, True),
    "fabric --fabric": (("fabric", "--traffic", "incast", "--fabric"), (), 1, False),
    "run --profile": (("run", "--profile"), TRUE, 2, True),
    "profile show": (("profile", "show"), (), 1, True),
    "profile record": (("profile", "record"), (), 1, False),
    "explore --known": (("explore", "--known"), TRUE, 3, True),
    "run --sanitize-suppressions": (("run", "--sanitize", "--sanitize-suppressions"), TRUE, 1, False),
    "explore --sanitize-suppressions": (("explore", "--sanitize", "--sanitize-suppressions"), TRUE, 1, True),
    "run --scenario": (("run", "--scenario"), TRUE, 1, False),
    "check": (("check",), (), 1, False),
    "scenarios": (("scenarios",), (), 1, False),
}


class InputFiles(CommandTest):
    def answer(self, name, path):
        """Runs the command with this path in 3 GB of address space, which a process that reads endlessly exceeds."""
        before, behind, status, _ = INPUTS[name]
        result = subprocess.run(["bash", "-c", 'ulimit -v 3000000 && exec "$@"', "bash", ROCEMU, *before, str(path),
                                 *behind], env=self.environment, cwd=self.scratch, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assert_one_line(result, status, str(path))
        return result.stderr

    def each(self):
        for name in INPUTS:
            with self.subTest(name):
                yield name

    def test_a_directory_is_named_as_one(self):
        for name in self.each():
            self.assertIn("Is a directory", self.answer(name, self.scratch))

    def test_an_endless_file_is_not_read_to_its_end(self):
        for name in self.each():
            with self.subTest(name):
                is_read_again = INPUTS[name][3]
                self.assertRegex(self.answer(name, "/dev/zero"), "this is not a regular file, and rocemu reads it "
                                 "several times; copy it to a file" if is_read_again else r" has at most \d+ bytes")

    def test_a_huge_file_is_refused_before_it_is_in_memory(self):
        huge = self.scratch / "huge.yaml"
        with open(huge, "wb") as file:
            file.truncate(1 << 33)  # sparse, and larger than the address space
        for name in self.each():
            self.assertRegex(self.answer(name, huge), r" has at most \d+ bytes")

    def test_a_pipe_is_refused_where_it_would_be_read_twice(self):
        fifo = self.make_fifo()
        for name in self.each():
            if INPUTS[name][3]:
                self.assertIn("this is not a regular file", self.answer(name, fifo))

    def test_a_pipe_is_read_where_it_is_read_once(self):
        def in_bash(script):
            result = subprocess.run(["bash", "-c", script], env={**self.environment, "ROCEMU": ROCEMU},
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT,
                                    check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout

        self.assertIn("4 of 4 flows", in_bash(
            "$ROCEMU fabric --traffic permutation --size 1000 --fabric <(echo 'topology: {star: 4}')"))
        in_bash("$ROCEMU run --sanitize --sanitize-suppressions <(echo '# none') -- true")

    def test_a_report_that_is_none_is_refused_before_the_first_run(self):
        for text in ("{}", "[]", "no JSON", '{"findings": {}}', '{"findings": [1]}', '{"findings": [{"place": 1}]}'):
            file = self.scratch / "report.json"
            file.write_text(text)
            # The command would leave a file in each run.
            result = self.rocemu("explore", "--known", file, "--", "touch", self.scratch / "ran")
            self.assert_one_line(result, 3, f"--known {file} is not a report.json")
            self.assertFalse((self.scratch / "ran").exists())

    def test_a_file_that_is_missing_is_named(self):
        for name in self.each():
            self.answer(name, "./missing")


class OtherMistakes(CommandTest):
    def test_check_says_that_a_name_is_a_directory(self):
        os.mkdir(self.scratch / "rules")
        self.assert_one_line(self.rocemu("check", "rules", cwd=self.scratch), 1,
                             "'rules' is a directory; give a file, for example one of rules/*.yaml")

    def test_a_directory_for_temporary_files_that_is_missing_is_named(self):
        file = self.scratch / "file"
        file.touch()
        for place in ("/nonexistent", str(file)):
            result = self.rocemu("run", "--sanitize", "--", "true", env={"TMPDIR": place})
            self.assert_one_line(result, 1, f"TMPDIR={place} is not a directory",
                                 "set TMPDIR to an existing directory")


if __name__ == "__main__":
    unittest.main()
