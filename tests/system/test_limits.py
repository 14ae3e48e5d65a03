"""Tests that a program can have as many objects as ibv_query_device(3) reports, and that a daemon can
run out of resources for them. To create all objects: rocemu run --private --
build/dev/bin/object_limits (docs/limits.md)."""
import json
import os
import unittest

from rocemu import BIN, ROCEMU, rocemu_run

PROGRAM = BIN / "object_limits"
SANITIZED = os.environ.get("ROCEMU_SANITIZE")


class Limits(unittest.TestCase):
    def check(self, *arguments):
        done = rocemu_run(PROGRAM, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    @unittest.skipIf(SANITIZED, "a sanitizer's allocator keeps what is freed")
    def test_a_part_of_all_objects_takes_few_mappings_and_goes_without_a_trace(self):
        self.check("64")

    @unittest.skipIf(SANITIZED, "a sanitizer reserves much more address space than there is memory")
    def test_what_the_daemon_lacks_is_an_error_of_one_call(self):
        self.assertNotIn("rocemud: error", self.check("exhaust"))

    def test_show_lists_some_of_very_many_and_says_how_many_more_there_are(self):
        done = rocemu_run("sh", "-c", f"{PROGRAM} hold 32 | (head -c 1 > /dev/null; {ROCEMU} show --json)")
        self.assertEqual(done.returncode, 0, done.stdout)
        # raw_decode() ignores what follows the JSON: rocemu's message that nothing was posted.
        device = json.JSONDecoder().raw_decode(done.stdout)[0]["fabric"]["devices"][0]
        self.assertEqual(len(device["cqs"]), 4096)
        self.assertEqual(device["omitted"], {"cqs": 4096, "mrs": 12288, "mws": 12288})
        self.assertEqual(len(device["qps"]), 4096)


if __name__ == "__main__":
    unittest.main()
