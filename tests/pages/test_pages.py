"""Opens the pages of `rocemu timeline --html` and of `rocemu explore` in headless Chromium. Nothing is
written to the console. Keys, clicks and taps have their effects, quickly. A screen reader finds what it
needs. In every scenario, on wide and narrow screens, arrows end where frames arrive and cross no text.
Mermaid's parser reads the output of `rocemu timeline --mermaid`.

Needs node, Chromium, and the packages that package.json names: run `npm install` in this directory, or set
ROCEMU_NODE_MODULES to the directory where they are.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from library_programs import COMMANDS  # noqa: E402
from rocemu import (ROCEMU, pingpong_pair, rocemu_run, run,  # noqa: E402
                    temporary_directory)

MODULES = pathlib.Path(os.environ.get("ROCEMU_NODE_MODULES", HERE / "node_modules"))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CAPTURES = HERE.parent / "data" / "rxe"
RECORDED = ("rnr-recovers", "rtu-lost", "verb-enomem", "retry-exceeded", "remote-access-error",
            "cq-overrun", "device-removal")
FRAMES = 100_000
MOST_KEY_MS = 100


def require(module):
    if shutil.which("node") is None:
        raise unittest.SkipTest("there is no node: apt-get install nodejs")
    if not (MODULES / module).is_dir():
        raise unittest.SkipTest(f"there is no {module}: run npm install in tests/pages, or say with "
                                "ROCEMU_NODE_MODULES where it is")


class Pages(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)

    def record(self, name):
        recording = self.scratch / name
        rocemu_run(*COMMANDS[name](), options=("--lockstep", "--scenario", name,
                                               "--record", recording))
        return recording

    def page(self, name, *arguments):
        path = self.scratch / (name + ".html")
        run(ROCEMU, "timeline", *arguments, "--html", path, check=True)
        return path

    def node(self, script, *arguments):
        # Node searches for modules next to the script.
        (self.scratch / "node_modules").symlink_to(MODULES)
        shutil.copy(HERE / script, self.scratch)
        result = subprocess.run(["node", self.scratch / script, *arguments], cwd=self.scratch,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=700, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def long_page(self):
        """Makes the page of a recording with many frames: two for each message of each side."""
        recording = self.scratch / "long"
        rocemu_run(*pingpong_pair("-n", str(FRAMES // 4), "-s", "64", client_device="rocemu1"),
                   options=("--record", recording), check=True)
        return self.page("long", recording, "--kind", "frame", "--kind", "completion")

    def failed_expectation(self):
        """Returns the golden run of --expect, and a run that differed from it."""
        golden, failed = self.scratch / "golden", self.scratch / "failed"
        lockstep = ("--lockstep", "--expect", golden)
        command = COMMANDS["rnr-recovers"]()
        rocemu_run(*command, options=(*lockstep, "--scenario", "rnr-recovers", "--update"), check=True)
        result = rocemu_run(*command, options=(*lockstep, "--scenario", "ghost-ack", "--actual", failed))
        self.assertNotEqual(result.returncode, 0)
        return golden, failed

    def explore_report(self):
        folder = self.scratch / "explored"
        run(ROCEMU, "explore", "--output", folder, "--budget", "5s", "--", "ibv_devinfo")
        return folder / "report.html"

    def open_pages(self, *arguments):
        require("playwright-core")
        if CHROMIUM is None:
            self.skipTest("there is no Chromium: apt-get install chromium")
        return [json.loads(line) for line in self.node("open_pages.mjs", CHROMIUM, *arguments).splitlines()]

    def test_pages_open_and_work_in_chromium(self):
        require("playwright-core")
        recordings = {name: self.record(name) for name in RECORDED}
        pages = [self.page(name, recording) for name, recording in recordings.items()]
        pages.append(self.page("difference", *self.failed_expectation()))
        pages += [self.page("rxe-" + name, CAPTURES / (name + ".pcap"))
                  for name in ("rc_rnr", "rc_send")]
        pages.append(self.explore_report())
        pages.append(self.long_page())
        told = self.open_pages(*pages)
        self.assertEqual(len(told), len(pages))
        for one in told:
            with self.subTest(pathlib.Path(one["file"]).stem):
                self.assertEqual((one["said"], one["failed"]), ([], []))
                self.assertLess(one["slowest"], MOST_KEY_MS)

    def test_every_scenario_is_legible_in_chromium(self):
        require("playwright-core")
        pages = [self.page(name, self.record(name)) for name in COMMANDS if name not in RECORDED]
        told = self.open_pages("--legible", *pages)
        self.assertEqual(len(told), len(pages))
        for one in told:
            with self.subTest(pathlib.Path(one["file"]).stem):
                self.assertEqual((one["said"], one["failed"]), ([], []))

    def test_mermaid_reads_its_diagrams(self):
        require("mermaid")
        diagrams = []
        for name in RECORDED:
            diagrams.append(self.scratch / (name + ".mmd"))
            run(ROCEMU, "timeline", self.record(name), "--mermaid", diagrams[-1], check=True)
        self.node("parse_mermaid.mjs", *diagrams)


if __name__ == "__main__":
    unittest.main()
