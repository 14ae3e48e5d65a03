"""Runs every command of docs/learn and compares its output with that in the lesson. With ROCEMU_UPDATE_LESSONS=1,
writes the actual output into the lessons. Process numbers are masked, since they differ from run to run."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

LESSONS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "learn"
BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
TIMEOUT = 240  # seconds, far longer than any command takes


def masked(text):
    text = re.sub(r"\[\d+\] *", "[PID]  ", text)
    return re.sub(r"\bpid \d+", "pid N", text)


class Lessons(unittest.TestCase):
    def run_lesson(self, path):
        text, update = path.read_text(), os.environ.get("ROCEMU_UPDATE_LESSONS")
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            for file in (*LESSONS.glob("*.py"), *LESSONS.glob("*.yaml")):
                shutil.copy(file, scratch)
            environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                           "PYTHONDONTWRITEBYTECODE": "1"}

            def shown(block):
                parts = []
                for command in re.findall(r"^\$ (.*)$", block[1], re.M):
                    output = subprocess.run(
                        ["bash", "-c", command], cwd=scratch, env=environment, timeout=TIMEOUT,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                        stdin=subprocess.DEVNULL, check=False).stdout
                    parts.append(f"$ {command}\n{output}")
                return "```\n" + "".join(parts) + "```\n"

            found = re.sub(r"^```\n(\$ .*?)^```\n", shown, text, flags=re.M | re.S)
        if update:
            path.write_text(found)
        self.assertEqual(masked(found), masked(text))


class Picture(unittest.TestCase):
    def test_the_readmes_picture_is_of_todays_timeline(self):
        picture = LESSONS.parent / "timeline.svg"
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            for program in LESSONS.glob("*.py"):
                shutil.copy(program, scratch)
            run = [BIN / "rocemu", "run", "--lockstep", "--scenario", "lost-send", "--record", "run1",
                   "--", "./send.py", "5", "4"]
            draw = [BIN / "rocemu", "timeline", "run1", "--width", "84", "--svg", "-"]
            draw += [word for kind in ("frame", "completion", "fault") for word in ("--kind", kind)]
            subprocess.run(run, cwd=scratch, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT)
            drawn = subprocess.run(draw, cwd=scratch, check=True, stdout=subprocess.PIPE, text=True,
                                   timeout=TIMEOUT).stdout
        # In the timeline, all processes get the same name, without their numbers.
        drawn = re.sub(r"send\.py\[\d+\]", "send.py", drawn)
        if os.environ.get("ROCEMU_UPDATE_LESSONS"):
            picture.write_text(drawn)
        self.assertEqual(drawn, picture.read_text())


def add_test(path):
    setattr(Lessons, "test_" + path.stem.replace("-", "_"), lambda self: self.run_lesson(path))


for _path in sorted(LESSONS.glob("[0-9]*.md")):
    add_test(_path)


if __name__ == "__main__":
    unittest.main()
