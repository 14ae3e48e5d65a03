"""Tests docs/faults.md: it shows the table from which the scenarios are made, and each row of the table
is a valid rule."""
import pathlib
import re
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, ExploreTest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "faults.md"


class FaultTable(ExploreTest):
    def table(self):
        return subprocess.run([ROCEMU, "explore", "--table"], timeout=TIMEOUT, check=True,
                              capture_output=True, text=True).stdout

    def test_the_page_has_it(self):
        self.assertIn(self.table(), PAGE.read_text())

    def test_each_effect_is_a_rule(self):
        rules = []
        for at, _, effect in re.findall(r"^\| ([\w, ]+) \| ([^|]*) \| `([^`]*)`", self.table(),
                                        re.M):
            at = at.split(",")[0]
            if at == "at":
                continue
            queue = "" if at != "completion" else "queue: send, "
            rules.append(f"  - {{on: {at}, {queue}do: {effect}}}\n")
        self.assertGreater(len(rules), 50)
        file = self.scratch / "table.yaml"
        file.write_text("rules:\n" + "".join(rules))
        checked = subprocess.run([ROCEMU, "check", file], capture_output=True, text=True,
                                 timeout=TIMEOUT, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
