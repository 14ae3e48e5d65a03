#!/usr/bin/env python3
"""Checks the layers of docs/ARCHITECTURE.md, as a test, and the size of folders.

usage: scripts/check_includes.py [ROOT]

A file may include its own folder, the folders that RULES names for that folder, and any header that is not part of this
project. A folder may have at most MAX_FILES C++ files, without those in subfolders. Prints FILE:LINE and each broken
rule; the exit status is 1 if there is one.
"""

import collections
import os
import re
import sys

ABI = "emulator/abi"
OS = "emulator/os"
TEXT_FILE = "emulator/os/text_file.h"  # reads the files that users give, also below the daemon
ENGINE = "emulator/engine"
JOURNAL = "emulator/journal"
SCENARIO = "emulator/scenario"
PROFILE = "emulator/profile"
OPTIONS = "emulator/options"
EXPLORE = "emulator/explore"
SCHEDULE = "emulator/schedule"
NETWORK = "emulator/network"
CAPTURE = "emulator/capture"
TIMELINE = "emulator/timeline"
SANITIZER = "emulator/sanitizer"
# Headers of the engine that its stages share. The stages below build on each other in their order.
ENGINE_VALUES = [f"{ENGINE}/{name}.h" for name in ("config", "device_profile", "events", "step")]
SNAPSHOT = f"{ENGINE}/snapshot.h"
BASE, PROTOCOL, OBJECTS, LINK, FAULTS, ADVERSARIAL, TRANSPORT, CM, VERBS, RDMACM = (
    f"{ENGINE}/{folder}"
    for folder in (
        "base", "protocol", "objects", "link", "faults", "adversarial", "transport", "cm", "verbs", "rdmacm"))
EMULATOR = "emulator"  # the whole folder, with everything below it
DAEMON = "emulator/daemon"
DAEMON_MAIN = f"{DAEMON}/daemon_main.h"  # the only file of the daemon that rocemu includes
COMMAND = "emulator/command"
PROVIDER = "verbs_provider"
BELOW_DAEMON = ["wire", ABI, OS, ENGINE, JOURNAL, SCENARIO, PROFILE, SCHEDULE, OPTIONS, CAPTURE, SANITIZER, NETWORK]
BELOW_COMMAND = [ABI, OS, JOURNAL, TIMELINE, SCENARIO, PROFILE, OPTIONS, CAPTURE, ENGINE, EXPLORE, SANITIZER,
                 NETWORK]
BELOW_TIMELINE = [JOURNAL, CAPTURE, ENGINE, "wire", ABI]
# Headers of the timeline and of explore that their own subfolders share.
TIMELINE_MODEL = [f"{TIMELINE}/{name}.h" for name in ("model", "arrange", "beside", "select")]
EXPLORE_FILES = f"{EXPLORE}/files.h"

MAX_FILES = 30


def rooms(folder, names, below):
    """Returns the rules for the subfolders `names` of `folder`: each may include those before it. Files directly in
    the folder connect the subfolders, and have no rule here."""
    paths = [f"{folder}/{name}" for name in names.split()]
    return {path: [*below, *paths[:i]] for i, path in enumerate(paths)}


# `turns`, `call_sites` and `sanitizer` are separate libraries and not among these subfolders.
PROVIDER_ROOMS = rooms(PROVIDER, "system hooks shim base context structs polling datapath objects", [ABI])

