"""Tests each rule of the sanitizer on the real clock and in lockstep: for a program that breaks
the rule, the line of its mistake is reported, and for its correct twin nothing."""
import unittest

from support import CLOCKS, LOCKSTEP, PROGRAMS, marked_line, program, sanitized, side_by_side

# For each program, the rule that is reported, and a part of the message.
WRONG = {
    "armed_twice": {"event-without-rearm": "is not armed since its latest event"},
    "ah_destroyed_in_use": {"ah-destroyed-in-use": "while send 1 on QP"},
    "cm_event_kept": {"cm-event-kept": "waits in rdma_destroy_id forever: 1 event of the id"},
    "cq_too_small": {"cq-too-small": "3 completions can arrive at CQ"},
    "cq_overrun": {"cq-overrun": "overran CQ", "cq-too-small": "posted send 3 on QP"},
    "destroy_failed": {"destroy-failed": "failed with EBUSY",
                       "refused-state": "and 4 other objects use"},
    "event_without_rearm": {"event-without-rearm": "is not armed since its latest event"},
    "event_without_rearm_in_epoll": {
        "event-without-rearm": "is not armed since its latest event"},
    "events_acknowledged_twice": {
        "events-unacknowledged": "the program acknowledged 2 more completion events of CQ"},
    "events_unacknowledged": {
        "events-unacknowledged": "waits in ibv_destroy_cq forever: 1 completion event of CQ"},
    "fork_unprotected": {"fork-unprotected": "forked with 2 registered memory regions"},
    "leaves_the_rest_to_another": {"lost-wakeup": "although 1 completion lies in CQ"},
    "fork_unprotected_mapping": {
        "fork-unprotected": "forked with 1 registered memory region,"},
    "list_posted_again": {"list-posted-again": "although 2 requests of the list, those before"},
    "lost_wakeup": {"lost-wakeup": "although 1 completion lies in CQ",
                    "not-polled-after-arm": "has not polled CQ"},
    "lost_wakeup_in_poll": {"lost-wakeup": "although 1 completion lies in CQ",
                            "not-polled-after-arm": "has not polled CQ"},
    "lost_wakeup_in_select": {"lost-wakeup": "although 1 completion lies in CQ",
                              "not-polled-after-arm": "has not polled CQ"},
    "many_unmapped": {"mr-memory-unmapped": "that munmap has changed since"},
    "mr_deregistered_in_use": {"mr-deregistered-in-use": "while receive 1 on QP"},
    "mr_memory_unmapped": {"mr-memory-unmapped": "that munmap has changed since"},
    "not_polled_after_arm": {"not-polled-after-arm": "has not polled CQ"},
    "object_leaked": {"object-leaked": "ended without having destroyed CQ"},
    "posted_after_error": {"posted-after-error": "posted send 2 on QP"},
    "protection_explained": {
        "protection-explained": "they end 3 bytes behind the region of 4096 bytes"},
    "qp_destroyed_in_use": {"qp-destroyed-in-use": "with 1 signaled send"},
    "qp_never_error_drained": {"qp-never-error-drained": "flushed completions of 3 receives"},
    "receive_buffer_overlap": {
        "receive-buffer-overlap": "over the bytes of receive 2 on QP"},
    "receive_queue_empty": {"receive-queue-empty": "had no receive on QP"},
    "refused_limit": {"refused-limit": "= 1073741824 of rocemu0, which allows"},
    "refused_state": {"refused-state": "which is in INIT"},
    "registered_after_the_change": {"mr-memory-unmapped": "has changed since"},
    "remote_write_race": {"remote-write-race": "to 4 bytes at 0x",
                          "receive-queue-empty": "which is refused with an RNR NAK"},
    "rkey_stale": {"rkey-stale": "was deregistered"},
    "send_buffer_modified": {"send-buffer-modified": "changed the bytes of send 1 on QP"},
    "send_buffer_modified_at_exit": {"send-buffer-modified": "and ended before it had polled"},
    "send_queue_never_signaled": {"send-queue-never-signaled": "is full of 4 requests"},
    "send_queue_overflow": {"send-queue-overflow": "posted again to the full send queue of QP"},
    "srq_not_polled_after_arm": {"not-polled-after-arm": "has not polled CQ"},
    "send_queue_overflow_with_threads": {
        "send-queue-overflow": "posted again to the full send queue of QP"},
    "ud_grh_ignored": {"ud-grh-ignored": "lost a datagram of 64 bytes"},
    "unmapped_before_reset": {
        "mr-memory-unmapped": "munmap changed the memory of memory region"},
    "waiter_is_canceled": {"event-without-rearm": "CQ 2 is not armed"},
    "waits_while_another_exits": {"event-without-rearm": "CQ 2 is not armed"},
}
# Programs that hang. In lockstep, their hang is reported as a deadlock.
HANGS = {"armed_twice", "cm_event_kept", "event_without_rearm", "event_without_rearm_in_epoll",
         "events_acknowledged_twice", "events_unacknowledged", "lost_wakeup",
         "lost_wakeup_in_poll", "lost_wakeup_in_select"}
