"""Runs programs with a bug and their corrected twins: both succeed without faults, and with its scenario each does
what the comment at its top says."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "system"))
from rocemu import BIN, rocemu_run, side_by_side  # noqa: E402

DEADLOCK, TIMEOUT, ABORTED, SEGMENTATION_FAULT, REPORTED = 123, 124, 128 + 6, 128 + 11, 1
SEGV = (SEGMENTATION_FAULT, "is gone: Segmentation fault")
GIVE_UP = "5s"  # real time limit for programs that run for ever; the others take a tenth of a second

# For each program: its output without faults, and the results of the program and of its corrected twin with the
# scenario. A result is an exit status and a part of the output.
PROGRAMS = {
    "cleanup_twice": ("received: good morning",
                      (ABORTED, "free(): double free"),
                      (REPORTED, "cannot start: Cannot allocate")),
    "disconnect_while_posting": ("10 samples, sum 450", SEGV,
                                 (REPORTED, "the subscriber left after")),
    "dreq_race": ("5 records, sum 15", (0, "4 records, sum 10"), (0, "5 records, sum 15")),
    "early_reuse": ("5 orders, total 1500", (0, "5 orders, total 1600"),
                    (0, "5 orders, total 1500")),
    "established_late": ("1 message, the last: how are you", SEGV,
                         (0, "1 message, the last: how are you")),
    "event_of_sender": ("6 messages, sum 15", SEGV, (REPORTED, "local access violation")),
    "fixed_array": ("3 clients at once", (ABORTED, "double free"), (0, "3 clients at once")),
    "flushed_wr_id": ("12 entries", SEGV, (REPORTED, "batch 1: remote access error")),
    "ignored_removal": ("counted to 10", (DEADLOCK, "polls a completion queue"),
                        (REPORTED, "the device is gone")),
    "ignored_status": ("balance: 1234", (0, "balance: 0\n"),
                       (REPORTED, "cannot read the balance: remote access error")),
    "inline_size": ("line 0\nline 1\nline 2\nline 3\n", (0, "line 3\nline 3\nline 3\nline 3\n"),
                    (0, "line 0\nline 1\nline 2\nline 3\n")),
    "late_srq_refill": ("20 messages, sum 190", (DEADLOCK, "0 of 8 receives posted"),
                        (0, "20 messages, sum 190")),
    "lost_wakeup": ("5 samples, sum 30", (DEADLOCK, "ibv_get_cq_event: completion channel of CQ 1, "
                                          "armed, with 1 completion to be polled"),
                    (0, "5 samples, sum 30")),
    "order_of_two_qps": ("page 1: what page 1 says", (0, "page 1: what page 0 says"),
                         (0, "page 1: what page 1 says")),
    "rejected_unhandled": ("received: is anybody there", (DEADLOCK, "waits in rdma_get_cm_event"),
                           (REPORTED, "no connection: RDMA_CM_EVENT_REJECTED, status 28")),
    "repeated_atomic": ("counter: 4", (0, "counter: 5"), (0, "counter: 4")),
    "retry_without_reset": ("block 3", (TIMEOUT, "WR_FLUSH_ERR"), (0, "block 3")),
    "timeout_in_handler": ("sum of 16 times 2: 32", (0, "sum of 16 times 2: 16"),
                           (0, "sum of 16 times 2: 32")),
    "unacknowledged_event": ("4 messages, sum 10", (DEADLOCK, "waits in ibv_destroy_cq"),
                             (REPORTED, "message 2: local protection error")),
    "unchecked_reg_mr": ("3: value 9", SEGV, (REPORTED, "cannot register the table's 136 bytes")),
    "undersized_cq": ("16 messages, sum 120", (DEADLOCK, "overrun"), (0, "16 messages, sum 120")),
    "unreachable_later": ("4 messages, sum 10", SEGV,
                          (REPORTED, "the server is lost: RDMA_CM_EVENT_UNREACHABLE")),
}
# Programs for which the scenario's rule never acts, since the bug was corrected.
NEVER_ACTS = {"late_srq_refill_corrected"}
# AddressSanitizer detects the bugs of these programs first, and reports them in its own words.
MEMORY_ERRORS = {name for name, (_, mistake, _) in PROGRAMS.items()
                 if mistake[0] in (ABORTED, SEGMENTATION_FAULT)}


def both(name):
    return name, name + "_corrected"


def program(name):
    return BIN / "buggy" / name


class Programs(unittest.TestCase):
    def assert_ends(self, result, status, text):
        self.assertEqual(result.returncode, status, result.stdout)
        self.assertIn(text, result.stdout)

    def test_each_has_its_outcomes_here(self):
        self.assertEqual({path.stem for path in HERE.glob("*.yaml")}, set(PROGRAMS))

    def test_all_do_well_without_faults(self):
        def check(case):
            name, options = case
            result = rocemu_run(program(name), options=options)
            self.assert_ends(result, 0, PROGRAMS[name.removesuffix("_corrected")][0])
        # Several bugs appear only if one side is slow, which can happen on a busy machine. So programs with bugs run in
        # lockstep only; corrected ones also run in real time.
        cases = [(name, ("--lockstep",)) for pair in map(both, PROGRAMS) for name in pair]
        cases += [(name + "_corrected", ()) for name in PROGRAMS]
        side_by_side(self, check, cases, at_once=3)

    def test_all_are_deterministic(self):
        def check(name):
            options = ("--lockstep", "--check-determinism", "3")
            result = rocemu_run(program(name), options=options)
            self.assertEqual(result.returncode, 0, result.stdout)
        side_by_side(self, check, [name for pair in map(both, PROGRAMS) for name in pair],
                     at_once=3)

    def test_the_scenario_brings_out_the_mistake_and_the_twin_copes(self):
        def check(name):
            for twin, outcome in zip(both(name), PROGRAMS[name][1:]):
                status, text = outcome
                if os.environ.get("ROCEMU_SANITIZE") and twin in MEMORY_ERRORS:
                    status, text = REPORTED, "Sanitizer"
                strict = () if twin in NEVER_ACTS else ("--strict",)
                options = ("--lockstep", "--timeout", GIVE_UP if status == TIMEOUT else "60s",
                           *strict, "--scenario", HERE / f"{name}.yaml")
                self.assert_ends(rocemu_run(program(twin), options=options), status, text)
        side_by_side(self, check, PROGRAMS, at_once=3)


if __name__ == "__main__":
    unittest.main()
