"""Tests which files `--record` writes, and that a replay repeats the run without the program."""
import json
import pathlib
import re
import resource
import subprocess
import unittest

from rocemu import (BIN, CM_PAIR, HERE, PAIR, ROCEMU, free_port, pingpong_pair, rocemu_run, run,
                    temporary_directory)


class Record(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.recording = self.directory / "recording"

    def record(self, *command, options=(), status=0):
        result = rocemu_run(*command, options=("--record", self.recording, *options))
        self.assertEqual(result.returncode, status, result.stdout)
        return result

    def replay(self, *options):
        result = run(ROCEMU, "replay", *options, self.recording)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("no difference", result.stdout)
        return result.stdout

    def events(self):
        with open(self.recording / "events.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def test_a_pingpong_replays_without_a_difference(self):
        self.record(*pingpong_pair("-s", "5000", "-n", "200"))
        output = self.replay()
        frames = subprocess.run(["tshark", "-r", str(self.recording / "trace.pcap")], check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertIn(f" {len(frames.stdout.splitlines())} frames", output)

    def test_a_replay_writes_the_capture_again(self):
        self.record(*pingpong_pair("-s", "5000", "-n", "20"))
        again, part = self.directory / "again.pcap", self.directory / "part.pcap"
        self.replay("--capture", again)
        capture = (self.recording / "trace.pcap").read_bytes()
        self.assertEqual(again.read_bytes(), capture)
        self.replay("--capture", part, "--until", "frame=5")
        self.assertLess(len(part.read_bytes()), len(capture))
        self.assertTrue(capture.startswith(part.read_bytes()))

    def test_a_capture_that_cannot_be_written_is_an_error_that_names_it(self):
        self.record("true")
        result = run(ROCEMU, "replay", "--capture", "/dev/full/capture", self.recording)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("/dev/full/capture", result.stdout)

    def test_the_events_tell_of_every_verb_and_completion(self):
        self.record(*pingpong_pair("-n", "10"))
        events = self.events()
        verbs = {event["verb"] for event in events if event["what"] == "verb"}
        self.assertLessEqual({"alloc_pd", "reg_mr", "create_cq", "create_qp", "modify_qp",
                              "destroy_qp", "dereg_mr"}, verbs)
        count = [event["what"] for event in events].count
        self.assertEqual(count("post_send"), 20)
        self.assertEqual(count("completion"), 40)
        names = {event["comm"] for event in events if event["what"] == "client"}
        self.assertEqual(names, {"ibv_rc_pingpong"})
        times = [event["t"] for event in events]
        self.assertEqual(times, sorted(times))

    def test_a_bandwidth_test_replays_without_a_difference(self):
        port = str(free_port())
        tool = ["ib_send_bw", "-d", "rocemu0", "-p", port, "-n", "500", "-s", "65536", "-F"]
        self.record(*PAIR, port, *tool, "--", *tool, "localhost")
        self.replay()

    def test_a_bandwidth_test_on_a_network_that_loses_frames(self):
        scenario = self.directory / "loss.yaml"
        scenario.write_text("rules:\n  - {name: lost, on: frame, probability: 0.02, do: drop}\n")
        port = str(free_port())
        tool = ["ib_write_bw", "-d", "rocemu0", "-p", port, "-n", "500", "-s", "16384", "-u", "10"]
        self.record(*PAIR, port, *tool, "--", *tool, "localhost",
                    options=("--scenario", scenario, "--seed", "7"))
        self.assertIn("lost", {event["rule"] for event in self.events() if event["what"] == "fault"})
        self.replay()

    def test_rdma_cores_own_tests(self):
        result = run("/usr/bin/python3", HERE / "pyverbs" / "run_pyverbs.py", "--record",
                     self.recording)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.replay()

    def test_a_connection_by_rdma_cm_replays_and_its_messages_are_events(self):
        port = str(free_port())
        rping = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "20"]
        self.record(*CM_PAIR, port, *rping, "-s", "--", *rping, "-c")
        self.replay()
        messages = [event["message"] for event in self.events() if event["what"] == "cm_message"]
        for message in ("REQ", "REP", "RTU", "DREQ", "DREP"):
            self.assertIn(message, messages)

    def test_eight_processes_at_once(self):
        pairs = []
        for _ in range(4):
            pairs.append(" ".join(f"'{word}'" for word in pingpong_pair("-n", "300")) + " &")
        self.record("sh", "-c", "\n".join(pairs) + "\nwait")
        self.replay()
        self.assertEqual(len({e["pid"] for e in self.events() if e["what"] == "client"}), 8)

    def test_it_stops_where_it_is_told_and_shows_what_led_there(self):
        self.record(*pingpong_pair("-m", "1024", "-s", "4096", "-n", "20"))
        lines = self.replay("--until", "frame=12").splitlines()
        shown = [json.loads(line) for line in lines if line.startswith("  {")]
        self.assertEqual(len(shown), 10)
        frames = [event["opcode"] for event in shown if event["what"] == "frame"]
        self.assertEqual(frames[-3:], ["RC Acknowledge", "RC SEND First", "RC SEND Middle"])
        self.assertEqual(len([line for line in lines if "expects" in line]), 2)

    def test_a_place_behind_the_end_is_an_error_with_the_number_of_frames_or_events(self):
        self.record(*pingpong_pair("-n", "20"))
        frames = int(re.search(r" (\d+) frames", self.replay())[1])
        events = len(self.events())
        for noun, count in (("frame", frames), ("event", events)):
            self.replay("--until", f"{noun}={count}")
            for options in ((), ("--json",)):
                result = run(ROCEMU, "replay", *options, "--until", f"{noun}={count + 1}", self.recording)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertEqual(result.stdout, f"rocemu: replay: --until {noun}={count + 1}: the recording has only "
                                                f"{count} {noun}s\n")

    def test_the_timeline_names_the_processes_that_a_recording_has(self):
        self.record(*pingpong_pair("-n", "2"))
        pids = {event["pid"] for event in self.events() if event["what"] == "client"}
        result = run(ROCEMU, "timeline", "--process", "ibv_rc_pingpong", "--process", "nosuch", self.recording)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("timeline: --process nosuch: there is no such process; there are ", result.stdout)
        for pid in pids:
            self.assertIn(f"ibv_rc_pingpong ({pid})", result.stdout)
            self.assertEqual(run(ROCEMU, "timeline", "--process", str(pid), self.recording).returncode, 0)

    def test_a_journal_that_is_cut_off_replays_up_to_there(self):
        self.record(*pingpong_pair("-n", "20"))
        journal = self.recording / "journal"
        contents = journal.read_bytes()
        journal.write_bytes(contents[:len(contents) * 2 // 3])
        self.assertIn("cut off at byte", self.replay())

    def test_a_journal_that_is_damaged_is_refused_with_the_place(self):
        self.record(*pingpong_pair("-n", "20"))
        journal = self.recording / "journal"
        contents = bytearray(journal.read_bytes())
        contents[len(contents) // 2] ^= 4
        journal.write_bytes(contents)
        result = run(ROCEMU, "replay", self.recording)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"/journal: byte \d+: ")

    def test_a_journal_of_another_format_names_both(self):
        self.record("true")
        journal = self.recording / "journal"
        contents = bytearray(journal.read_bytes())
        contents[8] += 1
        journal.write_bytes(contents)
        result = run(ROCEMU, "replay", self.recording)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"the journal has format \d+, but this is rocemu .* reads format \d+")

    def test_a_broken_engine_is_found_at_the_frame_where_it_is_wrong(self):
        self.record(*pingpong_pair("-n", "20"))
        self.replay()
        acknowledgements = subprocess.run(
            ["tshark", "-r", str(self.recording / "trace.pcap"), "-T", "fields", "-e",
             "frame.number", "-e", "infiniband.aeth.msn"], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
        wrong = next(line.split()[0] for line in acknowledgements if line.split()[1:] == ["7"])
        result = run(BIN / "rocemu_mutated", "replay", self.recording)
        self.assertEqual(result.returncode, 1, result.stdout)
        lines = result.stdout.splitlines()
        self.assertIn(f", frame {wrong} (", lines[0])
        self.assertEqual(len([line for line in lines if line.startswith("  {")]), 10)
        self.assertIn("msn=7", lines[-2])
        self.assertIn("msn=8", lines[-1])

    def limited(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    def record_on_a_full_disk(self, policy):
        return rocemu_run(*pingpong_pair("-s", "4096", "-n", "1000"), preexec_fn=self.limited,
                          options=("--record", self.recording, "--record-policy", policy))

    def test_on_a_full_disk_the_run_goes_on_and_says_so(self):
        result = self.record_on_a_full_disk("continue")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("the recording ends here, but the run continues: cannot write", result.stdout)
        self.assertIn("File too large", result.stdout)
        self.replay()

    def test_on_a_full_disk_the_run_ends_if_told_and_says_so(self):
        result = self.record_on_a_full_disk("stop")
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn("the run ends, since it can no longer be recorded: cannot write",
                      result.stdout)
        self.replay()


if __name__ == "__main__":
    unittest.main()
