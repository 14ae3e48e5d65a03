#!/usr/bin/python3
"""Checks the files, names, links and numbers in the documents (scripts/pages.py), and docs/statuses.md.

usage: scripts/check_docs.py [INCLUDE_DIRECTORY]

docs/statuses.md must have one row for every value of ibv_wc_status, ibv_event_type and rdma_cm_event_type. Other
rows are allowed only for values that rocemu knows from newer headers. The test that a row names must exist. Prints a
line for each error; the exit status is 1 if there is one.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pages  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PAGE = SOURCE / "docs" / "statuses.md"
OURS = {  # the values that rocemu knows
    "emulator/abi/verbs_values.h": [("ROCEMU_WC_STATUSES", "IBV_WC_"),
                                    ("ROCEMU_OLDER_EVENT_TYPES", "IBV_EVENT_"),
                                    ("ROCEMU_EVENT_TYPES", "IBV_EVENT_")],
    "emulator/abi/ucma.h": [("ROCEMU_CM_EVENT_TYPES", "RDMA_CM_EVENT_")],
}
ENUMERATIONS = {
    "infiniband/verbs.h": ["ibv_wc_status", "ibv_event_type"],
    "rdma/rdma_cma.h": ["rdma_cm_event_type"],
}


def values_of(header, enumeration):
    body = re.search(r"enum " + enumeration + r" \{(.*?)\};", header, re.S)[1]
    return re.findall(r"\b((?:IBV|RDMA)_\w+)", body)


def values_of_ours():
    for header, macros in OURS.items():
        text = (SOURCE / header).read_text()
        for macro, prefix in macros:
            body = re.search(r"#define " + macro + r"\(V\)(.*?\))\n(?!  V)", text, re.S)[1]
            for name in re.findall(r"V\(\w+, (\w+), ", body):
                yield prefix + name


def tests():
    """Returns the names of all tests in the form that ctest uses, and the names of the files of Python tests."""
    names = set()
    for file in (SOURCE / "tests").rglob("*.cc"):
        for suite, name in re.findall(r"^TEST(?:_P|_F)?\((\w+),\s*(\w+)\)", file.read_text(), re.M):
            names.add(f"{suite}.{name}")
    return names | {file.name for file in (SOURCE / "tests").rglob("*.py")}


def wrong_statuses(include):
    known = [value for header, enumerations in ENUMERATIONS.items()
             for enumeration in enumerations
             for value in values_of((include / header).read_text(), enumeration)]
    page = PAGE.read_text()
    explained = re.findall(r"^\| ((?:IBV|RDMA)_\w+) \|.*\|.*\|$", page, re.M)
    wrong = [f"{value} has {explained.count(value)} rows instead of one"
             for value in known if explained.count(value) != 1]
    wrong += [f"{name} is no value of {', '.join(ENUMERATIONS)}"
              for name in explained if name not in known and name not in set(values_of_ours())]
    there = tests()
    named = re.findall(r"`(\w+\.[A-Z]\w+)`", page) + re.findall(r"\b(test_\w+\.py)\b", page)
    wrong += [f"the test {name} does not exist" for name in named if name not in there]
    return [f"{PAGE.relative_to(SOURCE)}: {line}" for line in wrong]


def main():
    include = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/include")
    wrong = wrong_statuses(include) + pages.wrong_pages(SOURCE)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
