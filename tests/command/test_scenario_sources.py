"""Tests the sources of a scenario, also pipes and descriptors, which `rocemu` must read exactly
once."""
import contextlib
import os
import socket
import subprocess
import threading
import unittest

from support import ROCEMU, TIMEOUT, CommandTest

RULES = "rules: [{name: mine, on: frame, do: drop}]\n"
# Matches the output of `rocemu inject --list` for a NIC with the rule of these tests.
MINE = r"(?m)^mine +frame "
NO_DEVICE = "rules: [{name: mine, on: completion, device: eth7, do: {status: REM_OP_ERR}}]\n"


class ScenarioSources(CommandTest):
    def in_bash(self, script, **keywords):
        """Runs the script; $ROCEMU is the command."""
        keywords.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                              timeout=TIMEOUT, env={**self.environment, "ROCEMU": ROCEMU},
                              cwd=self.scratch, **keywords)

    def assert_has_my_rule(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, MINE)

    def write(self, name, text=RULES):
        path = self.scratch / name
        path.write_text(text)
        return path

    @contextlib.contextmanager
    def fed(self, name):
        """Creates a FIFO with this name. Another process writes the rules to it once."""
        path = self.scratch / name
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_text, args=[RULES])
        writer.start()
        try:
            yield
        finally:
            # ends the writer if rocemu did not read
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            writer.join()
            os.close(reader)
            path.unlink()

    def test_run_takes_a_process_substitution(self):
        self.assert_has_my_rule(self.in_bash(
            f"$ROCEMU run --scenario <(echo '{RULES}') -- $ROCEMU inject --list"))

    def test_run_takes_standard_input_and_leaves_the_program_its_end(self):
        result = self.in_bash("$ROCEMU run --scenario /dev/stdin -- "
                              "sh -c '$ROCEMU inject --list; cat; echo end'",
                              input=RULES, stdin=None)
        self.assert_has_my_rule(result)
        self.assertTrue(result.stdout.endswith("\nend\n"), result.stdout)

    def test_run_takes_a_descriptor_whatever_its_number(self):
        # some of these numbers are also those of the daemon's own descriptors
        for number in range(3, 12):
            with self.subTest(number=number):
                self.assert_has_my_rule(self.in_bash(
                    f"$ROCEMU run --scenario /dev/fd/{number} -- $ROCEMU inject --list "
                    f"{number}<<<'{RULES}'"))

    def test_up_takes_a_pipe(self):
        try:
            up = self.in_bash(f"$ROCEMU up --scenario <(echo '{RULES}')")
            self.assertEqual(up.returncode, 0, up.stderr)
            self.assert_has_my_rule(self.rocemu("inject", "--list"))
        finally:
            self.rocemu("down")

    def test_several_pipes_and_files_of_one_run_are_each_read_once(self):
        self.write("other.yaml", "rules: [{name: theirs, on: cm, do: drop}]\n")
        result = self.in_bash(f"$ROCEMU run --scenario <(echo '{RULES}') --scenario other.yaml "
                              f"--scenario <(echo '{RULES}') --scenario rtu-lost "
                              "-- $ROCEMU inject --list")
        self.assert_has_my_rule(result)
        for line in (r"(?m)^theirs +cm ", r"(?m)^mine \(\d+\) +frame ", r"(?m)^lost +cm "):
            self.assertRegex(result.stdout, line)

    def test_scenarios_that_are_long_together_are_taken_whole(self):
        filling = "#" * 1_000_000
        self.write("long.yaml", RULES + filling)
        self.write("longer.yaml", f"{filling}\nrules: [{{name: last, on: cm, do: drop}}]\n")
        result = self.rocemu("run", "--scenario", "long.yaml", "--scenario", "longer.yaml", "--",
                             ROCEMU, "inject", "--list", cwd=self.scratch)
        self.assert_has_my_rule(result)
        self.assertRegex(result.stdout, r"(?m)^last +cm ")

    def test_a_fifo_is_found_by_its_name_alone(self):
        for command in (["run", "--scenario", "fifo", "--", "true"], ["check", "fifo"]):
            with self.subTest(command=command):
                with self.fed("fifo"):
                    result = self.rocemu(*command, cwd=self.scratch)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_inject_takes_a_fifo_also_with_a_colon_in_its_name(self):
        self.assertEqual(self.rocemu("up").returncode, 0)
        try:
            for name in ("fifo", "a:b"):
                with self.fed(name):
                    given = self.rocemu("inject", name, cwd=self.scratch)
                self.assertEqual((given.returncode, given.stdout), (0, "mine\n"), given.stderr)
        finally:
            self.rocemu("down")

    def test_a_directory_does_not_hide_the_scenario_of_its_name(self):
        (self.scratch / "rtu-lost").mkdir()
        result = self.rocemu("run", "--scenario", "rtu-lost", "--", "true", cwd=self.scratch)
        self.assertEqual(result.returncode, 0)
        self.assertIn("'lost' never acted", result.stderr)

    def test_mistakes_are_told_with_the_name_as_it_was_written(self):
        (self.scratch / "sub").mkdir()
        self.write("sub/bad.yaml", "rules: [{on: frame, do: dorp}]\n")
        self.write("away.yaml", NO_DEVICE)
        for name, place in (("sub/bad.yaml", "sub/bad.yaml:1:25: there is no 'dorp'"),
                            ("away.yaml", "away.yaml: rule 'mine': there is no device 'eth7'")):
            for command in (["run", "--scenario", name, "--", "true"], ["up", "--scenario", name]):
                result = self.rocemu(*command, cwd=self.scratch)
                self.assertEqual(result.returncode, 1)
                self.assertTrue(result.stderr.startswith(f"rocemu: {place}"), result.stderr)

    def test_mistakes_in_a_pipe_are_told_with_line_and_column(self):
        result = self.in_bash("$ROCEMU run --scenario /dev/stdin -- true", stdin=None,
                              input="rules:\n- {on: frame, do: dorp}\n")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stderr.startswith("rocemu: /dev/stdin:2:19: there is no 'dorp'"),
                        result.stderr)

    def test_a_name_that_cannot_be_opened_is_told(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.assert_one_line(self.rocemu("run", "--scenario", "/dev/stdin", "--", "true",
                                             stdin=theirs),
                                 1, "cannot read the scenario /dev/stdin: No such device")
        self.assert_one_line(self.rocemu("run", "--scenario", "./none", "--", "true"),
                             1, "cannot read the scenario ./none: No such file")

    def test_a_recording_of_a_run_with_a_pipe_is_replayed(self):
        result = self.in_bash(f"$ROCEMU run --record first --scenario <(echo '{RULES}') -- true && "
                              "$ROCEMU replay first")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_empty_words_are_answered_with_what_is_expected(self):
        for words in (["inject", ""], ["inject", "rtu-lost", ""]):
            self.assert_one_line(self.rocemu(*words), 2, "no rule given; for example: rocemu inject")
        for command in ("check", "scenarios"):
            self.assert_one_line(self.rocemu(command, ""), 1, "give a file, or a name that `rocemu "
                                                              "scenarios`")

    def test_a_rule_without_keys_is_answered_with_what_a_rule_has(self):
        for word, found in (("{}", "a rule needs a place: on: frame, "),
                            ("{", "this is not YAML"), ("{on}", "expected place, found nothing")):
            result = self.rocemu("inject", word)
            self.assertEqual(result.returncode, 1)
            self.assertTrue(result.stderr.startswith("rocemu: rule:1:"), result.stderr)
            self.assertIn(found, result.stderr)


if __name__ == "__main__":
    unittest.main()
