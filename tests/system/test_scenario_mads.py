"""Runs scenarios with a program of librdmacm: a rule for frames acts on frames of the program's QPs. It acts on
the connection manager's MADs only if the scenario selects them."""
import json
import pathlib
import unittest

from library_programs import client_alone, events, pingpong, rping
from rocemu import ROCEMU, rocemu_run, run, side_by_side, temporary_directory

README_RULE = "rules:\n  - {on: frame, opcode: SEND, nth: 3, do: drop}\n"
EVERY_MAD = "rules:\n  - {on: frame, opcode: SEND, transport: UD, do: log}\n"


def groups():
    """Returns the installed scenarios with their groups."""
    listed = run(ROCEMU, "scenarios", "--json", check=True).stdout
    return {one["name"]: one["group"] for one in json.loads(listed)}


class ScenarioMads(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def faults(self, name, command, scenario, *options):
        """Returns the frames on which rules acted, and the result of the run."""
        recording = self.directory / name
        result = rocemu_run(*command, options=(
            "--lockstep", "--scenario", scenario, "--record", recording, *options))
        return [event["on"] for event in events(recording) if event["what"] == "fault"], result

    def scenario(self, text):
        path = self.directory / "scenario.yaml"
        path.write_text(text)
        return path

    def test_a_ready_scenario_acts_on_mads_only_if_it_is_about_connections(self):
        found = groups()

        def check(name):
            faults, result = self.faults(name, client_alone(*rping()), name)
            if name not in NOT_WITH_RPING and found[name] != "links":
                self.assertTrue(faults, result.stdout)
            about_connections = found[name] == "connections"
            self.assertEqual([one for one in faults if is_mad(one) != about_connections], [])

        side_by_side(self, check, found)

    def test_the_rule_of_the_readme_loses_sends_of_both_programs(self):
        scenario = self.scenario(README_RULE)
        for name, command in (("rping", rping()), ("pingpong", pingpong())):
            with self.subTest(name):
                faults, result = self.faults(name, command, scenario, "--strict")
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertEqual(len(faults), 2, "one for each QP")
                for fault in faults:
                    self.assertRegex(fault, r" RC SEND \w+ ")

    def test_strict_is_not_satisfied_by_a_mad(self):
        few = [argument.replace("10", "1") if argument == "10" else argument
               for argument in rping()]
        faults, result = self.faults("few", few, "lost-send", "--strict")
        self.assertEqual(faults, [])
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("never acted", result.stdout)

    def test_a_rule_for_ud_is_for_mads(self):
        faults, result = self.faults("mads", rping(), self.scenario(EVERY_MAD), "--strict")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([fault.split("CM ")[1].split()[0] for fault in faults][:3],
                         ["REQ", "REP", "RTU"])

    def test_a_rule_for_frames_is_for_a_programs_datagrams(self):
        command = pingpong(program="ibv_ud_pingpong")
        scenario = self.scenario("rules:\n  - {on: frame, opcode: SEND, nth: 3, do: log}\n")
        faults, result = self.faults("ud", command, scenario, "--strict")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(len(faults), 2)


# rping does not use atomics, and uses neither SRQs nor PSNs near the wrap. It has fewer than the five WRITEs, READs
# or atomics on one QP that some scenarios need.
NOT_WITH_RPING = {"duplicate-atomic", "psn-wrap-loss"}


def is_mad(text):
    """Returns whether this text describes a message to QP 1."""
    return " CM " in text or " MAD " in text


if __name__ == "__main__":
    unittest.main()
