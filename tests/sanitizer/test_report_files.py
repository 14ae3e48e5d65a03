"""Tests that other tools can read the files of --sanitize-report."""
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from support import LOCKSTEP, ROCEMU, program, rocemu_run, side_by_side

SUBSET = pathlib.Path(__file__).with_name("sarif-subset.schema.json")
PROGRAMS = ("cq_overrun", "destroy_failed", "fork_unprotected", "list_posted_again",
            "mr_deregistered_in_use", "posted_after_error", "protection_explained",
            "qp_destroyed_in_use", "receive_buffer_overlap", "rkey_stale", "send_queue_overflow",
            "cq_overrun_right")

# The contents that a testsuite may have by jenkins-junit.xsd, the schema to which pytest's xunit2
# conforms.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp",
                  "hostname", "id", "package"},
    "testcase": {"name", "classname", "assertions", "time", "status"},
    "failure": {"type", "message"},
    "system-out": set(),
    "skipped": {"message"},
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"skipped", "failure", "system-out"},
    "failure": set(),
    "system-out": set(),
    "skipped": set(),
}


class ReportFiles(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def reports(self, extension):
        """Returns the reports of each program, by the name of its file."""
        files = {name: self.directory / (name + extension) for name in PROGRAMS}

        def run(name):
            rocemu_run(program(name), options=("--sanitize=all", "--sanitize-report", files[name],
                                               *LOCKSTEP, "--timeout", "20s"))
        side_by_side(self, run, PROGRAMS)
        return files

    def validator(self):
        try:
            import jsonschema
        except ImportError as error:
            self.skipTest(f"{error}: apt-get install python3-jsonschema")
        schema = json.loads(SUBSET.read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        return jsonschema.Draft7Validator(schema)

    def assert_sarif(self, file, validator):
        log = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual([f"{error.json_path}: {error.message}" for error in
                          validator.iter_errors(log)], [], file)
        return log["runs"][0]["results"]

    def test_sarif_is_valid(self):
        validator = self.validator()
        for name, file in self.reports(".sarif").items():
            with self.subTest(name):
                results = self.assert_sarif(file, validator)
                self.assertEqual(bool(results), not name.endswith("_right"))
                # GitHub code scanning refuses a result without a location.
                for result in results:
                    self.assertEqual(len(result["locations"]), 1, result)

    def test_sarif_of_a_recording_and_of_explore_is_valid(self):
        validator = self.validator()
        rocemu_run(program("rkey_stale"), options=("--record", self.directory / "run", *LOCKSTEP))
        file = self.directory / "replay.sarif"
        subprocess.run([ROCEMU, "replay", "--sanitize", "--sanitize-report", file,
                        self.directory / "run"], check=False, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertEqual(len(self.assert_sarif(file, validator)), 1)
        subprocess.run([ROCEMU, "explore", "--sanitize", "--only", "verbs:alloc_pd", "--output",
                        self.directory / "explored", "--", program("mr_deregistered_in_use")],
                       check=False, timeout=240, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertTrue(self.assert_sarif(self.directory / "explored" / "report.sarif", validator))

    def assert_allowed(self, element):
        self.assertIn(element.tag, ATTRIBUTES)
        self.assertLessEqual(set(element.attrib), ATTRIBUTES[element.tag], element.tag)
        self.assertLessEqual({child.tag for child in element}, CHILDREN[element.tag], element.tag)
        if element.tag in ("testsuite", "testcase"):
            self.assertIn("name", element.attrib)
        for child in element:
            self.assert_allowed(child)

    def test_junit_is_valid_and_counts_what_it_has(self):
        for name, file in self.reports(".xml").items():
            with self.subTest(name):
                root = xml.etree.ElementTree.parse(file).getroot()
                self.assert_allowed(root)
                for counted in (root, *root.findall("testsuite")):
                    self.assertEqual(int(counted.get("tests")),
                                     len(list(counted.iter("testcase"))))
                    self.assertEqual(int(counted.get("failures")),
                                     len(list(counted.iter("failure"))))

    def test_a_common_parser_reads_junit(self):
        try:
            import junitparser
        except ImportError as error:
            self.skipTest(f"{error}: apt-get install python3-junitparser")
        file = self.reports(".xml")["mr_deregistered_in_use"]
        [suite] = junitparser.JUnitXml.fromfile(str(file))
        self.assertEqual((suite.tests, suite.failures), (1, 1))
        [case] = suite
        self.assertEqual(case.classname, "rocemu.sanitize.mr-deregistered-in-use")
        result = case.result if isinstance(case.result, list) else [case.result]
        self.assertEqual([type(one).__name__ for one in result], ["Failure"])


if __name__ == "__main__":
    unittest.main()
