"""Tests `rocemu timeline` with a recording of each scenario that comes with rocemu: the ladder must be that in
ladders/NAME.txt. With ROCEMU_UPDATE_LADDERS=1, the files are written instead of compared. Process numbers, and memory
addresses that programs use as wr_id, are masked, since they differ between machines.
"""
import html.parser
import json
import os
import pathlib
import re
import unittest
import xml.etree.ElementTree

from library_programs import COMMANDS
from recorded_reasons import check_reasons
from rocemu import HERE, ROCEMU, rocemu_run, run, temporary_directory

LADDERS = HERE / "ladders"
KINDS = ("frame", "cm", "completion", "event", "fault")
ENDS = 150  # lines of the beginning, and of the end, of a long ladder that a golden file has


def drawn(recording, *options):
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    result = run(ROCEMU, "timeline", recording, "--width", "120", *kinds, *options)
    if result.returncode != 0:
        raise AssertionError(result.stdout)
    text = re.sub(r"\[\d+\] *", "[PID]  ", result.stdout)
    text = re.sub(r" +$", "", text, flags=re.M)
    text = re.sub(r"0x[0-9a-f]{9,}", lambda number: "A" * len(number[0]), text)
    # Starting PSNs are random, so they are masked; relative PSNs are next to them.
    text = re.sub(r"\((\d{3,})\)", lambda number: "(" + "P" * len(number[1]) + ")", text)
    lines = text.splitlines()
    left_out = len(lines) - 2 * ENDS
    if left_out > 0:
        lines[ENDS:-ENDS] = [f"... {left_out} lines ..."]
    return "\n".join(lines) + "\n"


class Page(html.parser.HTMLParser):
    """Finds the data in an HTML page."""

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
            self.assertIn("only the part before is shown", result.stdout)

    def test_of_a_recording_of_another_version_the_capture_is_shown(self):
        self.record("rnr-recovers")
        journal = self.recording / "journal"
        contents = bytearray(journal.read_bytes())
        contents[8] = 99
        journal.write_bytes(contents)
        result = run(ROCEMU, "timeline", self.recording)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("RNR NAK", result.stdout)
        self.assertIn("the journal has format 99", result.stdout)
        (self.recording / "trace.pcap").unlink()
        self.assertEqual(run(ROCEMU, "timeline", self.recording).returncode, 1)

    def test_the_first_error_is_found(self):
        self.record("remote-access-error")
        shown = run(ROCEMU, "timeline", self.recording, "--around-error", "3", check=True).stdout
        self.assertIn("NAK remote access error", " ".join(shown.split()))
        self.assertIn("are not shown", shown)


    def timeline(self, *arguments):
        return run(ROCEMU, "timeline", *arguments, check=True).stdout

    def test_a_trace_is_as_its_format_says(self):
        """Tests the Trace Event Format: each event has a phase; slices have time, duration, process and track; each
        flow has both ends, and the later end is not before the earlier one."""
        self.record("rnr-recovers")
        trace = json.loads(self.timeline(self.recording, "--perfetto", "-"))
        self.assertEqual(trace["displayTimeUnit"], "ns")
        named, leaving, arriving = set(), {}, {}
        for event in trace["traceEvents"]:
            self.assertIsInstance(event["pid"], int)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                self.assertTrue(event["args"]["name"])
                named.add((event["pid"], event.get("tid")))
                continue
            self.assertEqual(event["ph"], "X")
            self.assertIn((event["pid"], event["tid"]), named)
            self.assertGreaterEqual(event["ts"], 0)
            self.assertEqual(event["dur"], 0)
            self.assertTrue(event["name"])
            if event.get("flow_out"):
                leaving[event["bind_id"]] = event
            if event.get("flow_in"):
                arriving[event["bind_id"]] = event
        self.assertEqual(set(leaving), set(arriving))
        self.assertGreater(len(leaving), 100)
        for number, event in leaving.items():
            self.assertLessEqual(event["ts"], arriving[number]["ts"])
            self.assertNotEqual((event["pid"], event["tid"]),
                                (arriving[number]["pid"], arriving[number]["tid"]))

    def test_a_diagram_is_in_mermaids_grammar(self):
        """Checks each statement of the diagram, one in a line. tests/pages uses Mermaid's own parser, if it is
        installed."""
        self.record("rtu-lost")
        lines = self.timeline(self.recording, "--mermaid", "-").splitlines()
        self.assertEqual(lines[0], "sequenceDiagram")
        text = r"([^#;<>%{}\[\]\"]|#\d+;|<br/>)+"
        for line in lines[1:]:
            self.assertRegex(line, rf"^  (participant L\d+ as {text}|Note over L\d+: {text}|"
                                   rf"L\d+(->>|-->>|-x)L\d+: {text}|%% .*)$")
        self.assertEqual(len([line for line in lines if "-x" in line]), 1)

    def test_a_picture_is_xml_of_its_size(self):
        self.record("rtu-lost")
        picture = xml.etree.ElementTree.fromstring(
            self.timeline(self.recording, "--svg", "-", "--width", "100", "--kind", "cm"))
        width, height = (float(picture.get(name)) for name in ("width", "height"))
        space = "{http://www.w3.org/2000/svg}"
        texts = picture.findall(space + "text")
        self.assertIn("RTU", [text.text for text in texts])
        for text in texts:
            self.assertLessEqual(float(text.get("y")), height)
            self.assertLessEqual(float(text.get("x")) + 7.8 * len(text.text), width + 8, text.text)

    def test_several_forms_are_written_at_once(self):
        self.record("rtu-lost")
        files = {form: self.recording / form for form in ("html", "svg", "mermaid", "perfetto")}
        said = self.timeline(self.recording, *(word for form, file in files.items()
                                               for word in ("--" + form, file)))
        self.assertEqual(said, "")
        for file in files.values():
            self.assertGreater(file.stat().st_size, 500)

    def test_two_runs_are_beside_each_other_up_to_the_first_difference_and_beyond(self):
        self.record("rnr-recovers")
        first, self.recording = self.recording, self.recording.with_name("second")
        self.assertIn("both runs are equal", self.timeline(first, first))
        self.record("ghost-ack")
        shown = " ".join(self.timeline(first, self.recording, "--around-error", "2").split())
        self.assertIn("first difference", shown)
        self.assertIn("1st run", shown)
        self.assertIn("2nd run", shown)
        page = Page(self.timeline(first, self.recording, "--html", "-"))
        self.assertEqual(len(page.data["lanes"]), 4)
        self.assertEqual([one["text"] for one in page.data["happenings"]
                          if one["topic"] == "first difference"], ["first difference"])

    def test_a_page_explains_what_it_shows(self):
        self.record("remote-access-error")
        topics = Page(self.timeline(self.recording, "--html", "-")).data["topics"]
        self.assertIn("R_Key", topics["IBV_WC_REM_ACCESS_ERR"])
        self.assertIn("what programs do", topics["IBV_WC_REM_ACCESS_ERR"])
        self.assertEqual([topic for topic, text in topics.items() if not text and topic != "fault"], [])


def ladder_test(name):
    def test(self):
        self.record(name)
        check_reasons(self, self.recording)
        text, golden = drawn(self.recording), LADDERS / (name + ".txt")
        if os.environ.get("ROCEMU_UPDATE_LADDERS"):
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())
    return test


for _name in COMMANDS:
    setattr(Recordings, "test_ladder_of_" + _name.replace("-", "_"), ladder_test(_name))


if __name__ == "__main__":
    unittest.main()
