#!/usr/bin/python3
"""Counts the patterns of unclear English that CONTRIBUTING.md names, and fails if there are more than scripts/words.json allows.

usage: scripts/check_words.py [--list PATTERN] [--update]

Counts each pattern in three kinds of text: the pages (README.md, docs/), the messages and help texts (string literals
in the folders of MESSAGES), and the comments (C++, Python, YAML). Also fails for a page of more than 2,500 words without
its blocks of code, unless it is one of REFERENCES. The files of SHOWS_PATTERNS are not counted.

--list PATTERN  prints each place of a pattern (`--list who`), and exits
--update        writes the counts as they are to scripts/words.json
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
LIMITS = SOURCE / "scripts" / "words.json"
MOST_WORDS = 2500
REFERENCES = {"docs/statuses.md", "docs/faults.md", "docs/scenarios.md", "docs/reference/deviations.md"}
GENERATED = ("docs/data/",)
SHOWS_PATTERNS = {"CONTRIBUTING.md", "docs/design/words.md", "scripts/check_words.py"}
MESSAGES = ("emulator/command/", "emulator/explore/", "emulator/options/", "emulator/scenario/", "emulator/profile/",
            "emulator/timeline/", "emulator/daemon/daemon_options.cc", "testing/")
COMMENTS = ("emulator/", "wire/", "verbs_provider/", "testing/", "vipl/", "scenarios/", "profiles/", "topologies/",
            "scripts/", "examples/", "packaging/")

PATTERNS = {
    # "who waits", "nobody reads it": threads, packets and programs are things.
    "who": r"\b(?:[Ww]ho|[Ww]hom|[Ww]hoever|[Nn]obody|[Ss]omebody|[Aa]nybody)\b",
    # report, show, print, distinguish
    "tell": r"\b(?:[Tt]ells?|[Tt]old|[Tt]elling)\b",
    # must
    "is-to": r"\b(?:is|are) to (?:be|have|get|do|go|come|end|find|make|take|run|wait|send|read|write|give|say)\b",
    # a number, or the name of a quantity
    "so-many": r"\b[Ss]o (?:many|much|long|often)\b(?! as\b)",
    # continue, release, split, know, have, arrive, disappear
    "home-verb": r"\b(?:go(?:es)? on|going on|went on|lets? go of|puts? apart|know[ns]? of|comes? by|goes? away|gone away)\b",
    "of-its-own": r"\bof (?:its|their|his) own\b",
    # color, artifact, optimize, canceled, judgment
    "british": r"(?i:\w*(?:colour|behaviour|neighbour|favour|honour|artefact|judgement|catalogue|towards|learnt|whilst"
               r"|(?:optim|initial|serial|recogn|synchron|normal|organ|summar|util|minim|maxim|general|special|final)is(?:e|ing|ation)"
               r"|(?:cancel|signal|label|model|travel|channel)l(?:ed|ing)\b)\w*)",
}
# Only of comments, as the first words: they have no subject or no verb.
FRAGMENT = r"(?:Of|What|Whose|Where|Whether|Those|One that|True if|For|With|From|By) .*"


def tracked():
    names = subprocess.run(["git", "-C", str(SOURCE), "ls-files"], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return names or [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*")
                     if path.is_file() and "build" not in path.parts and ".git" not in path.parts]


def prose(page):
    """Returns a page without blocks of code, code in backquotes, and links' targets."""
    page = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), page, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"\]\([^)]*\)", "]", page))


