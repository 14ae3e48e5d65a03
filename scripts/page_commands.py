"""Reads the commands of a page of the documents, for tests/docs and scripts/check-first-page, which run them.

A command line begins with `$ ` in a block of code without a language; a line that ends with a backslash continues in
the next one. The lines up to the next command are its output. A block of C++, CMake or Python is a file that the
reader writes, if the paragraph before it ends with a name: "`my_tests/my_test.cc`:".

The output on the page and the actual output must be equal, except for the placeholders of `masked`.
"""
import dataclasses
import re


@dataclasses.dataclass
class Command:
    text: str
    output: str  # the output on the page, or "" if it shows none


@dataclasses.dataclass
class File:
    name: str
    text: str


def commands_of(block):
    """Returns the commands in the text of a block."""
    found = []
    continues = False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], ""))
        elif continues:
            found[-1].text += "\n" + line
        elif found:
            found[-1].output += line + "\n"
        continues = line.endswith("\\") and bool(found) and not found[-1].output
    return [Command(command.text, command.output.strip("\n")) for command in found]


def steps_of(text):
    """Returns the commands and the files of a page, in the page's order."""
    steps = []
    for block in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if not block[1]:
            steps += commands_of(block[2])
        elif name := re.search(r"`([\w./-]+)`:\n\n\Z", text[:block.start()]):
            steps.append(File(name[1], block[2]))
    return steps


def masked(text):
    """Replaces values that differ between runs by placeholders: process numbers, and the directory of a NIC."""
    text = re.sub(r"\[\d+\] *", "[PID]  ", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    return re.sub(r"/\S*/rocemu/shared", "DIR", text)
