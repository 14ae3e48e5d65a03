"""Runs the commands of docs/explore.md, and compares their output with that on the page."""
import pathlib
import re
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, ExploreTest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "explore.md"


class Guide(ExploreTest):
    def blocks(self, language):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
        return [text for name, text in blocks if name == language]

    def compile(self):
        subprocess.run(["cc", "-g", "-o", "hello", "hello.c", "-libverbs"], cwd=self.scratch,
                       check=True)

    def shell(self, command):
        command = re.sub(r"^rocemu ", ROCEMU + " ", command)
        return subprocess.run(command, shell=True, cwd=self.scratch, env=self.environment,
                              timeout=TIMEOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False).stdout

    def test_the_page_shows_what_happens(self):
        [program] = self.blocks("c")
        [change] = self.blocks("diff")
        (self.scratch / "hello.c").write_text(program)
        self.compile()
        shown = [block for block in self.blocks("") if block.startswith("$ ")]
        self.assertEqual(len(shown), 4)
        for block in shown:
            if "--force" in block:
                subprocess.run(["patch", "-s", "hello.c"], cwd=self.scratch, input=change,
                               text=True, check=True)
                self.compile()
            commands = re.findall(r"^\$ (.*)$", block, re.M)
            output = re.sub(r"^\$ .*\n", "", block, flags=re.M)
            found = "".join(self.shell(one) for one in commands if not one.startswith("cc "))
            # Removes the lines of progress, which are printed every 10 s.
            found = re.sub(r"^\d+ of \d+ faults, \d+/s, .*\n", "", found, flags=re.M)
            self.assertEqual(found, output)


if __name__ == "__main__":
    unittest.main()