def literals(text):
    """Returns the string literals of C++ or Python, in their lines; comments are left out."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"^\s*(?://|#).*", "", line)
        if re.match(r"\s*#?include", line):
            continue
        found += [(number, one) for one in re.findall(r'"((?:[^"\\]|\\.)*)"', line)]
    for block in re.finditer(r'R"\((.*?)\)"', text, re.S):
        start = text.count("\n", 0, block.start()) + 1
        found += [(start + offset, line) for offset, line in enumerate(block[1].split("\n"))]
    return found


def comments(text, mark):
    """Returns the comment blocks of a file: (number of the first line, text)."""
    blocks, last = [], -1
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*" + mark + r" ?(.*)", line)
        if not match:
            continue
        if last == number - 1 and blocks:
            blocks[-1][1] += " " + match[1]
        else:
            blocks.append([number, match[1]])
        last = number
    return [(number, block) for number, block in blocks]


def texts(files):
    """Yields (kind, file, line, text) for the text of all files, a dict of names and contents."""
    for name, text in files.items():
        if name in SHOWS_PATTERNS:
            continue
        if name.endswith(".md") and (name == "README.md" or name.startswith("docs/")):
            if not name.startswith(GENERATED):
                yield from (("pages", name, number, line) for number, line in enumerate(prose(text).split("\n"), 1))
        elif name.startswith(COMMENTS):
            if name.endswith((".cc", ".h", ".cc.in")):
                yield from (("comments", name, number, block) for number, block in comments(text, r"///?"))
                if name.startswith(MESSAGES):
                    yield from (("messages", name, number, one) for number, one in literals(text))
            elif name.endswith((".py", ".yaml", ".yml")) or text.startswith("#!/usr/bin/python3"):
                yield from (("comments", name, number, block) for number, block in comments(text, "#"))


def places(files):
    """Yields (kind, pattern, file, line, words) for each place of a pattern."""
    for kind, name, number, text in texts(files):
        for pattern, expression in PATTERNS.items():
            for found in re.finditer(expression, text):
                yield kind, pattern, name, number, text[max(0, found.start() - 30):found.end() + 40]
        if kind == "comments" and re.match(FRAGMENT, text) and is_fragment(text):
            yield kind, "fragment", name, number, text[:70]


VERBS = (r"\b(?:is|are|was|were|has|have|had|does|do|did|can|may|must|cannot|will|would|needs?|gets?|makes?|takes?|returns?|"
         r"reads?|writes?|sends?|holds?|counts?|keeps?|comes?|goes|ends?|waits?|asks?|gives?|says?|fails?|means?|follows?|shows?)\b")


def is_fragment(text):
    """Returns whether the first sentence of a comment, which begins with a preposition or a relative, has no main clause."""
    first = re.split(r"(?<=[.:;])\s", text)[0]
    if first.startswith(("Of ", "Whose ", "Whether ", "True if ", "One that ")):
        return True
    if first.startswith(("What ", "Those ", "Where ")):
        return len(re.findall(VERBS, first)) < 2
    return "," not in first and not re.search(VERBS, first)


def long_pages(files):
    for name, text in files.items():
        if (name == "README.md" or name.startswith("docs/") and name.endswith(".md")) and name not in REFERENCES and not name.startswith(GENERATED):
            words = len(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split())
            if words > MOST_WORDS:
                yield f"{name} has {words} words; a page has at most {MOST_WORDS}: split it, or shorten it"


def counts(files):
    result = collections.defaultdict(collections.Counter)
    for kind, pattern, *_ in places(files):
        result[kind][pattern] += 1
    return {kind: {pattern: result[kind][pattern] for pattern in [*PATTERNS, *(["fragment"] if kind == "comments" else [])]}
            for kind in ("pages", "messages", "comments")}


def too_many(found, limits):
    """Yields a sentence for each pattern that is more frequent than its limit."""
    for kind, patterns in found.items():
        for pattern, count in patterns.items():
            limit = limits.get(kind, {}).get(pattern, 0)
            if count > limit:
                yield (f"{kind}: {count} times the pattern '{pattern}', {limit} are allowed; scripts/check_words.py --list "
                       f"{pattern} prints them, CONTRIBUTING.md says what to write instead")


def read_tree():
    files = {}
    for name in tracked():
        path = SOURCE / name
        if name.endswith((".md", ".cc", ".h", ".in", ".py", ".yaml", ".yml")) or name.startswith("scripts/"):
            if path.is_file():
                files[name] = path.read_text(encoding="utf-8", errors="replace")
    return files


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--list")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    files = read_tree()
    if arguments.list:
        for kind, pattern, name, number, words in places(files):
            if pattern == arguments.list:
                print(f"{name}:{number}: {kind}: {words}")
        return 0
    found = counts(files)
    if arguments.update:
        LIMITS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    wrong = [*too_many(found, json.loads(LIMITS.read_text(encoding="utf-8"))), *long_pages(files)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
