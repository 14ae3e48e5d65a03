"""Runs each scenario that comes with rocemu with a program, and checks that the program gets what the scenario's
text says. The programs run in lockstep, so that retries of minutes take no time. test_library_again.py runs the
scenarios repeatedly."""
import pathlib
import unittest

from library_programs import COMMANDS, client_alone, events, library, rping
from rocemu import ROCEMU, rocemu_run, run, temporary_directory

DEADLOCK = 123  # a status of `rocemu run`
RPING_FAILED = 255  # the status of rping's result -1; ucmatose returns the event's status


class Library(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.recording = pathlib.Path(directory.name) / "recording"

    def run_with(self, name, status=0, command=None):
        """Runs the program with the scenario, and checks that each rule acts."""
        result = rocemu_run(*(command or COMMANDS[name]()), options=(
            "--lockstep", "--strict", "--scenario", name, "--record", self.recording))
        self.said = result.stdout
        self.assertEqual(result.returncode, status, self.said)
        self.assertNotIn("never acted", self.said)
        return self.said

    def events(self, what, **fields):
        """Returns the events of the run that have these fields."""
        return [event for event in events(self.recording) if event["what"] == what and
                all(event.get(key) == value for key, value in fields.items())]

    def cm_events(self, name, **fields):
        return self.events("cm_event", event=name, **fields)

    def messages(self, mad):
        """Returns the messages of the connection manager, in the order in which they were sent."""
        return self.events("cm_message", message=mad)

    def check_pingpong_recovers(self, name):
        self.assertEqual(self.run_with(name).count("50 iters in"), 2, self.said)


class EachIsTested(unittest.TestCase):
    def test_all_that_is_installed_has_a_test_and_an_explanation(self):
        found = library()
        self.assertGreaterEqual(len(found), 36)
        tests = {name for group in (Transport, Errors, Connections, Devices) for name in dir(group)}
        for name, explanation in found.items():
            with self.subTest(name):
                self.assertIn("test_" + name.replace("-", "_"), tests)
                self.assertGreaterEqual(explanation.count(". "), 2, "what happens, and why")
                self.assertRegex(explanation, r"On real (networks|machines)")
                self.assertEqual(run(ROCEMU, "check", name).returncode, 0)
        self.assertEqual(set(COMMANDS), set(found))


class Transport(Library):
    def sent_again(self, name):
        self.check_pingpong_recovers(name)
        return len(self.events("fault"))

    def test_lost_send(self):
        self.assertEqual(self.sent_again("lost-send"), 2)

    def test_lost_ack(self):
        self.assertEqual(self.sent_again("lost-ack"), 6)

    def test_duplicated(self):
        self.assertGreater(self.sent_again("duplicated"), 100)

    def test_reordered(self):
        self.assertGreater(self.sent_again("reordered"), 20)

    def test_corrupted(self):
        self.assertEqual(self.sent_again("corrupted"), 6)

    def test_burst_loss(self):
        self.assertEqual(self.sent_again("burst-loss"), 10)

    def test_slow_receiver(self):
        self.assertGreater(self.sent_again("slow-receiver"), 10)

    def test_slow_link(self):
        self.check_pingpong_recovers("slow-link")

    def test_lossy_link(self):
        self.check_pingpong_recovers("lossy-link")

    def test_jitter(self):
        self.check_pingpong_recovers("jitter")

    def test_rnr_recovers(self):
        self.check_pingpong_recovers("rnr-recovers")
        self.assertEqual(len(self.events("fault", rule="not-ready-yet")), 6)

    def test_ghost_ack(self):
        self.check_pingpong_recovers("ghost-ack")

    def test_lost_read_response(self):
        said = self.run_with("lost-read-response")
        self.assertEqual(said.count("ping data: rdma-ping-"), 10, said)

    def test_duplicate_atomic(self):
        said = self.run_with("duplicate-atomic").splitlines()
        self.assertEqual(said, [line for number in range(5) for line in (
            f"send {number + 1}: IBV_WC_SUCCESS", f"it was {100 + number}")] + ["in the end 105"])

    def test_psn_wrap_loss(self):
        said = self.run_with("psn-wrap-loss").splitlines()
        self.assertEqual(said, [f"send {number + 1}: IBV_WC_SUCCESS" for number in range(40)] +
                         ["all arrived, in order"])

    def test_solicited_only_wakeups(self):
        self.assertEqual(self.run_with("solicited-only-wakeups"), "woken for 4\n" * 3)


class Errors(Library):
    def test_cq_overrun(self):
        self.assertIn("poll CQ failed -1\n", self.run_with("cq-overrun", status=1))
        self.assertEqual(len(self.events("async_event", event="CQ_ERR")), 1)
        self.assertEqual(len(self.events("async_event", event="QP_FATAL")), 1)

    def test_retry_exceeded(self):
        self.run_with("retry-exceeded", status=1)
        self.assertIn("Failed status 12: ", self.said)  # RETRY_EXC_ERR

    def test_rnr_exceeded(self):
        said = self.run_with("rnr-exceeded").splitlines()
        self.assertEqual(said, ["send 1: IBV_WC_SUCCESS", "send 2: IBV_WC_SUCCESS",
                                "send 3: IBV_WC_RNR_RETRY_EXC_ERR",
                                "receive 1: IBV_WC_SUCCESS", "receive 2: IBV_WC_SUCCESS"])

    def test_remote_access_error(self):
        self.run_with("remote-access-error", status=1)
        self.assertIn("Failed status 10: ", self.said)  # REM_ACCESS_ERR
        self.assertEqual(len(self.events("async_event", event="QP_ACCESS_ERR")), 1)

    def test_remote_operational_error(self):
        self.run_with("remote-operational-error", status=1)
        self.assertIn("Failed status remote operation error (11)", self.said)

    def test_local_protection_error(self):
        self.run_with("local-protection-error", status=1)
        self.assertIn("Failed status 4: ", self.said)  # LOC_PROT_ERR

    def test_flush_after_error(self):
        said = self.run_with("flush-after-error").splitlines()
        flushed = "IBV_WC_WR_FLUSH_ERR"
        self.assertEqual(said, [
            "requester", "send 1: IBV_WC_SUCCESS", "send 2: IBV_WC_SUCCESS",
            "send 3: IBV_WC_REM_INV_REQ_ERR", f"send 4: {flushed}", f"send 5: {flushed}",
            f"receive 1: {flushed}",
            "responder", "receive 1: IBV_WC_SUCCESS", "receive 2: IBV_WC_SUCCESS",
            f"receive 3: {flushed}", f"receive 4: {flushed}", f"receive 5: {flushed}"])

    def test_post_send_enomem(self):
        # The peer of the side whose post fails waits for its message for ever.
        self.run_with("post-send-enomem", status=DEADLOCK)
        self.assertIn("Couldn't post send", self.said)

    def test_killed_peer(self):
        self.run_with("killed-peer", status=17)
        self.assertIn("Failed status 12: ", self.said)  # RETRY_EXC_ERR

    def test_verb_enomem(self):
        self.run_with("verb-enomem", status=1)
        self.assertIn("Couldn't register MR", self.said)


class Connections(Library):
    def test_rtu_lost(self):
        self.run_with("rtu-lost")
        self.assertEqual(self.said.count("return status 0"), 2, self.said)
        self.assertEqual(len(self.messages("RTU")), 2)
        self.assertEqual(len(self.messages("REP")), 2)
        self.assertEqual(len(self.cm_events("ESTABLISHED")), 1)

    def test_rep_lost(self):
        said = self.run_with("rep-lost")
        self.assertEqual(said.count("ping data: rdma-ping-"), 10, said)
        self.assertEqual(len(self.messages("REP")), 3)

    def test_req_duplicated(self):
        self.run_with("req-duplicated")
        self.assertEqual(self.said.count("return status 0"), 2, self.said)
        self.assertEqual(len(self.cm_events("CONNECT_REQUEST")), 1)

    def test_cm_reject(self):
        self.run_with("cm-reject", status=28)
        self.assertIn("event: RDMA_CM_EVENT_REJECTED, error: 28", self.said)
        self.assertEqual(self.cm_events("CONNECT_REQUEST"), [])

    def test_cm_timeout(self):
        self.run_with("cm-timeout", status=256 - 110)
        self.assertIn("event: RDMA_CM_EVENT_UNREACHABLE, error: -110", self.said)
        self.assertEqual(self.cm_events("CONNECT_REQUEST"), [])

    def test_stale_connection(self):
        self.run_with("stale-connection")
        self.assertIn("event: RDMA_CM_EVENT_REJECTED, error: 10", self.said)
        self.assertEqual(self.said.count("return status 0"), 2, "the second one, and the server")

    def test_dreq_crossing(self):
        said = self.run_with("dreq-crossing")
        self.assertIn("rdma_server: end 0", said)
        self.assertIn("rdma_client: end 0", said)
        release = [one["message"] for one in self.events("cm_message")
                   if one["message"] in ("DREQ", "DREP")]
        self.assertEqual(release, ["DREQ", "DREQ", "DREP", "DREP"])
        self.assertEqual(len({one["text"].split()[2] for one in self.messages("DREQ")}), 2)
        self.assertEqual(len(self.cm_events("DISCONNECTED")), 2)


class Devices(Library):
    def test_port_flap(self):
        self.check_pingpong_recovers("port-flap")
        self.assertIn("IBV_EVENT_PORT_ERR (10), port 1", self.said)
        self.assertIn("IBV_EVENT_PORT_ACTIVE (9), port 1", self.said)

    def test_device_removal(self):
        said = self.run_with("device-removal").splitlines()
        self.assertEqual(said, ["event DEVICE_FATAL", "ibv_query_port: Input/output error",
                                "send 1: IBV_WC_RETRY_EXC_ERR"])
        self.run_with("device-removal", status=RPING_FAILED, command=client_alone(*rping()))
        self.assertIn("cma detected device removal!!!!", self.said)

    def test_srq_limit(self):
        said = self.run_with("srq-limit").splitlines()
        self.assertEqual(said, [f"send {number}: IBV_WC_SUCCESS" for number in (1, 2, 3)] +
                         ["event SRQ_LIMIT_REACHED", "send 1: IBV_WC_SUCCESS"])


if __name__ == "__main__":
    unittest.main()
