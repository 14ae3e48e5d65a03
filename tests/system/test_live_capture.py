"""Tests a capture that is read while it is written: a FIFO, a pipe, standard output. Whatever the reader
does, the NIC continues, and nothing remains after the run."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

from rocemu import ROCEMU, TIMEOUT, pingpong_pair, processes_of, run, temporary_directory

PCAP_HEADER = 24
# Much more than fits into a pipe, and less than the limit of bytes that may wait for a reader.
MANY = ("-n", "5000", "-s", "1024")
# Messages of one packet each: 80 frames with their acknowledgements.
TWENTY = ("-n", "20", "-s", "1024")
# More bytes than may wait for a reader. The frames are large, and each takes time.
FAR_TOO_MANY = ("-n", "5000", "-s", "16384", "-m", "4096")


def frames_of(data):
    """Returns the number of frames that tshark finds in a capture. Fails if the capture contains anything
    else."""
    result = subprocess.run(["tshark", "-r", "-", "-T", "fields", "-e", "infiniband.bth.opcode"],
                            input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return len(result.stdout.splitlines())


class LiveCapture(unittest.TestCase):
    def setUp(self):
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.fifo = self.directory / "fifo"
        os.mkfifo(self.fifo)

    def start(self, *command, capture, **keywords):
        keywords.setdefault("stdout", subprocess.PIPE)
        process = subprocess.Popen([ROCEMU, "run", "--private", "--capture", str(capture), "--",
                                    *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   **keywords)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process, status=0):
        """Waits for the process, and returns its two outputs as text."""
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, status, err)
        self.assertEqual(processes_of(f"--capture {self.fifo}"), [], "the daemon outlives its run")
        return (out or b"").decode(), err.decode()

    def test_a_fifo_that_somebody_reads_has_every_frame(self):
        read = []
        reader = threading.Thread(target=lambda: read.append(self.fifo.read_bytes()))
        reader.start()
        out, err = self.finish(self.start(*pingpong_pair(*MANY), capture=self.fifo))
        reader.join()
        self.assertIn("5000 iters", out)
        self.assertEqual(err, "")
        self.assertEqual(frames_of(read[0]), 4 * 5000)

    def test_a_reader_sees_frames_while_the_program_runs(self):
        code = ("import subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
                "print('sent', flush=True); sys.stdin.read()")
        process = subprocess.Popen([ROCEMU, "run", "--private", "--capture", str(self.fifo), "--",
                                    sys.executable, "-c", code, *pingpong_pair(*TWENTY)],
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        with open(self.fifo, "rb") as fifo:
            # The run has not ended, since its program waits until the test closes its standard input.
            self.assertGreater(len(fifo.read(PCAP_HEADER + 60)), PCAP_HEADER)
            self.assertIsNone(process.poll())
            process.stdin.close()
            fifo.read()
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_a_fifo_that_nobody_reads_is_a_message_and_no_hang(self):
        result = run(ROCEMU, "run", "--capture", self.fifo, "--", "echo", "ran", timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, rf"\Arocemu: waiting for a program to read the FIFO {self.fifo}\n"
                                        rf"rocemu: cannot write the capture {self.fifo}: no program "
                                        r"reads this FIFO[^\n]+\n\Z")
        self.assertEqual(processes_of(str(self.fifo)), [])

    def test_a_reader_that_goes_ends_the_capture_and_not_the_run(self):
        process = self.start(*pingpong_pair(*MANY), capture=self.fifo)
        with open(self.fifo, "rb") as fifo:
            fifo.read(PCAP_HEADER)
        out, err = self.finish(process)
        self.assertIn("5000 iters", out)
        self.assertRegex(err, r"\Arocemud: error: the capture [^\n]+: its reader has exited\n\Z")

    def test_a_reader_that_never_reads_delays_nobody_and_is_told(self):
        process = self.start(*pingpong_pair(*FAR_TOO_MANY), capture=self.fifo)
        with open(self.fifo, "rb"):
            out, err = self.finish(process)
        self.assertIn("5000 iters", out)
        self.assertIn("its reader has stopped reading", err)
        self.assertRegex(err, r"\d+ frames are not in the capture .*: its reader was too slow")

    def test_a_reader_that_is_slow_misses_whole_frames_only(self):
        read = bytearray()

        def trickle(finished):
            with open(self.fifo, "rb", buffering=0) as fifo:
                read.extend(fifo.read(1000))
                finished.wait(TIMEOUT)  # the program's traffic does not wait for the reader
                while piece := fifo.read(1 << 20):
                    read.extend(piece)

        finished = threading.Event()
        reader = threading.Thread(target=trickle, args=(finished,))
        reader.start()
        code = ("import subprocess, sys; "
                "sys.exit(print(subprocess.run(sys.argv[1:]).returncode, flush=True))")
        process = self.start(sys.executable, "-c", code, *pingpong_pair(*FAR_TOO_MANY),
                             capture=self.fifo)
        for line in process.stdout:
            if line == b"0\n":
                break
        finished.set()
        _, err = self.finish(process)
        reader.join()
        lost = int(err.partition(" frames are not in the capture")[0].rpartition(" ")[2])
        self.assertGreater(lost, 0)
        self.assertEqual(frames_of(bytes(read)) + lost, self.frames(*FAR_TOO_MANY))

    def frames(self, *arguments):
        file = self.directory / "whole.pcap"
        self.finish(self.start(*pingpong_pair(*arguments), capture=file))
        return frames_of(file.read_bytes())

    def test_sigterm_ends_the_daemon_beside_a_reader_that_never_reads(self):
        process = self.start("sh", "-c", 'echo "$ROCEMU_DIR"; exec sleep 1000', capture=self.fifo)
        with open(self.fifo, "rb"):
            directory = process.stdout.readline().decode().strip()
            (daemon,) = processes_of(f"rocemud --dir {directory}")
            os.kill(daemon, signal.SIGTERM)
            while processes_of(f"rocemud --dir {directory}"):
                time.sleep(0.01)
            process.terminate()
            process.communicate(timeout=TIMEOUT)

    def test_dash_is_standard_output_and_the_programs_own_goes_to_standard_error(self):
        process = self.start(*pingpong_pair(*TWENTY), capture="-")
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(frames_of(out), 80)
        self.assertIn(b"20 iters", err)

    def test_names_of_standard_output_mean_it(self):
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            process = self.start(*pingpong_pair(*TWENTY), capture=name)
            out, err = process.communicate(timeout=TIMEOUT)
            self.assertEqual((frames_of(out), process.returncode), (80, 0), name)
            self.assertIn(b"20 iters", err)

    def test_another_descriptor_is_left_to_the_capture(self):
        read_end, write_end = os.pipe()
        process = self.start(*pingpong_pair(*TWENTY), capture=f"/dev/fd/{write_end}",
                             pass_fds=[write_end])
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            self.assertEqual(frames_of(pipe.read()), 80)
        self.assertIn(b"20 iters", process.communicate(timeout=TIMEOUT)[0])

    def test_standard_output_is_a_file_that_is_appended_to(self):
        file = self.directory / "appended.pcap"
        with open(file, "ab") as stdout:
            self.finish(self.start(*pingpong_pair(*TWENTY), capture="-", stdout=stdout))
        self.assertEqual(frames_of(file.read_bytes()), 80)

    def test_both_readers_of_a_pipe_that_everybody_has(self):
        for reader in ("tshark -r - -T fields -e frame.number", "tcpdump -nr -"):
            command = " ".join([ROCEMU, "run", "--private", "--capture", "-", "--",
                                *pingpong_pair(*TWENTY)])
            result = subprocess.run(["bash", "-o", "pipefail", "-c", f"{command} | {reader}"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                    timeout=TIMEOUT)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(result.stdout.splitlines()), 80, reader)

    def test_standard_output_that_is_closed(self):
        result = run("sh", "-c", f"{ROCEMU} run --capture - -- true >&-")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write the capture -: Bad file descriptor", result.stdout)

    def test_a_terminal_is_refused(self):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        result = subprocess.run([ROCEMU, "run", "--capture", "-", "--", "true"], stdout=slave,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT)
        os.close(slave)
        self.assertEqual(result.returncode, 1)
        self.assertIn("it is a terminal; pipe it to a program", result.stderr)

    def test_what_cannot_be_written_is_said_at_once(self):
        for name, reason in ((self.directory, "Is a directory"),
                             ("/dev/full", "No space left on device"),
                             (self.directory / "no" / "such", "No such file or directory")):
            result = run(ROCEMU, "run", "--capture", name, "--", "echo", "ran")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stdout, f"rocemu: cannot write the capture {name}: {reason}\n")

    def test_a_replay_waits_for_its_reader_and_leaves_nothing_out(self):
        recording = self.directory / "recording"
        run(ROCEMU, "run", "--private", "--record", recording, "--", *pingpong_pair(*MANY), check=True)
        replay = subprocess.Popen([ROCEMU, "replay", "--capture", "-", recording],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, replay)
        out, err = replay.communicate(timeout=TIMEOUT)
        self.assertEqual(replay.returncode, 0, err)
        self.assertIn(b"no difference", err)
        self.assertEqual(out, (recording / "trace.pcap").read_bytes())

    def test_a_fifo_in_the_place_of_a_recording_is_refused(self):
        os.mkdir(self.directory / "recording")
        os.mkfifo(self.directory / "recording" / "journal")
        result = run(ROCEMU, "run", "--record", self.directory / "recording", "--", "echo", "ran",
                     timeout=30)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Arocemu: [^\n]+journal[^\n]+\n\Z")

    def test_a_shared_nic_has_a_live_capture_too(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.directory)}
        read = []
        reader = threading.Thread(target=lambda: read.append(self.fifo.read_bytes()))
        reader.start()
        run(ROCEMU, "up", "--capture", self.fifo, env=environment, check=True)
        run(ROCEMU, "run", "--", *pingpong_pair(*TWENTY), env=environment, check=True)
        run(ROCEMU, "down", env=environment, check=True)
        reader.join()
        self.assertEqual(frames_of(read[0]), 80)

    def test_a_shared_nic_may_write_to_standard_output(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.directory)}
        up = subprocess.Popen([ROCEMU, "up", "--capture", "-"], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, up)
        self.assertEqual(up.wait(TIMEOUT), 0)
        self.assertIn(b"up: rocemu0", up.stderr.readline())
        read = []
        reader = threading.Thread(target=lambda: read.append(up.stdout.read()))
        reader.start()
        run(ROCEMU, "run", "--", *pingpong_pair(*TWENTY), env=environment, check=True)
        run(ROCEMU, "down", env=environment, check=True)
        reader.join()
        self.assertEqual(frames_of(read[0]), 80)


if __name__ == "__main__":
    unittest.main()
