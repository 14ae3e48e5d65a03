"""Tests the time at which a message is read. By ibv_post_send(3), the buffer belongs to the NIC until the
completion. With `--exact-memory` and in lockstep, the NIC reads the message when it sends it, so that the mistake
of a program that changes a message too early becomes visible."""
import sys
import unittest

from rocemu import BIN, ROCEMU, rocemu_run

# Sizes that fit into a WQE (176 bytes), into a slot (4 KiB), and into neither.
SIZES = (1, 64, 176, 177, 4096, 4097, 100_000)
PROGRAM = BIN / "early_change"
# While the program posts and changes the message, the daemon is stopped, so it cannot have read the message in
# between.
PID = "import json, sys; print(json.load(sys.stdin)['pid'])"
WITH_DAEMON = f'exec {PROGRAM} $* $({ROCEMU} show --json | {sys.executable} -c "{PID}")'


class EarlyChange(unittest.TestCase):
    def said(self, *arguments, options):
        result = rocemu_run(*arguments, options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout.strip()

    def test_is_sent_in_lockstep(self):
        for size in SIZES:
            self.assertEqual(self.said(PROGRAM, size, options=("--lockstep",)), "new", size)

    def test_is_sent_with_exact_memory(self):
        for size in SIZES:
            said = self.said("sh", "-c", WITH_DAEMON, "sh", size, options=("--exact-memory",))
            self.assertEqual(said, "new", size)

    def test_is_not_sent_otherwise_if_the_message_is_short(self):
        for size in SIZES:
            said = self.said("sh", "-c", WITH_DAEMON, "sh", size, options=())
            self.assertEqual(said, "old" if size <= 4096 else "new", size)

    def test_is_never_sent_of_an_inline_message(self):
        """ibv_post_send(3), IBV_SEND_INLINE: "the buffer can be reused immediately after the call returns"."""
        for size in (1, 64, 176):
            self.assertEqual(self.said(PROGRAM, size, "inline", options=("--lockstep",)), "old", size)
            said = self.said("sh", "-c", WITH_DAEMON, "sh", size, "inline", options=("--exact-memory",))
            self.assertEqual(said, "old", size)


if __name__ == "__main__":
    unittest.main()
