"""Tests that `rocemu explore` finds the bug of each program and reports its cause, and that it reports nothing for
the corrected twin at the same points."""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "system"))
from rocemu import BIN, ROCEMU, run, side_by_side  # noqa: E402
from test_programs import PROGRAMS  # noqa: E402

# For each program: the points to explore (all points would take minutes), the verdict, how the program ends, and a
# fault that has this result. The comment at the top of each program describes the same.
MISTAKES = {
    "cleanup_twice": ("verbs:create_qp", "CRASH", "#2 received SIGABRT",
                      "#2's 1st create_qp fails with ENOMEM"),
    "disconnect_while_posting": ("cm_events:ESTABLISHED", "CRASH", "#1 received SIGSEGV",
                                 "#1's 1st RDMA_CM_EVENT_ESTABLISHED is followed by DISCONNECTED"),
    "dreq_race": ("completions:RECV", "WRONG", "instead of '5 records, sum 15'",
                  "#1's 5th RECV completion comes 1 s late"),
    "early_reuse": ("frames:SEND", "WRONG", "instead of 'order 1: 100'",
                    "#2's 2nd SEND on the wire is lost once"),
    "established_late": ("cm:RTU", "CRASH", "#1 received SIGSEGV", "the 1st RTU is lost once"),
    "event_of_sender": ("completions:SEND", "CRASH", "#2 received SIGSEGV",
                        "#2's 1st SEND completion comes with IBV_EVENT_QP_ACCESS_ERR"),
    "fixed_array": ("cm:REP", "CRASH", "#1 received SIGABRT",
                    "the 1st REP is rejected by the consumer"),
    "flushed_wr_id": ("requests:RDMA_WRITE", "CRASH", "#2 received SIGSEGV",
                      "is answered with NAK remote access error"),
    "ignored_removal": ("verbs:modify_qp", "HANG", "polls a completion queue",
                        "the device is removed at .*modify_qp"),
    "ignored_status": ("requests:RDMA_READ", "WRONG", "'balance: 0' instead of 'balance: 1234'",
                       "is answered with NAK remote access error"),
    "inline_size": ("verbs:create_qp", "WRONG", "'line 3' instead of 'line 0'",
                    "#2's 1st create_qp fails with EINVAL"),
    "late_srq_refill": ("events,verbs:create_srq", "HANG", "ibv_get_cq_event",
                        "#1's 1st IBV_EVENT_SRQ_LIMIT_REACHED is lost"),
    "lost_wakeup": ("frames:SEND", "HANG",
                    r"blocks in ibv_get_cq_event \(CQ 1, with completions to be polled\)",
                    "#2's 4th SEND on the wire is lost once"),
    "order_of_two_qps": ("frames:RDMA_WRITE", "WRONG", "instead of 'page 0: what page 0 says'",
                         "RDMA_WRITE on the wire is lost once"),
    "rejected_unhandled": ("cm:REQ", "HANG", "#2 blocks in rdma_get_cm_event",
                           "the 1st REQ is rejected by the consumer"),
    "repeated_atomic": ("completions:FETCH_ADD", "WRONG", "'counter: 5' instead of 'counter: 4'",
                        "FETCH_ADD completion completes with RETRY_EXC_ERR"),
    "retry_without_reset": ("requests:RDMA_READ", "HANG", "#2 repeats .*post_send",
                            "RDMA_READ that arrives at .*#1 is answered with NAK remote"),
    "timeout_in_handler": ("frames:RDMA_READ", "WRONG", "instead of 'sum of 16 times 2: 32'",
                           "#1's 1st RDMA_READ on the wire is lost once"),
    "unacknowledged_event": ("completions:RECV", "HANG", "blocks in ibv_destroy_cq",
                             "RECV completion completes with LOC_PROT_ERR"),
    "unchecked_reg_mr": ("verbs:reg_mr", "CRASH", "#2 received SIGSEGV",
                         "#2's 2nd reg_mr fails with ENOMEM"),
    "undersized_cq": ("completions:SEND", "HANG", r"blocks in ibv_get_cq_event \(CQ 1, overrun",
                      "the port goes down for 100 ms at .*SEND completion"),
    "unreachable_later": ("cm_events:CONNECT_RESPONSE", "CRASH", "#2 received SIGSEGV",
                          "#2's 1st RDMA_CM_EVENT_CONNECT_RESPONSE is followed by UNREACHABLE"),
}
FAULT_FINDINGS = {"HANG", "CRASH", "WRONG"}


@unittest.skipIf(os.environ.get("ROCEMU_SANITIZE"), "a sanitizer ends programs before they crash")
class Explorations(unittest.TestCase):
    def findings(self, program, only):
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            folder = pathlib.Path(scratch, "findings")
            result = run(ROCEMU, "explore", "--jobs", "1",
                         "--only", only, "--output", folder, "--", BIN / "buggy" / program)
            self.assertIn(result.returncode, (0, 1), result.stdout)
            report = json.loads((folder / "report.json").read_text())
        self.assertGreater(len(report["results"]), 1, "nothing was tried")
        return [one for one in report["findings"] if one["verdict"] in FAULT_FINDINGS]

    def test_each_program_has_its_mistake_here(self):
        self.assertEqual(set(MISTAKES), set(PROGRAMS))

    def test_each_mistake_is_found_and_the_twin_has_none(self):
        def check(name):
            only, verdict, place, trigger = MISTAKES[name]
            found = self.findings(name, only)
            named = [one for one in found
                     if one["verdict"] == verdict and re.search(place, one["sentence"]) and
                     any(re.search(trigger, fault) for fault in one["triggers"])]
            self.assertTrue(named, [(one["sentence"], one["triggers"]) for one in found])
            self.assertEqual([one["sentence"] for one in self.findings(name + "_corrected", only)],
                             [])
        side_by_side(self, check, MISTAKES, at_once=2)


if __name__ == "__main__":
    unittest.main()
