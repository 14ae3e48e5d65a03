"""Tests `rocemu explore --adversarial`: it finds wrong programs, and each finding names the action of the NIC that
caused the failure."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from test_programs import BIN, run

PROGRAMS = BIN / "adversarial"


def explore(*command):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [BIN / "rocemu", "explore", "--only", "cm", "--adversarial", "5", "--output", folder + "/found", "--", *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return result, json.loads(pathlib.Path(folder, "found", "report.json").read_text())["findings"]


class Explore(unittest.TestCase):
    def of_class(self, name, program):
        result, findings = explore(PROGRAMS / program)
        self.assertEqual(result.returncode, 1, result.stdout)
        lines = [one for one in findings if f"({name}, seed " in one["sentence"]]
        self.assertNotEqual(lines, [], result.stdout)
        return lines[0]

    def test_one_message_is_named_whose_last_bytes_come_first(self):
        finding = self.of_class("placement", "last_byte")
        self.assertRegex(finding["sentence"], r"when a WRITE, message \d+ to QP \d+, ")

    def test_a_late_read_is_named(self):
        finding = self.of_class("late-read", "paced_reuse")
        self.assertRegex(finding["sentence"], r"of work request \d+ of QP \d+ is read from memory \d+ us late")

    def test_the_line_repeats_it_and_spares_the_right_twin(self):
        line = self.of_class("placement", "last_byte")["reproduce"]
        options = re.search(r"--lockstep (--adversarial=placement(?::\d+)+) --seed (\d+) ", line)
        self.assertIsNotNone(options, line)
        given = (options[1], "--seed", options[2])
        for _ in range(2):
            self.assertNotEqual(run("last_byte", *given).returncode, 0)
        self.assertEqual(run("last_byte_right", *given).returncode, 0)

    def test_merged_shards_keep_what_was_shrunk(self):
        with tempfile.TemporaryDirectory() as folder:
            def rocemu(*arguments):
                return subprocess.run([BIN / "rocemu", "explore", *arguments], cwd=folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=300)
            for shard in ("1", "2"):
                rocemu("--only", "cm", "--adversarial", "3", "--shard", f"{shard}/2", "--output", f"part{shard}", "--",
                       PROGRAMS / "last_byte")
            merged = rocemu("merge", "--output", "all", "part1", "part2")
            self.assertEqual(merged.returncode, 1, merged.stdout)
            [finding] = json.loads(pathlib.Path(folder, "all", "report.json").read_text())["findings"]
            self.assertRegex(finding["reproduce"], r"--adversarial=placement(:\d+)+ --seed \d+ ")
            self.assertEqual(finding["confirmed"], 2)

    def test_the_right_twin_has_no_finding(self):
        result, findings = explore(PROGRAMS / "last_byte_right")
        self.assertEqual((result.returncode, findings), (0, []), result.stdout)


class Choices(unittest.TestCase):
    def test_a_recording_lists_them(self):
        with tempfile.TemporaryDirectory() as folder:
            def choices(name, option):
                run("last_byte_right", option, "--record", f"{folder}/{name}")
                return pathlib.Path(folder, name, "choices").read_text().splitlines()
            every = choices("all", "--adversarial=placement")
            self.assertEqual([line.split()[:2] for line in every],
                             [["placement", str(i)] for i in range(1, len(every) + 1)])
            self.assertEqual(choices("one", "--adversarial=placement:1"), every[:1])
            # If the run has fewer choices than this number, the option has no effect.
            self.assertEqual(choices("none", "--adversarial=placement:1000000"), [])

    def test_wrong_numbers_are_errors(self):
        for wrong in ("placement:", "placement:0", "placement:x", "placement:1:", "placement:-1"):
            result = run("last_byte", f"--adversarial={wrong}")
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn("is not a class with the numbers of its choices", result.stdout)


if __name__ == "__main__":
    unittest.main()
