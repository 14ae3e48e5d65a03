"""`rocemu timeline` of a recording of each scenario that comes with rocemu: the ladder is the one in
ladders/NAME.txt. With ROCEMU_UPDATE_LADDERS=1 the files are written instead of compared.

Process numbers, and numbers of memory that programs choose as wr_id, differ between machines.
"""
import html.parser
import json
import os
import pathlib
import re
import unittest

from library_programs import COMMANDS
from rocemu import HERE, ROCEMU, rocemu_run, run, temporary_directory

LADDERS = HERE / "ladders"
KINDS = ("frame", "cm", "completion", "event", "fault")
ENDS = 150  # lines that a golden file has of a long ladder's beginning, and of its end


def drawn(recording, *options):
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    result = run(ROCEMU, "timeline", recording, "--width", "120", *kinds, *options)
    if result.returncode != 0:
        raise AssertionError(result.stdout)
    text = re.sub(r"\[\d+\]", lambda pid: "[" + "N" * (len(pid[0]) - 2) + "]", result.stdout)
    text = re.sub(r"0x[0-9a-f]{9,}", lambda number: "A" * len(number[0]), text)
    # Starting PSNs are chosen by chance; beside them stand relative ones.
    text = re.sub(r"\((\d{3,})\)", lambda number: "(" + "P" * len(number[1]) + ")", text)
    lines = text.splitlines()
    left_out = len(lines) - 2 * ENDS
    if left_out > 0:
        lines[ENDS:-ENDS] = [f"... {left_out} lines ..."]
    return "\n".join(lines) + "\n"


class Page(html.parser.HTMLParser):
    """Finds the page's data."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.data, self.outside = False, "", []
        self.feed(text)
        self.data = json.loads(self.data)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.inside = attributes.get("id") == "data"
        self.outside += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        if self.inside:
            self.data += data

    def handle_endtag(self, tag):
        self.inside = False


class Recordings(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.recording = pathlib.Path(directory.name) / "recording"

    def record(self, name):
        rocemu_run(*COMMANDS[name](), options=("--lockstep", "--scenario", name,
                                              "--record", self.recording))

    def test_a_page_is_one_file_with_all_that_happened(self):
        self.record("rnr-recovers")
        page = Page(run(ROCEMU, "timeline", self.recording, "--html", "-", check=True).stdout)
        self.assertEqual(page.outside, ["data:,"])
        self.assertEqual(len(page.data["lanes"]), 2)
        texts = [one["text"] for one in page.data["happenings"]]
        self.assertEqual(len([text for text in texts if text.startswith("RNR NAK")]), 6)

    def test_a_damaged_recording_is_shown_up_to_there(self):
        self.record("rnr-recovers")
        journal = self.recording / "journal"
        contents = bytearray(journal.read_bytes())
        contents[len(contents) // 2] ^= 1
        for damaged in (contents, contents[:len(contents) // 2]):
            journal.write_bytes(damaged)
            result = run(ROCEMU, "timeline", self.recording)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertIn("create_qp", result.stdout)
            self.assertIn("shown is what comes before", result.stdout)

    def test_of_a_recording_of_another_version_the_capture_is_shown(self):
        self.record("rnr-recovers")
        journal = self.recording / "journal"
        contents = bytearray(journal.read_bytes())
        contents[8] = 99
        journal.write_bytes(contents)
        result = run(ROCEMU, "timeline", self.recording)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("RNR NAK", result.stdout)
        self.assertIn("it has format 99", result.stdout)
        (self.recording / "trace.pcap").unlink()
        self.assertEqual(run(ROCEMU, "timeline", self.recording).returncode, 1)

    def test_the_first_error_is_found(self):
        self.record("remote-access-error")
        shown = run(ROCEMU, "timeline", self.recording, "--around-error", "3", check=True).stdout
        self.assertIn("NAK remote access error", " ".join(shown.split()))
        self.assertIn("are not shown", shown)


def ladder_test(name):
    def test(self):
        self.record(name)
        text, golden = drawn(self.recording), LADDERS / (name + ".txt")
        if os.environ.get("ROCEMU_UPDATE_LADDERS"):
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())
    return test


for _name in COMMANDS:
    setattr(Recordings, "test_ladder_of_" + _name.replace("-", "_"), ladder_test(_name))


if __name__ == "__main__":
    unittest.main()
