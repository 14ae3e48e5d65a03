"""`rocemu scenarios`, and names of scenarios in place of files."""
import json
import pathlib
import unittest

from support import CommandTest

FILES = {path.stem: path for path in
         (pathlib.Path(__file__).resolve().parents[2] / "scenarios").glob("*.yaml")}


class Scenarios(CommandTest):
    def test_lists_each_with_its_first_sentence(self):
        lines = self.rocemu("scenarios").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], sorted(FILES))
        self.assertIn("cm-timeout                No connection request ever arrives.", lines)

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


if __name__ == "__main__":
    unittest.main()
