"""Finds statements of the documents that the tree contradicts, for scripts/check_docs.py:

- a link to a page, a file or a heading that does not exist;
- a file of the tree, in backquotes, that does not exist;
- on the pages about the code, a name in the code that no file has;
- in docs/design/where.md, a function that is not in the file named in its row;
- in docs/design/recipes.md, a wrong number of files that a fault effect needs;
- in docs/reference/versions.md and vendor-errors.md, numbers that differ from those in the code.
"""
import pathlib
import re

CODE = ("wire", "emulator", "verbs_provider", "testing", "vipl", "tests", "scripts", "packaging")
FOLDERS = CODE + ("docs", "scenarios", "topologies", "profiles", "examples", "debian", ".github", ".ci")
PAGES_OF_CODE = ("docs/ARCHITECTURE.md", "docs/design/")
HISTORY = "CHANGELOG.md"  # may name files that do not exist any more
# Placeholders in names of files, such as scenarios/NAME.yaml.
STANDS_FOR_ANY = re.compile(r"NAME|<|\*")
WHERE = "docs/design/where.md"
RECIPES = "docs/design/recipes.md"
VERSIONS = "docs/reference/versions.md"
VENDOR_ERRORS = "docs/reference/vendor-errors.md"


def prose(text):
    """Returns a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def quoted(text):
    return re.findall(r"`([^`\n]+)`", prose(text))


def anchors(text):
    """Returns the anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(text), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        number = sum(1 for one in found if re.fullmatch(re.escape(anchor) + r"(-\d+)?", one))
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def broken_links(name, text, files):
    """Checks the links of a page. `files` maps each page to its text, and each other file to ""."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        parts = list(pathlib.PurePosixPath(name).parent.parts) if path else list(pathlib.PurePosixPath(name).parts)
        for part in pathlib.PurePosixPath(path).parts:
            parts = parts[:-1] if part == ".." else parts + [part]
        page = "/".join(parts)
        if page not in files and not any(one.startswith(page + "/") for one in files):
            yield f"the link {target} leads nowhere"
        elif anchor and anchor not in anchors(files.get(page, "")):
            yield f"the link {target} leads to no heading"


def missing_files(text, files):
    """Checks that the named files exist. A name without a folder is checked only if it is a source: a header may be
    one of the system."""
    names = {one.rsplit("/", 1)[-1] for one in files}
    for word in quoted(text):
        is_path = re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*", word)
        if STANDS_FOR_ANY.search(word) or not (is_path or re.fullmatch(r"[\w-]+\.(?:cc|py)", word)):
            continue
        path = word.rstrip("/")
        if not is_path:
            if path not in names:
                yield f"there is no file {word}"
        elif not any(one == path or one.startswith((path + "/", path + ".")) for one in files):
            yield f"there is no {word}"


def missing_names(text, words):
    """Checks names in backquotes that look like code, with an underscore, an inner capital, `::` or `()`."""
    for word in quoted(text):
        if not re.fullmatch(r"(?:\w+::)*\w+(?:\(\))?", word) or re.fullmatch(r"[a-z]+|[A-Z0-9_]+|\d\w*", word):
            continue
        if STANDS_FOR_ANY.search(word):
            continue
        for part in re.findall(r"\w+", word):
            if part not in words:
                yield f"no file of the code has the name {word}"
                break


def misplaced_functions(text, contents):
    """Checks rows of `| question | files | functions |`: each function must be in one of the files, or in its header
    or source."""
    for line in prose(text).splitlines():
        cells = line.strip().strip("|").split(" | ")
        if len(cells) != 3 or "---" in line:
            continue
        beside, there = "", ""
        for name in re.findall(r"`([^`]+\.(?:cc|h|yaml))`", cells[1]):
            name = name if name in contents else beside + name
            beside = name.rpartition("/")[0] + "/"
            stem = name.rpartition(".")[0]
            there += "".join(contents.get(one, "") for one in (name, stem + ".h", stem + ".cc"))
        if not there or cells[1].strip().startswith("nowhere"):
            continue
        for function in re.findall(r"`([^`]+)`", cells[2]):
            if not re.search(rf"\b{re.escape(function.split('::')[-1])}\b", there):
                yield f"{function} is not in {cells[1].strip()}"


def wrong_counts(text, contents):
    """Checks the numbers in the row of a fault effect, such as "7 (`silent`)": the count of the product's files that
    use the effect."""
    row = re.search(r"^\| \[a fault effect\].*$", text, re.M)
    for number, effect in re.findall(r"(\d+)[^|;`]*\(`(\w+)`\)", row[0] if row else ""):
        having = [name for name, content in contents.items()
                  if re.match(r"emulator/(engine/faults|scenario|explore|timeline)/.*\.(cc|h)$", name)
                  and re.search(rf'\beffects\.{effect}\b|"{effect}"|^  \w+ {effect} = ', content, re.M)]
        if len(having) != int(number):
            yield f"{effect} touches {len(having)} files, and not {number}: {', '.join(sorted(having))}"


def wrong_versions(text, contents):
    """Checks rows "| ... | `kVersion` in `emulator/abi/control.h` | 6 |"."""
    for constant, file, number in re.findall(r"^\|[^|]*\| `(\w+)` in `([^`]+)` \| (\d+) \|$", text, re.M):
        value = re.search(rf"\b{constant} = (\d+);", contents.get(file, ""))
        if not value or value[1] != number:
            yield f"{constant} of {file} is {value[1] if value else 'not there'}, and not {number}"


def wrong_vendor_errors(text, contents):
    body = re.search(r"enum (?:class )?VendorError\b[^{]*\{(.*?)\};", contents.get("emulator/engine/protocol/nak_codes.h", ""), re.S)
    numbers = re.findall(r"= (\d+),", body[1]) if body else []
    if numbers != re.findall(r"^\| (\d+) \|", text, re.M):
        yield f"the numbers are not those of VendorError: {', '.join(numbers)}"


def wrong_pages(root):
    """Returns a line for each wrong statement of the documents."""
    top = [path for path in root.iterdir() if path.is_file()]
    paths = top + [path for folder in FOLDERS if (root / folder).is_dir() for path in (root / folder).rglob("*")
                   if path.is_file() and "__pycache__" not in path.parts]
    names = {path.relative_to(root).as_posix(): path for path in paths}
    pages = {name: path.read_text() for name, path in names.items() if name.endswith(".md")}
    files = {name: pages.get(name, "") for name in names}
    contents = {name: path.read_text(errors="replace") for name, path in names.items()
                if not name.endswith(".md") and (name.split("/")[0] in CODE + ("scenarios",) or "/" not in name)
                and not name.startswith("tests/data/")}
    words = {word for content in contents.values() for word in re.findall(r"\w+", content)}
    written = {step for page in pages.values() for step in re.findall(r"`([\w./-]+)`:\n\n```\w", page)}
    wrong = []
    for name, text in sorted(pages.items()):
        if name == HISTORY:
            continue
        found = list(broken_links(name, text, files)) + list(missing_files(text, {*files, *written}))
        if name.startswith(PAGES_OF_CODE):
            found += missing_names(text, words)
        if name == WHERE:
            found += misplaced_functions(text, contents)
        if name == RECIPES:
            found += wrong_counts(text, contents)
        if name == VERSIONS:
            found += wrong_versions(text, contents)
        if name == VENDOR_ERRORS:
            found += wrong_vendor_errors(text, contents)
        wrong += [f"{name}: {one}" for one in found]
    return wrong
