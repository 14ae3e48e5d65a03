"""Tests `rocemu pause` and `step`: frames arrive one by one, whatever the clock, and programs can answer in between."""
import itertools
import json
import os
import re
import sys
import unittest

from rocemu import HERE, ROCEMU, CM_PAIR, free_port, rocemu_run, run, temporary_directory

CLOCKS = (("real", ()), ("lockstep", ("--lockstep",)))

# Pauses the NIC before the program begins. Then lets the numbers of frames in the argument list arrive, and finally
# resumes the NIC. Prints the output of each `rocemu step` as one line of JSON.
SCRIPT = """
import json, os, subprocess, sys
rocemu, steps, command = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
def ask(*words):
    return subprocess.run([rocemu, *words], check=True, stdout=subprocess.PIPE).stdout
ask("pause")
with subprocess.Popen(command, stdout=sys.stderr) as program:
    for count in steps:
        print(json.dumps(json.loads(ask("step", str(count), "--json"))), flush=True)
    ask("resume")
sys.exit(program.returncode)
"""


class Step(unittest.TestCase):
    def step(self, steps, *command, options=()):
        """Returns the output of `rocemu step N` for each N in `steps`."""
        result = rocemu_run(sys.executable, "-c", SCRIPT, ROCEMU, json.dumps(steps), *command,
                            options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]

    def test_messages_and_their_answers_arrive_one_after_the_other(self):
        """The program is a single process, which sends the next message after it got the completion of the previous
        one."""
        for (name, options), kind in itertools.product(CLOCKS, ("events", "polling")):
            with self.subTest(name, kind=kind):
                steps = self.step([1, 1, 6], "/usr/bin/python3", HERE / "stepped.py", kind, "4",
                                  options=options)
                self.assertEqual([len(frames) for frames in steps], [1, 1, 6], steps)
                frames = [frame for frames in steps for frame in frames]
                opcodes = [re.search(r"SEND|Ack", frame["frame"])[0] for frame in frames]
                self.assertEqual(opcodes, ["SEND", "Ack"] * 4, frames)
                psns = [re.search(r"psn[ =](\d+)", frame["frame"])[1] for frame in frames]
                self.assertEqual(psns[::2], psns[1::2])
                self.assertEqual(len(set(psns)), 4, frames)

    def test_a_connection_is_made_step_by_step(self):
        for name, options in CLOCKS:
            port = str(free_port())
            rping = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "1"]
            frames, = self.step([4], *CM_PAIR, port, *rping, "-s", "--", *rping, "-c",
                                options=options)
            mads = [re.search(r"\b(REQ|REP|RTU|RC SEND)\b", frame["frame"]) for frame in frames]
            with self.subTest(name):
                self.assertEqual([mad and mad[0] for mad in mads], ["REQ", "REP", "RTU", "RC SEND"],
                                 frames)

    def test_time_moves_on_to_the_timeout_that_sends_a_frame(self):
        """The message goes to a QP that does not exist, so it is sent repeatedly, until the retries are used up."""
        # On the real clock, a resumed NIC would retry for hours.
        program = os.path.join(os.environ["ROCEMU_BIN"], "dead_peer")
        first, second = self.step([3, 100], program, options=("--lockstep",))
        self.assertEqual(len(first), 3)
        # the message is sent 8 times, 3 of them earlier; after that nothing is in flight
        self.assertEqual(len(second), 5)
        self.assertEqual(len({frame["frame"] for frame in first + second}), 1)

    def test_who_asks_for_steps_and_goes_leaves_the_others_alone(self):
        result = rocemu_run(
            "sh", "-c", f"""
            {ROCEMU} pause
            timeout 0.05 {ROCEMU} step 1000
            {ROCEMU} resume
            exec /usr/bin/python3 {HERE}/stepped.py polling 4""", options=("--lockstep",))
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
