"""Tests `rocemu scenarios`, and names of scenarios in the place of files."""
import json
import pathlib
import re
import unittest

from support import ROCEMU, CommandTest

FILES = {path.stem: path for path in
         (pathlib.Path(__file__).resolve().parents[2] / "scenarios").glob("*.yaml")}


class Scenarios(CommandTest):
    def test_lists_each_with_its_first_sentence(self):
        shown = self.rocemu("scenarios").stdout
        lines = shown.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 80)
        self.assertEqual([line for line in lines if line and line[0] != " "],
                         ["connections", "errors", "links", "packets", "the peer"])
        self.assertEqual(sorted(re.findall(r"^  (\S+)", shown, re.M)), sorted(FILES))
        self.assertIn("  cm-timeout                No connection request ever arrives.", lines)

    def test_tells_as_json_where_each_is(self):
        for one in json.loads(self.rocemu("scenarios", "--json").stdout):
            self.assertEqual(pathlib.Path(one["file"]).resolve(), FILES[one["name"]])
            self.assertTrue(one["explanation"].endswith("."), one)

    def test_prints_those_that_are_named(self):
        self.assertEqual(self.rocemu("scenarios", "rtu-lost", "rep-lost").stdout,
                         FILES["rtu-lost"].read_text() + FILES["rep-lost"].read_text())

    def test_a_wrong_name_is_answered_with_the_nearest(self):
        for command in (["scenarios", "rtu-losst"], ["check", "rtu-losst"],
                        ["run", "--scenario", "rtu-losst", "--", "true"]):
            self.assert_one_line(self.rocemu(*command), 1, "no file 'rtu-losst'",
                                 "did you mean 'rtu-lost'?")

    def test_a_file_of_that_name_comes_first(self):
        (self.scratch / "rtu-lost").write_text("rules:\n- {name: mine, on: frame, do: drop}\n")
        self.assertIn("mine", self.rocemu("check", "rtu-lost", cwd=self.scratch).stdout)
        self.assertIn("lost (on: cm)", self.rocemu("check", "rtu-lost").stdout)

    def test_runs_by_name(self):
        result = self.rocemu("run", "--scenario", "rtu-lost", "--", "true")
        self.assertEqual(result.returncode, 0)
        self.assertIn("'lost' never acted", result.stderr)

    def write(self, name, *rules, head=""):
        path = self.scratch / name
        path.write_text(head + "rules:\n" + "".join(f"- {rule}\n" for rule in rules))
        return path

    def test_all_mistakes_of_a_file_are_told(self):
        path = self.write("bad.yaml", "{on: frame, do: dorp}", "{on: fram, do: drop}")
        expected = (f"rocemu: {path}:2:19: there is no 'dorp' for 'on: frame'; did you mean 'drop'?\n"
                    "    - {on: frame, do: dorp}\n"
                    "                      ^\n"
                    f"{path}:3:8: there is no place 'fram'; did you mean 'frame'?\n"
                    "    - {on: fram, do: drop}\n"
                    "           ^\n")
        for command in (["check", path], ["run", "--scenario", path, "--", "true"],
                        ["inject", path]):
            result = self.rocemu(*command)
            self.assertEqual((result.returncode, result.stderr), (1, expected), command)
        json_text = self.rocemu("check", "--json", path).stdout
        self.assertEqual(json.loads(json_text)[0]["problems"][1],
                         {"line": 3, "column": 8, "warning": False,
                          "message": "there is no place 'fram'; did you mean 'frame'?"})

    def test_what_is_probably_not_meant_is_a_warning(self):
        path = self.write("odd.yaml", "{on: completion, queue: recv, do: {status: REM_OP_ERR}}")
        result = self.rocemu("check", path)
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"{path}:2:37: warning: a receive never completes with REM_OP_ERR\n",
                      result.stderr)
        self.assertEqual(len(json.loads(self.rocemu("check", "--json", path).stdout)[0]["warnings"]), 1)

    def test_several_have_all_their_rules(self):
        mine = self.write("mine.yaml", "{name: lost, on: frame, nth: 1, do: drop}")
        result = self.rocemu("run", "--scenario", "rtu-lost", "--scenario", mine, "--",
                             ROCEMU, "inject", "--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^lost +cm ")
        self.assertRegex(result.stdout, r"(?m)^lost \(mine\) +frame ")
        again = self.rocemu("run", "--scenario", mine, "--scenario", "rtu-lost", "--scenario", mine,
                            "--", "true")
        self.assert_one_line(again, 1, f"{mine} is given twice")
        self.assert_one_line(
            self.rocemu("run", "--scenario", "rtu-lost", "--scenario", "rtu-lost", "--", "true"),
            1, "rtu-lost.yaml is given twice")

    def test_strict_with_a_scenario_without_rules_is_warned_of(self):
        result = self.rocemu("run", "--strict", "--scenario", self.write("none.yaml"), "--", "true")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "rocemu: warning: --strict checks nothing, since the scenario has no "
                                        "rules\n")
        self.assertEqual(self.rocemu("run", "--strict", "--", "true").stderr, "")

    def test_strict_asks_for_a_nic_of_its_own(self):
        self.assertEqual(self.rocemu("up").returncode, 0)
        try:
            result = self.rocemu("run", "--strict", "--", ROCEMU, "inject",
                                 "{name: idle, on: frame, do: drop}")
            self.assertEqual(self.rocemu("inject", "--list").stdout, "no rules\n")
        finally:
            self.rocemu("down")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("'idle' never acted", result.stderr)

    def test_inject_takes_files_and_names(self):
        mine = self.write("mine.yaml", "{name: a, on: frame, do: drop}", "{on: cm, do: drop}")
        self.assertEqual(self.rocemu("up").returncode, 0)
        try:
            given = self.rocemu("inject", mine, "rtu-lost", "{name: c, on: frame, do: duplicate}")
            cleared = self.rocemu("inject", "--clear", "a", "rule 2", "lost", "c")
            # If one scenario is wrong, none is used.
            wrong = self.rocemu("inject", mine, "rtu-losst")
            twice = self.rocemu("inject", "rtu-lost", "rep-lost")
            rules = self.rocemu("inject", "--list")
        finally:
            self.rocemu("down")
        self.assertEqual((given.returncode, given.stdout), (0, "a\nrule 2\nlost\nc\n"))
        self.assertEqual(cleared.returncode, 0)
        self.assert_one_line(wrong, 1, "'rtu-lost'?")
        self.assert_one_line(twice, 1, "rtu-lost and rep-lost both have a rule 'lost'")
        self.assertEqual(rules.stdout, "no rules\n")


if __name__ == "__main__":
    unittest.main()
