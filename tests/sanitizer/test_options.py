"""Tests the options of --sanitize, the exit status, and the reports of programs that end abnormally."""
import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

from support import LOCKSTEP, marked_line, program, rocemu_run, sanitized

WRONG = program("mr_deregistered_in_use")


class Options(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rocemu-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def assert_usage(self, words, *options):
        result = rocemu_run("true", options=options)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(words, result.stdout)

    def test_a_report_is_a_sentence_with_its_places_and_what_is_right(self):
        result, _ = sanitized(WRONG)
        self.assertRegex(
            result.stdout,
            r"(?m)^rocemu: error \[mr-deregistered-in-use\]: mr_deregistered#1 deregistered memory "
            r"region \d+ \(lkey 0x[0-9a-f]+\) while receive 1 on QP \d+ still names it\n"
            r"    posted +post_receive\(\) +pair\.c:\d+ +ibv_post_recv +at \d+\.\d{3} s\n"
            r"    deregistered +main\(\) +mr_deregistered_in_use\.c:\d+ +ibv_dereg_mr +at .* s\n"
            r"    Complete or flush the work first: .* \(man ibv_dereg_mr; IBTA vol 1, .*\)\n"
            r"1 error in 1 rule; rocemu explain mr-deregistered-in-use$")

    def test_an_error_makes_the_status_1_and_a_warning_does_not(self):
        self.assertEqual(sanitized(WRONG)[0].returncode, 1)
        self.assertEqual(sanitized(program("destroy_failed"))[0].returncode, 0)

    def test_the_status_of_a_command_that_failed_stays(self):
        result, reports = sanitized("sh", "-c", f"{WRONG}; exit 7")
        self.assertEqual((result.returncode, len(reports)), (7, 1), result.stdout)

    def test_only_the_rules_that_are_asked_for_are_looked_for(self):
        for rules in ("cq-overrun", "-mr-deregistered-in-use", "all,-mr-deregistered-in-use"):
            with self.subTest(rules):
                result, reports = sanitized(WRONG, rules=rules)
                self.assertEqual((result.returncode, reports), (0, []), result.stdout)

    def test_without_the_option_nothing_is_reported(self):
        result = rocemu_run(WRONG)
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_a_plugin_with_libraries_of_its_own_works(self):
        for options in ((), LOCKSTEP):
            result, reports = sanitized(program("sanitizer_with_plugin"), program("sanitizer_plugin.so"),
                                        options=options)
            self.assertEqual((result.returncode, reports), (0, []), result.stdout)

    def test_an_unknown_rule_is_named_with_the_one_that_was_meant(self):
        self.assert_usage("there is no rule 'cq-overun'; did you mean 'cq-overrun'?",
                          "--sanitize=cq-overun")
        self.assert_usage("there is no rule 'nothing'; rocemu explain --list",
                          "--sanitize=-nothing")
        self.assert_usage("--sanitize-trap: there is no rule 'nothing'", "--sanitize",
                          "--sanitize-trap", "nothing")

    def test_options_that_need_the_sanitizer_say_so(self):
        for option in ("--sanitize-report", "--sanitize-suppressions", "--sanitize-trap"):
            self.assert_usage(f"{option} needs --sanitize", option, "x.json")

    def test_a_report_needs_an_extension_that_is_known(self):
        self.assert_usage("has an unknown extension", "--sanitize", "--sanitize-report",
                          "report")

    def report(self, name, *command):
        file = self.directory / name
        rocemu_run(*command, options=("--sanitize", "--sanitize-report", file))
        return file.read_text(encoding="utf-8")

    def test_sarif_has_the_rule_the_line_and_the_places_before(self):
        log = json.loads(self.report("r.sarif", WRONG))
        self.assertEqual(log["version"], "2.1.0")
        (run,) = log["runs"]
        (result,) = run["results"]
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        self.assertEqual((rule["id"], result["ruleId"], result["level"]),
                         ("mr-deregistered-in-use", "mr-deregistered-in-use", "error"))
        (location,) = result["locations"]
        place = location["physicalLocation"]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("/mr_deregistered_in_use.c"))
        self.assertEqual(place["region"]["startLine"], marked_line("mr_deregistered_in_use"))
        self.assertEqual(len(result["relatedLocations"]), 1)

    def test_junit_has_a_failure_for_an_error_and_a_test_for_a_warning(self):
        for name, failures in ((WRONG, 1), (program("qp_destroyed_in_use"), 0)):
            suites = xml.etree.ElementTree.fromstring(self.report("r.xml", name))
            self.assertEqual(suites.get("failures"), str(failures))
            self.assertEqual(len(suites.findall("testsuite/testcase")), 1)
            self.assertEqual(len(suites.findall("testsuite/testcase/failure")), failures)
        suites = xml.etree.ElementTree.fromstring(self.report("r.xml", "true"))
        self.assertEqual((suites.get("tests"), suites.get("failures")), ("1", "0"))

    def test_a_report_that_cannot_be_written_fails_before_the_command_runs(self):
        mark = self.directory / "ran"
        result = rocemu_run("touch", mark, options=("--sanitize", "--sanitize-report",
                                                    self.directory / "none" / "r.json"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write --sanitize-report", result.stdout)
        self.assertFalse(mark.exists())

    def test_suppressions_leave_reports_out(self):
        file = self.directory / "suppressions"
        file.write_text("# known\nmr-deregistered-in-use:post_rec*ve\n", encoding="utf-8")
        result, reports = sanitized(WRONG, options=("--sanitize-suppressions", file))
        self.assertEqual((result.returncode, reports, result.stdout), (0, [], ""))

    def test_suppressions_that_cannot_be_read_fail_before_the_command_runs(self):
        for text, words in ((None, "cannot read"), ("nothing:f\n", "there is no rule 'nothing'")):
            file = self.directory / "suppressions"
            if text is not None:
                file.write_text(text, encoding="utf-8")
            result = rocemu_run("true", options=("--sanitize", "--sanitize-suppressions", file))
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stdout)

    def test_a_trap_stops_the_thread_at_its_mistake(self):
        result, reports = sanitized(WRONG, options=("--sanitize-trap", "mr-deregistered-in-use"))
        self.assertEqual(result.returncode, 128 + 5, result.stdout)
        self.assertEqual(len(reports), 1)

    def test_a_rule_of_the_nic_has_no_thread_to_trap(self):
        self.assert_usage("cq-overrun is detected by the NIC", "--sanitize", "--sanitize-trap", "cq-overrun")

    def test_what_man_pages_leave_undefined_is_a_pattern(self):
        plain = rocemu_run(program("bad_end"), "undefined").stdout.splitlines()
        lines = sanitized(program("bad_end"), "undefined",
                          rules="cq-overrun")[0].stdout.splitlines()
        self.assertEqual(lines[0], "7 1 Work Request Flushed Error")
        self.assertEqual(lines[1:], ["5a5a5a5a 5a5a5a5a 5a5a5a5a 5a", "1 23130"])
        self.assertEqual(plain[0], lines[0])
        self.assertEqual(plain[2], "1 22")


class BadEnds(unittest.TestCase):
    """Reports are complete, however the program ends."""

    def test_by_a_signal_by__exit_or_by_a_crash(self):
        for end, status in (("kill", 128 + 9), ("_exit", 3), ("abort", 128 + 6)):
            for options in ((), LOCKSTEP):
                with self.subTest(end=end, options=options):
                    result, reports = sanitized(program("bad_end"), end, options=options)
                    self.assertEqual(result.returncode, status, result.stdout)
                    self.assertEqual([report["rule"] for report in reports],
                                     ["mr-deregistered-in-use"])

    def test_of_many_times_the_same_mistake_one_is_printed_and_nothing_grows(self):
        refusals, posts = 1000000, 2000
        result, reports = sanitized(program("bad_end"), "repeat", str(refusals), str(posts))
        counts = [(report["rule"], report["count"]) for report in reports]
        # The program posts first before it polls again, so at that time it may not know of the error yet.
        self.assertEqual(counts, [("protection-explained", 1), ("refused-limit", refusals),
                                  ("posted-after-error", posts - 1)], result.stdout)
        self.assertLess(len(result.stdout), 4000)
        self.assertIn(f"found {refusals} times", result.stdout)
        (growth,) = re.findall(r"(?m)^(\d+) (-?\d+)$", result.stdout)
        memory_kib, findings = map(int, growth)
        self.assertLess(memory_kib, 1024)
        self.assertEqual(findings, 0)

    def test_of_two_processes_the_place_is_one(self):
        command = f"{program('bad_end')} _exit & {program('bad_end')} _exit & wait"
        result, reports = sanitized("sh", "-c", command)
        self.assertEqual([report["count"] for report in reports], [2], result.stdout)


if __name__ == "__main__":
    unittest.main()
