"""`rocemu timeline` of recordings: whole, damaged, of another version, and as a page."""
import html.parser
import json
import pathlib
import unittest

from library_programs import COMMANDS
from rocemu import ROCEMU, rocemu_run, run, temporary_directory


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


if __name__ == "__main__":
    unittest.main()
