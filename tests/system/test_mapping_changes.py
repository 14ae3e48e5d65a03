"""Tests memory that is mapped anew after it was registered. A NIC has pinned the pages that were registered. rocemu
uses the pages that are mapped at the time of the access, and warns if that makes a difference: ibv_reg_mr(3),
docs/reference/deviations.md."""
import unittest

from rocemu import BIN, rocemu_run

PROGRAM = BIN / "mapped_anew"
WARNING = "whose pages {} has replaced since the registration"
CHANGES = {"munmap": "munmap(2)", "munmap-odd": "munmap(2)", "mmap": "mmap(2)", "madvise": "madvise(2)", "mremap": "mremap(2)",
           "mremap-over": "mremap(2)"}


class MappingChanges(unittest.TestCase):
    def output(self, change, when, *options):
        result = rocemu_run(str(PROGRAM), change, when, options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_an_access_by_a_stale_region_is_reported_once(self):
        for change, call in CHANGES.items():
            for options in ((), ("--lockstep",)):
                with self.subTest(change=change, options=options):
                    output = self.output(change, "registered", *options)
                    self.assertEqual(output.count(WARNING.format(call)), 1, output)
                    self.assertIn("mapped_anew (pid ", output)
                    self.assertIn("ibv_dereg_mr(3)", output)

    def test_a_change_that_no_message_meets_is_not_reported(self):
        for change in CHANGES:
            with self.subTest(change=change):
                self.assertNotIn("other pages", self.output(change, "unused"))

    def test_a_call_that_fails_changes_nothing(self):
        self.assertNotIn("other pages", self.output("munmap-fails", "registered"))

    def test_memory_that_is_registered_after_the_change_is_not_reported(self):
        for change in CHANGES:
            with self.subTest(change=change):
                self.assertNotIn("other pages", self.output(change, "deregistered"))


if __name__ == "__main__":
    unittest.main()
