"""Runs a program with --sanitize, and reads the reports."""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
sys.path.insert(0, str(HERE.parent / "system"))
from rocemu import (BIN, NO_CLOCK, ROCEMU, free_port, rocemu_run, side_by_side,  # noqa: E402,F401
                    temporary_directory)

LOCKSTEP = ("--lockstep",)
CLOCKS = ((), LOCKSTEP)


def program(name):
    return BIN / "sanitizer" / name


def sanitized(*command, options=(), rules="", **keywords):
    """Runs the command with --sanitize. Returns the result and the reports."""
    with tempfile.TemporaryDirectory(prefix="rocemu-") as directory:
        file = pathlib.Path(directory) / "report.json"
        option = "--sanitize" + (f"={rules}" if rules else "")
        result = rocemu_run(*command, options=(option, "--sanitize-report", file, *options),
                            **keywords)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return result, json.loads(text)["reports"] if text else None


def marked_line(name):
    """Returns the number of the line in which a program makes its mistake, or None if that is in
    pair.c."""
    (source,) = PROGRAMS.rglob(f"{name}.c")
    lines = source.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if line.endswith("// wrong"):
            return number
    return None
