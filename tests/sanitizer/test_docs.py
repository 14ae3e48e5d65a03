"""Tests that docs/reference/sanitizer-rules.md has a section for each rule, with its severity, its clause, and a
wrong and a correct program."""
import re
import unittest

from support import HERE, PROGRAMS

ROOT = HERE.parents[1]
RULE = re.compile(r'\.id = "(?P<id>[a-z-]+)",\s+\.severity = Severity::k(?P<severity>\w+),.*?'
                  r'\.clause = "(?P<clause>[^";]*)', re.S)


def rules():
    """Returns the ID, severity and clause of each rule from its source file."""
    found = []
    for path in sorted((ROOT / "emulator" / "sanitizer" / "rules").glob("*.cc")):
        text = re.sub(r'"\s+"', "", path.read_text(encoding="utf-8"))
        match = RULE.search(text)
        found.append((match["id"], match["severity"], match["clause"]))
    return found


class Page(unittest.TestCase):
    def setUp(self):
        text = (ROOT / "docs" / "reference" / "sanitizer-rules.md").read_text(encoding="utf-8")
        self.intro, *sections = text.split("\n## ")
        self.sections = {section.split("\n")[0]: section for section in sections}

    def test_each_rule_has_a_section_and_each_section_a_rule(self):
        self.assertEqual(set(self.sections), {rule for rule, *_ in rules()})

    def test_a_section_has_severity_clause_and_two_programs(self):
        for rule, severity, clause in rules():
            with self.subTest(rule):
                section = self.sections[rule]
                self.assertIn(f"\n\n{severity}", section)
                self.assertIn(clause.split(";")[0], " ".join(section.split()))
                programs = re.findall(r"```c\n(.*?)```", section, re.S)
                self.assertEqual(len(programs), 2)
                self.assertIn("// wrong", programs[0])
                self.assertNotIn("// wrong", programs[1])

    def test_the_numbers_of_rules_are_right(self):
        severities = [severity for _, severity, _ in rules()]
        numbers = [len(severities), severities.count("Error"), severities.count("Warning")]
        self.assertEqual(re.findall(r"There are (\d+) rules: (\d+) errors and (\d+) warnings",
                                    self.intro), [tuple(map(str, numbers))])

    def test_each_rule_has_a_program_of_its_name(self):
        names = {path.stem for path in PROGRAMS.rglob("*.c")}
        for rule, *_ in rules():
            self.assertIn(rule.replace("-", "_"), names)


if __name__ == "__main__":
    unittest.main()
