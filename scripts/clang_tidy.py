#!/usr/bin/env python3
"""Checks the C++ sources and headers of the product with clang-tidy, by the rules in .clang-tidy.

usage: scripts/clang_tidy.py [--each] BUILD_DIR [PATH...]

BUILD_DIR has a compile_commands.json of a build with clang; scripts/lint makes one. If PATHs are
given, checks only these files, and the files below these folders.

The headers of the C++ library take most of the time. So many source files are checked as one file,
which includes them. If the compiler then finds an error in some of them, because two files use one
name for different things, these files are checked in another such file. The static analyzer is not
used, since it adds 1.5 to 3 s for each file.

--each checks each file by itself, with the analyzer.
"""

import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

TIDY = "clang-tidy"
# Tests are not checked: mistakes in them show when they run.
PRODUCT = ("wire/", "emulator/", "verbs_provider/", "vipl/", "testing/cpp/")
# This file stands for a library: its functions have no parameters and results like the real ones.
LEFT_OUT = ("verbs_provider/libibverbs.cc",)
MAX_TOGETHER = 48  # files
WITHOUT_ANALYZER = "-clang-analyzer-*"
ERROR_IN = re.compile(r"^(\S+\.cc):\d+:\d+: (?:fatal )?error: ", re.MULTILINE)
FINDING = re.compile(r"^(?P<place>\S+:\d+:\d+): (?:warning|error): .*\[(?P<check>[^\]]+)\]$")


def compile_flags(command):
    """Returns the options of a compiler's command line that affect how a file is read."""
    words = shlex.split(command)
    flags = []
    for i, word in enumerate(words):
        if word.startswith(("-I", "-D", "-std", "-f", "-W", "-isystem")):
            flags.append(word)
        elif words[i - 1] == "-isystem":
            flags.append(word)
    return tuple(flags)


def read_units(root, build_dir, paths):
    """Returns [(flags, files)] of the product's .cc files. Files that are near each other have
    one entry."""
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    by_flags = collections.defaultdict(list)
    seen = set()
    for command in commands:
        path = os.path.relpath(os.path.join(command["directory"], command["file"]), root)
        if path in seen or path in LEFT_OUT or not path.startswith(PRODUCT):
            continue
        if paths and not any(path == p or path.startswith(p.rstrip("/") + "/") for p in paths):
            continue
        seen.add(path)
        by_flags[compile_flags(command["command"])].append(path)
    units = []
    for flags, files in by_flags.items():
        files.sort()
        parts = -(-len(files) // MAX_TOGETHER)
        size = -(-len(files) // parts)
        units += [(flags, files[i : i + size]) for i in range(0, len(files), size)]
    return sorted(units, key=lambda unit: -len(unit[1]))


def headers_beside(root, files):
    for folder in sorted({os.path.dirname(path) for path in files}):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name.endswith(".h"):
                yield os.path.join(folder, name)


def run_tidy(root, path, flags, checks):
    """Runs clang-tidy and returns its findings: {(place, check): lines}."""
    config = f"--config-file={os.path.join(root, '.clang-tidy')}"
    command = [TIDY, "--quiet", config, f"--checks={checks}", path, "--", "-xc++", f"-I{root}"]
    result = subprocess.run(
        [*command, *flags], cwd=root, capture_output=True, text=True, check=False
    )
    findings = {}
    block = None
    for line in result.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            block = findings.setdefault((match["place"], match["check"]), [])
        if block is not None:
            block.append(line)
    if result.returncode != 0 and not findings:
        sys.exit(f"clang_tidy: {path}: {result.stderr.strip()}")
    return findings


def put_together(root, files, flags, name):
    """Writes a file that includes those of `files` that can be compiled together. Returns the
    others."""
    others = []
    while True:
        chosen = [path for path in files if path not in others]
        with open(name, "w", encoding="utf-8") as file:
            for path in [*chosen, *headers_beside(root, chosen)]:
                file.write(f'#include "{os.path.join(root, path)}"\n')
        command = ["clang++", "-fsyntax-only", "-ferror-limit=0", "-w", f"-I{root}", *flags, name]
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return others
        wrong = {os.path.relpath(path, root) for path in ERROR_IN.findall(result.stderr)}
        wrong &= set(chosen)
        if not wrong or len(chosen) == 1:
            sys.exit(f"clang_tidy: cannot compile {' '.join(chosen)}:\n{result.stderr}")
        # The first file is always kept, so that this loop ends.
        others += [path for path in chosen if path in wrong and path != chosen[0]]
        if wrong == {chosen[0]}:
            others += chosen[1:]


def check_together(root, flags, files, name):
    findings = {}
    for turn in range(len(files)):
        path = f"{name}_{turn}.cc"
        others = put_together(root, files, flags, path)
        # A constant of one file may have the name of a variable in another.
        findings.update(run_tidy(root, path, (*flags, "-Wno-shadow"), WITHOUT_ANALYZER))
        if not others:
            break
        files = others
    return findings


def main(arguments):
    each = "--each" in arguments
    arguments = [a for a in arguments if a != "--each"]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    units = read_units(root, arguments[0], arguments[1:])
    count = sum(len(files) for _, files in units)
    if count == 0:
        sys.exit("clang_tidy: no such files in compile_commands.json")
    findings = {}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(
        len(os.sched_getaffinity(0))
    ) as pool:
        if each:
            tasks = [
                pool.submit(run_tidy, root, path, flags, "")
                for flags, files in units
                for path in files
            ]
        else:
            tasks = [
                pool.submit(check_together, root, flags, files, os.path.join(scratch, str(i)))
                for i, (flags, files) in enumerate(units)
            ]
        for task in tasks:
            findings.update(task.result())
    for _, lines in sorted(findings.items()):
        print("\n".join(lines))
    print(f"clang_tidy: {count} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
