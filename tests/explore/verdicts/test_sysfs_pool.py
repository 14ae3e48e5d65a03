"""Tests that the runs of an exploration, which pass on their sysfs trees, do not see each other's changes, and that
nothing of these trees remains."""
import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from support import TIMEOUT, VICTIM, ExploreTest

# Reports a file that an earlier run created, and a file that it wrote; then does both.
WRITER = """
device=$ROCEMU_DIR/sys/class/infiniband/rocemu0
ls "$ROCEMU_DIR/sys" "$device/ports/1"
cat "$device/node_desc" "$device/ports/1/pkeys/0"
touch "$ROCEMU_DIR/sys/mine" "$device/ports/1/mine"
chmod u+w "$device/node_desc"
echo changed > "$device/node_desc"
chmod u-w "$device/node_desc"
exec ./hello
"""


class SysfsPool(ExploreTest):
    def setUp(self):
        super().setUp()
        shutil.copy(VICTIM, self.scratch / "hello")

    def pools(self):
        return list(pathlib.Path(self.runtime, "rocemu").glob("sysfs-*"))

    def results(self):
        try:
            return (self.scratch / "rocemu-findings" / "results.jsonl").read_text().count("\n")
        except OSError:
            return 0

    def wait_for(self, condition, process):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertIsNone(process.poll(), "explore has ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def end_in_the_middle(self, number, *arguments):
        """Starts an exploration, and sends it a signal when some runs have ended."""
        process = self.start("--jobs", "2", "--adversarial", "1000", *arguments, command=["./hello"])
        self.wait_for(lambda: self.results() >= 5 and self.pools(), process)
        process.send_signal(number)
        process.communicate(timeout=TIMEOUT)

    def assert_nothing_remains(self):
        self.assertEqual(os.listdir(self.runtime), [])
        self.nothing_is_left(str(self.scratch))

    def test_a_run_does_not_see_what_another_one_has_written(self):
        command = ["sh", "-c", WRITER]
        code, out, err = self.explore("--json", "--fail-on", "none", "--jobs", "2", "--only", "verbs",
                                      command=command)
        self.assertEqual(code, 0, out + err)
        self.assertIn("3 runs, deterministic", err)
        # A run that sees a change prints other lines than the baseline.
        self.assertNotIn("WRONG", [finding["verdict"] for finding in json.loads(out)["findings"]])
        self.assert_nothing_remains()

    def test_the_report_is_that_of_separate_trees(self):
        """A pool is in the way of no run: if the pool cannot be made, the report is the same."""
        with_pool = self.report("--fail-on", "none", "--only", "verbs", command=["./hello"], status=0)
        self.assertEqual(os.listdir(self.runtime), [])
        self.assertEqual(self.report("--fail-on", "none", "--only", "verbs", "--force", "--jobs", "1",
                                     command=["./hello"], status=0), with_pool)

    def test_nothing_remains_after_an_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                self.end_in_the_middle(number, "--force")
                self.assert_nothing_remains()

    def test_the_next_exploration_removes_what_a_killed_one_left(self):
        self.end_in_the_middle(signal.SIGKILL)
        code, out, err = self.explore("--force", "--fail-on", "none", "--only", "verbs:reg_mr", command=["./hello"])
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.pools(), [])


if __name__ == "__main__":
    unittest.main()