DIES = {"waiter_is_canceled"}  # by SIGKILL
KILLED = 128 + 9
ERRORS = {"cm-event-kept", "cq-overrun", "event-without-rearm", "events-unacknowledged",
          "list-posted-again", "lost-wakeup", "mr-deregistered-in-use", "mr-memory-unmapped",
          "posted-after-error", "protection-explained", "receive-buffer-overlap",
          "remote-write-race", "rkey-stale", "send-buffer-modified",
          "send-queue-never-signaled", "send-queue-overflow"}


def rules_of(name):
    """Returns the option for --sanitize that selects the rule, or "" if it is selected by
    default."""
    return "object-leaked" if name == "object_leaked" else ""


class Rules(unittest.TestCase):
    def test_each_program_has_its_outcome_here(self):
        names = {path.stem for path in PROGRAMS.rglob("*.c")} - {"bad_end"}
        self.assertEqual(names, set(WRONG))

    def test_a_wrong_program_is_reported_with_the_line_of_its_mistake(self):
        def check(case):
            name, options = case
            limit = ("--timeout", "5s") if name in HANGS else ()
            result, reports = sanitized(program(name), options=(*options, *limit),
                                        rules=rules_of(name))
            self.assertEqual({report["rule"] for report in reports}, set(WRONG[name]),
                             result.stdout)
            for rule, words in WRONG[name].items():
                of_rule = [report for report in reports if report["rule"] == rule]
                self.assertIn(words, "\n".join(report["message"] for report in of_rule))
                for report in of_rule:
                    self.assert_names_the_mistake(name, rule, report)
            fails = bool(ERRORS & set(WRONG[name]))
            if name not in HANGS:
                self.assertEqual(result.returncode, KILLED if name in DIES else int(fails), result.stdout)
        side_by_side(self, check, [(name, clock) for name in WRONG for clock in CLOCKS])

    def assert_names_the_mistake(self, name, rule, report):
        self.assertEqual(report["process"], f"{name[:15]}#1")
        self.assertEqual(report["severity"], "error" if rule in ERRORS else "warning")
        stack = report["places"][-1]["stack"]
        self.assertEqual(stack[-1]["function"], "main", stack)
        self.assertTrue(stack[0]["file"].endswith((f"/{name}.c", "/pair.c")), stack)
        line = marked_line(name)
        if line is not None:
            lines = [frame["line"] for frame in stack if frame["file"].endswith(f"/{name}.c")]
            self.assertIn(line, lines, report)

    def test_its_right_twin_is_not(self):
        def check(case):
            name, options = case
            result, reports = sanitized(program(name + "_right"), options=options, rules="all")
            self.assertEqual(reports, [], result.stdout)
            self.assertEqual(result.returncode, 0, result.stdout)
        side_by_side(self, check, [(name, clock) for name in WRONG for clock in CLOCKS])

    def test_reports_in_lockstep_are_the_same_each_time(self):
        def check(name):
            limit = ("--timeout", "5s") if name in HANGS else ()
            first, again = (sanitized(program(name), options=(*LOCKSTEP, *limit),
                                      rules=rules_of(name)) for _ in range(2))
            self.assertEqual(first[1], again[1])
        side_by_side(self, check, WRONG)


if __name__ == "__main__":
    unittest.main()
