"""Runs every command line of README.md and of the pages of docs/, in their order, and compares the output with that on
the page.

scripts/page_commands.py finds the commands. test_lessons.py runs those of docs/learn, and test_guide.py those of
docs/explore.md. Each page has a separate directory with the programs of docs/learn and a program my_test, which is one
of them. Commands that are not run are named below, with the reason. With ROCEMU_UPDATE_DOCS=1, the output on the pages
is replaced by the actual output.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import page_commands  # noqa: E402

LESSONS = ROOT / "docs" / "learn"
BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
TIMEOUT = 240  # seconds, far longer than any command takes
ELSEWHERE = {"explore.md"}  # tests/explore/verdicts/test_guide.py
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md",
         *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE)]

# Commands that are not run, by their first words.
NOT_RUN = {
    "export PATH=": "the test has rocemu in PATH already",
    "gcc -I$PREFIX": "there is no old.c: tests/vipl compiles such programs",
    "rocemu run -- ./old": "and runs them",
    "scripts/": "builds all again, or installs packages: CONTRIBUTING.md's business",
    # scripts/check-first-page runs these commands of README.md; tests/testing/test_examples.py does the same in the
    # build tree.
    "apt-get ": "installs packages",
    "cmake --install build/release": "the test's build is elsewhere",
    "cmake -G Ninja -S my_tests": "and is not installed",
    "my_tests/build/my_test": "so this is not built",
    "PYTHONPATH=$HOME": "and this is not there",
}
# The exit status of each command that must fail, by a part of the command.
STATUSES = {
}
# Servers, which do not end by themselves, and the URL that a command of the documentation reads from each.
SERVERS = {"prometheus-node-exporter": "http://localhost:9100/metrics"}
NEEDS = ("lstopo-no-graphics", "prometheus-node-exporter", "mpirun", "tshark")


def go_where_ports_are_free():
    """The pages use the programs' usual ports, which other programs of the machine may use. So starts this program
    again in a separate network namespace, if that is allowed."""
    if "ROCEMU_TEST_UNSHARED" in os.environ:
        return
    unshare = ["unshare", "--net", *(["--map-root-user"] if os.geteuid() != 0 else []),
               "sh", "-ec", 'ip link set lo up; exec "$@"', "sh"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ["ROCEMU_TEST_UNSHARED"] = "1"
        os.execvp("unshare", [*unshare, *sys.orig_argv])


go_where_ports_are_free()


def commands_of(page):
    return [step for step in page_commands.steps_of(page.read_text()) if isinstance(step, page_commands.Command)]


class Session:
    """Runs commands one after the other, as in a terminal: each starts in the directory to which the previous one
    changed."""

    def __init__(self, scratch):
        self.scratch = self.directory = pathlib.Path(scratch)
        self.runtime = tempfile.mkdtemp(prefix="rd-")  # a short name, since it is part of the names of sockets
        (self.scratch / "docs").mkdir()
        (self.scratch / "docs" / "learn").symlink_to(self.scratch)
        for program in LESSONS.glob("*.py"):
            shutil.copy(program, self.scratch)
        my_test = self.scratch / "my_test"
        my_test.write_text("#!/bin/sh\ncd \"${0%/*}\" && exec ./send.py 5 4\n")
        my_test.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                            "XDG_RUNTIME_DIR": self.runtime, "NO_COLOR": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("ROCEMU_DIR", "LD_PRELOAD"):
            self.environment.pop(name, None)
        self.background = []

    def start(self, command):
        """Starts a server, as in a separate terminal."""
        self.background.append(subprocess.Popen(
            ["bash", "-c", command], cwd=self.directory, env=self.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.background[-1]

    def run(self, command):
        """Runs a command, and returns its exit status and output."""
        place = self.scratch / "directory"
        result = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?; pwd >{place}; exit $status"], cwd=self.directory,
            env=self.environment, timeout=TIMEOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", stdin=subprocess.DEVNULL, check=False)
        if place.exists():
            self.directory = pathlib.Path(place.read_text().strip())
            place.unlink()
        return result.returncode, result.stdout.strip("\n")

    def close(self):
        if not self.scratch.exists():
            return
        for process in self.background:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        self.run("rocemu down")
        shutil.rmtree(self.runtime, ignore_errors=True)


class Commands(unittest.TestCase):
    maxDiff = None

    def run_page(self, page):
        self.updates = []
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            session = Session(scratch)
            self.addCleanup(session.close)
            self.prepare(page, session)
            for command in commands_of(page):
                if any(command.text.startswith(beginning) for beginning in NOT_RUN):
                    continue
                with self.subTest(command.text):
                    self.check(session, command.text, command.output)
            session.close()
        text = page.read_text()
        for shown, found in self.updates:
            text = text.replace(shown, found, 1)
        if self.updates:
            page.write_text(text)

    def prepare(self, page, session):
        """Creates the files that the page shows with `cat`."""
        for command in commands_of(page):
            if name := re.fullmatch(r"cat (\w+\.yaml)", command.text):
                (session.scratch / name[1]).write_text(command.output + "\n")

    def page_of(self, process, address):
        """Waits until the server answers, and returns the answer."""
        deadline = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                    return answer.read().decode()
            except urllib.error.URLError:
                time.sleep(0.05)
        return self.fail(f"nothing answers at {address}")

    def check(self, session, command, output):
        missing = [tool for tool in NEEDS if tool in command and shutil.which(tool) is None]
        if missing:
            self.skipTest(f"there is no {missing[0]}")
        if "# in one terminal" in command:
            session.start(command)
            session.run("rocemu wait --listening 18515")  # ibv_rc_pingpong's default port
            return
        if server := next((name for name in SERVERS if name in command), None):
            self.assertIn("rocemu0", self.page_of(session.start(command), SERVERS[server]))
            return
        status, found = session.run(command)
        wanted = next((one for part, one in STATUSES.items() if part in command), 0)
        self.assertEqual(status, wanted, found)
        if output and os.environ.get("ROCEMU_UPDATE_DOCS"):
            self.updates.append((f"$ {command}\n{output}\n", f"$ {command}\n{found}\n"))
        elif output:
            self.assertEqual(page_commands.masked(found), page_commands.masked(output))


def add_test(page):
    name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
    setattr(Commands, "test_" + name, lambda self: self.run_page(page))


for _page in PAGES:
    if commands_of(_page):
        add_test(_page)


class Words(unittest.TestCase):
    """Tests that all options of rocemu commands exist that are in blocks of code or in the text of a page."""

    def options(self, command, cache={}):
        if command not in cache:
            result = subprocess.run([BIN / "rocemu", command, "--help-all"], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT, check=False)
            cache[command] = (set(re.findall(r"--[a-z][a-z-]*", result.stdout)) | {"--help", "--help-all"}
                              if result.returncode == 0 else None)
        return cache[command]

    def test_no_page_names_a_command_or_option_that_does_not_exist(self):
        pages = [*PAGES, *(ROOT / "docs").glob("*/*.md"), ROOT / "docs" / "explore.md"]
        for page in pages:
            text = page.read_text()
            pieces = re.findall(r"`(rocemu [^`\n]*)`", text)
            for block in re.findall(r"^```\n(.*?)^```$", text, re.M | re.S):
                pieces += re.findall(r"^(?:[\w-]*\$ )?(rocemu .*)$", block, re.M)
            for one in pieces:
                words = one.split()
                if len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]) or words[1] == "help":
                    continue
                with self.subTest(page=page.name, command=one):
                    known = self.options(words[1])
                    self.assertIsNotNone(known, f"there is no rocemu {words[1]}")
                    own = re.split(r" -- |[|;#]|  ", one)[0]
                    for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", own):
                        self.assertIn(option, known)


if __name__ == "__main__":
    unittest.main()