# For each folder, the folders and files that it may include. A file belongs to the longest matching folder.
RULES = {
    "wire": [],
    ABI: [],
    OS: [],
    **rooms(OS, "programs threads", [f"{OS}/proc.h", f"{OS}/temporary_directory.h", f"{OS}/unique_fd.h"]),
    ENGINE: ["wire", ABI, ENGINE],
    **{value: ["wire", ABI, BASE, *ENGINE_VALUES] for value in ENGINE_VALUES},
    SNAPSHOT: ["wire", ABI, BASE],
    BASE: ["wire", ABI],
    PROTOCOL: ["wire", ABI, BASE],
    OBJECTS: ["wire", ABI, BASE, PROTOCOL, *ENGINE_VALUES],
    LINK: ["wire", ABI, BASE, PROTOCOL, OBJECTS, *ENGINE_VALUES],
    FAULTS: ["wire", ABI, BASE, PROTOCOL, OBJECTS, LINK, *ENGINE_VALUES],
    ADVERSARIAL: ["wire", ABI, BASE, PROTOCOL, OBJECTS, *ENGINE_VALUES],
    TRANSPORT: ["wire", ABI, BASE, PROTOCOL, OBJECTS, LINK, FAULTS, ADVERSARIAL, *ENGINE_VALUES],
    CM: ["wire", ABI, BASE, PROTOCOL, OBJECTS, TRANSPORT, *ENGINE_VALUES],
    VERBS: ["wire", ABI, BASE, PROTOCOL, OBJECTS, LINK, FAULTS, TRANSPORT, *ENGINE_VALUES],
    RDMACM: ["wire", ABI, BASE, PROTOCOL, OBJECTS, FAULTS, CM, SNAPSHOT, *ENGINE_VALUES],
    CAPTURE: [ENGINE, "wire", ABI, OS],
    JOURNAL: [ENGINE, SCENARIO, PROFILE, NETWORK, "wire", ABI, OS],
    SCENARIO: [ENGINE, "wire", ABI, TEXT_FILE],
    PROFILE: [ENGINE, SCENARIO, ABI, TEXT_FILE],
    OPTIONS: [ENGINE, PROFILE, NETWORK, "wire", ABI, TEXT_FILE],
    EXPLORE: [ABI, OS, EXPLORE],
    **rooms(EXPLORE, "points trials findings", [ABI, OS, EXPLORE_FILES]),
    EXPLORE_FILES: [],
    SCHEDULE: [BASE],
    NETWORK: [BASE],
    f"{NETWORK}/file": [NETWORK, f"{NETWORK}/programs", SCENARIO, BASE, TEXT_FILE],
    f"{NETWORK}/programs": [NETWORK, BASE],
    f"{NETWORK}/traffic": [NETWORK, BASE],
    SANITIZER: [ABI],
    f"{SANITIZER}/nic": [SANITIZER, ENGINE, ABI],
    TIMELINE: BELOW_TIMELINE,
    f"{TIMELINE}/reading": [*BELOW_TIMELINE, *TIMELINE_MODEL],
    f"{TIMELINE}/network": [*BELOW_TIMELINE, NETWORK],
    f"{TIMELINE}/page": [],
    f"{TIMELINE}/drawing": [*BELOW_TIMELINE, *TIMELINE_MODEL, f"{TIMELINE}/page"],
    DAEMON: [EMULATOR, "wire"],
    DAEMON_MAIN: [],
    **rooms(DAEMON, "base memory client rdmacm run net kernel control", BELOW_DAEMON),
    COMMAND: [*BELOW_COMMAND, COMMAND],
    **rooms(COMMAND, "base programs daemons faults profiles hangs sanitizer recordings determinism doctor network nic run",
            BELOW_COMMAND),
    f"{COMMAND}/daemons": [*BELOW_COMMAND, DAEMON_MAIN, *(f"{COMMAND}/{room}" for room in ("base", "programs"))],
    PROVIDER: [ABI, PROVIDER],
    **PROVIDER_ROOMS,
    **{f"{PROVIDER}/{library}": [ABI, *(f"{PROVIDER}/{room}" for room in ("system", "hooks", "shim"))]
       for library in ("turns", "call_sites")},
    f"{PROVIDER}/sanitizer": [*PROVIDER_ROOMS, SANITIZER, ABI],
    "testing": ["verbs_provider", ABI],
    "vipl": [],
    "tests": ["wire", EMULATOR, "verbs_provider", "testing", "vipl"],
}

SUFFIXES = (".h", ".cc", ".cpp", ".hpp", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    """Returns the folder with a rule to which `path` belongs, or None."""
    matching = [folder for folder in RULES if within(path, folder)]
    return max(matching, key=len, default=None)


def included_file(root, including, quoted, angled):
    """Returns the path of an included file from `root`, or None if the file is not a part of this project."""
    name = quoted or angled
    candidates = [name]
    if quoted:
        candidates.insert(0, os.path.join(os.path.dirname(including), name))
    for candidate in candidates:
        candidate = os.path.normpath(candidate)
        if not candidate.startswith("..") and os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def check_file(root, path):
    """Yields (line number, message) for each broken rule."""
    folder = folder_of(path)
    if folder is None:
        yield 1, f"{os.path.dirname(path)} has no rule; give it one in scripts/check_includes.py"
        return
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            target = match and included_file(root, path, *match.groups())
            if not target:
                continue
            target_folder = folder_of(target)
            if target_folder == folder:
                continue
            allowed = any(within(target, other) for other in RULES[folder])
            if not allowed:
                permitted = ", ".join(RULES[folder]) or "nothing else of this project"
                yield number, f'"{target}": {folder} may include {permitted}'


def check_size(files):
    """Yields a message for each folder that has more files than a reader can keep track of."""
    if len(files) > MAX_FILES:
        yield f"{len(files)} C++ files beside each other; split them into folders of at most {MAX_FILES}"


def source_files(root):
    for top in sorted({folder.split("/")[0] for folder in RULES}):
        for directory, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SUFFIXES):
                    yield os.path.relpath(os.path.join(directory, name), root)


def main(arguments):
    if len(arguments) > 1:
        sys.exit("usage: check_includes.py [ROOT]")
    default_root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    root = os.path.abspath(arguments[0] if arguments else default_root)
    count = 0
    broken = 0
    folders = collections.defaultdict(list)
    for path in source_files(root):
        count += 1
        folders[os.path.dirname(path)].append(path)
        for line, message in check_file(root, path):
            broken += 1
            print(f"{path}:{line}: {message}")
    for folder, files in folders.items():
        for message in check_size(files):
            broken += 1
            print(f"{folder}: {message}")
    if count == 0:
        sys.exit(f"no source files below {root}")
    print(f"{count} files, {broken} broken rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
