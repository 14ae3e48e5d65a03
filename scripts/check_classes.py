#!/usr/bin/env python3
"""Checks the size and the names of classes and files, as a test.

usage: scripts/check_classes.py [--list] [ROOT]

A class may have at most MAX_METHODS member functions, with constructors and operators, but without deleted functions: a
class with more contains a part that should be a class by itself. Two C++ files that one folder may include
(scripts/check_includes.py) have different names, and so have two classes of one namespace. Otherwise a reader, or a
tool that uses names, would take one for the other. Prints FILE:LINE and each broken rule; the exit status is 1 if there
is one. --list prints the number of methods of each class instead, the largest first.
"""

import argparse
import collections
import itertools
import os
import re
import sys

import check_includes

ROOMS = ("emulator", "testing", "verbs_provider", "vipl", "wire")
MAX_METHODS = 30
# Classes that had more methods when this check was added. Their numbers may not grow.
LARGER = {"NetlinkAnswer": 31, "ProcessMemory": 32, "Scheduler": 39}
# Names of files that several folders may have, since each program has such a file.
MANY = {"main.cc"}

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
CLASS = re.compile(r"(?<![\w.])(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+(?:::\w+)*)(?:\s+final)?\s*(?::(?!:)[^;{}()]*)?\{")
NO_FUNCTION = re.compile(r"\s*(?:using|typedef|friend|static_assert|enum|class|struct|union|namespace)\b")


def blanked(match):
    text = match[0]
    if text[0] in "/":
        return re.sub(r"[^\n]", " ", text)
    return '""' + re.sub(r"[^\n]", " ", text[2:])


def code_of(text):
    """Blanks comments, strings and preprocessor lines, and keeps the line breaks."""
    text = COMMENT_OR_STRING.sub(blanked, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE)


def end_of_block(code, begin):
    """Returns the position after the brace that closes the block which begins at `begin`."""
    depth = 0
    for i in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    return len(code)


def declarations(body):
    """Yields each declaration of a class's body, without the blocks in it."""
    text = ""
    i = 0
    while i < len(body):
        if body[i] == "{":
            i = end_of_block(body, i)
            after = body[i:].lstrip()
            if ")" in text and not after.startswith((";", ",")):  # `after` is the body of a function
                yield text
                text = ""
            continue
        if body[i] == ";":
            yield text
            text = ""
        else:
            text += body[i]
        i += 1


def is_method(declaration):
    declaration = re.sub(r"\b(?:public|private|protected)\s*:", "", declaration)
    if NO_FUNCTION.match(declaration) or re.search(r"=\s*delete\s*$", declaration):
        return False
    if re.search(r"\boperator\b", declaration):
        return True
    flat = declaration.replace("->", "  ")
    while True:  # removes template arguments, from the innermost outwards
        shorter = re.sub(r"<[^<>]*>", "", flat)
        if shorter == flat:
            break
        flat = shorter
    flat = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^)]*\)|\bdecltype\s*\([^)]*\)", "", flat)
    return re.search(r"[~\w]\s*\(", flat.split("=")[0]) is not None


def classes_of(code):
    """Yields (name, position, number of methods) for each class that is defined."""
    for match in CLASS.finditer(code):
        if re.search(r"\benum\s+$", code[:match.start()]):
            continue
        body = code[match.end():end_of_block(code, match.end() - 1) - 1]
        yield match[1], match.start(), sum(map(is_method, declarations(body)))


def scope_of(code, position):
    """Returns the namespace of a class at `position`, or None if it is inside a class or function, or in an unnamed
    namespace."""
    opened = []
    for match in re.finditer(r"[{}]", code[:position]):
        if match[0] == "}":
            if opened:
                opened.pop()
        else:
            name = re.search(r"\bnamespace\s+([\w:]+)\s*$", code[:match.start()])
            opened.append(name[1] if name else None)
    return None if None in opened or not opened else "::".join(opened)


def meet(one, other):
    """Returns whether a file of some folder may include both files."""
    rooms = [check_includes.folder_of(path) for path in (one, other)]
    for folder, allowed in check_includes.RULES.items():
        if folder != "tests" and all(room == folder or any(check_includes.within(path, a) for a in allowed)
                                     for room, path in zip(rooms, (one, other))):
            return True
    return False


def source_files(root):
    for top in ROOMS:
        for directory, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(directory, name), root)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("root", nargs="?", metavar="ROOT",
                        default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    arguments = parser.parse_args()
    broken = 0
    sizes = []
    files = collections.defaultdict(list)
    classes = collections.defaultdict(list)
    for path in source_files(arguments.root):
        files[os.path.basename(path)].append(path)
        with open(os.path.join(arguments.root, path), encoding="utf-8") as source:
            code = code_of(source.read())
        for name, position, methods in classes_of(code):
            place = f"{path}:{code.count(chr(10), 0, position) + 1}"
            sizes.append((methods, name, place))
            if scope := scope_of(code, position):
                classes[f"{scope}::{name}"].append(place)
    if not sizes:
        sys.exit(f"no classes below {arguments.root}")
    if arguments.list:
        for methods, name, place in sorted(sizes, reverse=True):
            print(f"{methods:4} {name} {place}")
        return 0
    for methods, name, place in sizes:
        most = LARGER.get(name, MAX_METHODS)
        if methods > most:
            broken += 1
            print(f"{place}: {name} has {methods} methods; take out a part, so that it has at most {most}")
    for name, paths in files.items():
        for one, other in itertools.combinations(paths, 2):
            if name not in MANY and meet(one, other):
                broken += 1
                print(f"{one}:1: {other} has the same name")
    for name, places in classes.items():
        if len(places) > 1:
            broken += 1
            print(f"{places[0]}: {name} is also in {', '.join(places[1:])}")
    print(f"{len(sizes)} classes, {broken} broken rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
