"""Tests the table of docs/data/sanitizer-programs.md about the programs of tests/explore/buggy: which reports
each mistake causes without any fault, and with its fault."""
import re
import unittest

from support import BIN, HERE, LOCKSTEP, sanitized, side_by_side

ROOT = HERE.parents[1]
BUGGY = ROOT / "tests" / "explore" / "buggy"
ROW = re.compile(r"^\| `(\w+)` \|(.*?)\|(.*)\|$", re.M)
RULE = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")
GIVE_UP = "5s"  # time limit for programs that run for ever with their fault


def table():
    """Returns, by program, the rules that are reported without a fault, and those that are reported in addition
    with its fault."""
    page = (ROOT / "docs" / "data" / "sanitizer-programs.md").read_text(encoding="utf-8")
    section = page.split("\n## Planted mistakes\n")[1].split("\n# ")[0]
    return {name: (set(RULE.findall(without)), set(RULE.findall(mistake)))
            for name, without, mistake in ROW.findall(section)}


def rules_of(program, *options):
    _, reports = sanitized(BIN / "buggy" / program, options=(*LOCKSTEP, *options))
    return {(one["rule"], one["severity"]) for one in reports}


class Planted(unittest.TestCase):
    def test_the_table_has_each_program(self):
        self.assertEqual(set(table()), {path.stem for path in BUGGY.glob("*.yaml")})

    def test_a_misuse_is_reported_without_any_fault(self):
        rows = table()

        def check(name):
            self.assertEqual({rule for rule, _ in rules_of(name)}, rows[name][0])
        side_by_side(self, check, rows, at_once=3)

    def test_the_corrected_twin_has_no_error(self):
        def check(name):
            errors = {rule for rule, severity in rules_of(name + "_corrected") if severity == "error"}
            self.assertEqual(errors, set())
        side_by_side(self, check, table(), at_once=3)

    def test_a_misuse_that_needs_its_fault_is_reported_with_it(self):
        rows = {name: with_fault for name, (_, with_fault) in table().items() if with_fault}
        self.assertTrue(rows)

        def check(name):
            found = rules_of(name, "--timeout", GIVE_UP, "--scenario", BUGGY / f"{name}.yaml")
            self.assertLessEqual(rows[name], {rule for rule, _ in found})
        side_by_side(self, check, rows, at_once=3)


if __name__ == "__main__":
    unittest.main()
