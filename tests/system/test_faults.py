"""Runs scenarios with stock programs, and checks that users see what docs/scenarios.md says."""
import json
import pathlib
import unittest

from rocemu import ROCEMU, pingpong_pair, rocemu_run, run, temporary_directory


class FaultTest(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def scenario(self, *rules):
        path = self.directory / "scenario.yaml"
        path.write_text("rules:\n" + "".join(f"- {rule}\n" for rule in rules))
        return path

    def pingpong(self, *rules, options=(), arguments=("-n", "100"), program="ibv_rc_pingpong"):
        return rocemu_run(*pingpong_pair(*arguments, client_device="rocemu1", program=program),
                          options=["--scenario", self.scenario(*rules), *options])


class Frames(FaultTest):
    def check_recovers(self, *rules, **keywords):
        result = self.pingpong(*rules, options=["--strict"], **keywords)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("iters in"), 2, result.stdout)

    def test_a_lost_frame_is_sent_again(self):
        self.check_recovers("{on: frame, opcode: SEND, nth: 7, do: drop}")

    def test_a_lost_acknowledgement_is_asked_for_again(self):
        self.check_recovers("{on: frame, opcode: ACK, nth: 3, do: drop}")

    def test_duplicates_and_ghosts_are_ignored(self):
        self.check_recovers(
            "{on: frame, opcode: SEND, every: 5, do: duplicate}",
            "{on: frame, opcode: SEND, every: 7, do: {inject: "
            "{to: sender, opcode: ACK, syndrome: ACK, psn: +1000}}}")

    def test_packets_of_a_message_out_of_order(self):
        self.check_recovers("{on: frame, opcode: RC_SEND_MIDDLE, every: 9, do: {reorder: 2}}",
                            arguments=("-n", "50", "-s", "20000", "-m", "1024", "-c"))

    def test_corruption_never_reaches_the_program(self):
        self.check_recovers("{on: frame, nth: 5, do: {corrupt: {random_bits: 5}}}",
                            arguments=("-n", "50", "-c"))

    def test_a_slow_link(self):
        self.check_recovers("{on: link, do: {latency: 20us, bandwidth: 1Gbit/s}}")

    def test_a_receiver_that_is_not_ready(self):
        self.check_recovers("{on: request, opcode: SEND, nth: 3-5, do: rnr}")


class Processes(FaultTest):
    def test_a_process_dies_where_a_rule_says(self):
        result = self.pingpong("{on: completion, process: ibv_rc_pingpong#2, nth: 4, total: 1, "
                               "do: kill}", options=["--lockstep"], arguments=("-n", "100"))
        self.assertEqual(result.stdout.count("iters in"), 0, result.stdout)


class Failures(FaultTest):
    def check_fails(self, status, *rules):
        result = self.pingpong(*rules, options=["--strict"], arguments=("-n", "100"))
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn(status, result.stdout)

    def test_naks(self):
        for nak, status in (("invalid_request", "remote invalid request error"),
                            ("remote_access_error", "remote access error"),
                            ("remote_operational_error", "remote operation error")):
            with self.subTest(nak=nak):
                # Whichever side the rule affects, the other side gets an error and ends.
                self.check_fails(status, f"{{on: request, nth: 5, total: 1, do: {{nak: {nak}}}}}")

    def test_a_completion_of_any_status(self):
        self.check_fails("local protection error",
                         "{on: completion, queue: send, nth: 5, total: 1, "
                         "do: {status: LOC_PROT_ERR}}")


class Report(FaultTest):
    def test_names_a_rule_that_never_acted(self):
        rule = "{name: never, on: frame, opcode: READ, do: drop}"
        result = self.pingpong(rule)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("rocemu: the rule 'never' never acted: nothing matched it", result.stdout)
        self.assertEqual(self.pingpong(rule, options=["--strict"]).returncode, 1)

    def test_a_wrong_scenario_is_said_before_anything_runs(self):
        path = self.scenario("{on: frame, do: dorp}")
        result = rocemu_run("echo", "ran", options=["--scenario", path])
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, f"rocemu: {path}:2:19: there is no 'dorp' for 'on: frame'; "
                                        "did you mean 'drop'?\n"
                                        "    - {on: frame, do: dorp}\n"
                                        "                      ^\n")

    def test_a_device_that_there_is_not(self):
        path = self.scenario("{on: frame, from: mlx5_0, do: drop}")
        result = rocemu_run("echo", "ran", options=["--scenario", path])
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no device 'mlx5_0'; the devices are rocemu0 and rocemu1", result.stdout)

    def test_check(self):
        good = self.scenario("{on: frame, do: drop}")
        self.assertEqual(run(ROCEMU, "check", good).stdout,
                         f"{good}: 1 rule\n  rule 1 (on: frame)\n")
        self.assertEqual(json.loads(run(ROCEMU, "check", "--json", good).stdout)[0]["rules"],
                         [{"name": "rule 1", "on": "frame"}])
        self.assertEqual(run(ROCEMU, "check", self.directory / "none.yaml").returncode, 1)
        self.assertEqual(run(ROCEMU, "check").returncode, 2)


class WhileItRuns(FaultTest):
    def test_inject_list_and_clear(self):
        result = rocemu_run("sh", "-c", f"""
            {ROCEMU} inject '{{name: a, on: frame, do: drop}}' '{{on: cm, mad: REP, do: drop}}' &&
            {ROCEMU} inject --list --json && {ROCEMU} inject --clear a && {ROCEMU} inject --list &&
            {ROCEMU} inject --clear && {ROCEMU} inject --list; {ROCEMU} inject --clear a""")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertTrue(result.stdout.startswith("a\n{on: cm, mad: REP, do: drop}\n["))
        self.assertIn("no rules\nrocemu: ", result.stdout)
        self.assertTrue(result.stdout.endswith("there is no rule 'a'\n"), result.stdout)

    def test_a_wrong_rule_is_said_with_its_place(self):
        result = rocemu_run(ROCEMU, "inject", "{on: frame, do: dorp}")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "rocemu: rule:1:17: there is no 'dorp' for 'on: frame'; "
                                        "did you mean 'drop'?\n"
                                        "    {on: frame, do: dorp}\n"
                                        "                    ^\n")

    def test_step_by_step(self):
        pair = " ".join(pingpong_pair("-n", "2", "-r", "1", "-s", "512", client_device="rocemu1"))
        result = rocemu_run("sh", "-c", f"""
            {ROCEMU} step; {ROCEMU} pause; {pair} >/dev/null &
            frames=0
            while [ $frames -lt 4 ]; do
                {ROCEMU} step >step.txt
                if grep -q before step.txt; then cat step.txt; frames=$((frames + 1)); fi
            done
            {ROCEMU} resume; wait""", cwd=self.directory)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("rocemu pause", result.stdout)  # the first `rocemu step` says this
        self.assertIn("RC SEND Only", result.stdout)
        self.assertIn("RC Acknowledge", result.stdout)
        self.assertIn("RTS: to send", result.stdout)


if __name__ == "__main__":
    unittest.main()
