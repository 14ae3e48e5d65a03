"""Tests `rocemu up` and `rocemu down`, and how `rocemu run` joins the NIC."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from support import PYTHON, ROCEMU, CommandTest, wait_for

PRINT_DIR = "import os; print(os.environ['ROCEMU_DIR'])"

# Runs a daemon that answers every line with its first argument, or closes the connection if it has none.
OTHER_DAEMON = """if True:
    import os, socket, sys
    reply, directory = sys.argv[1:]
    os.makedirs(directory)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(directory + "/control")
    listener.listen()
    print("ready", flush=True)
    while True:
        connection = listener.accept()[0]
        while reply:
            request = connection.recv(4096)
            if b"shutdown" in request:
                sys.exit()
            if not request:
                break
            connection.send(reply.encode() + b"\\n")
        connection.close()
"""


class Shared(CommandTest):
    def up(self, *options):
        result = self.rocemu("up", *options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def down(self):
        result = self.rocemu("down")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_is_joined_by_run_until_it_is_down(self):
        self.assertIn("rocemu down", self.up())
        self.assertEqual(self.run_python(PRINT_DIR).strip(), self.shared)
        pid = self.show()["pid"]
        self.assertEqual(os.getsid(pid), pid)
        self.down()
        self.assertFalse(os.path.exists(f"/proc/{pid}/fd/0"), "the daemon still runs")
        self.assertEqual(os.listdir(self.runtime), [])
        self.assertNotEqual(self.run_python(PRINT_DIR).strip(), self.shared)

    def test_that_is_slow_is_waited_for(self):
        self.up()
        pid = self.show()["pid"]
        terminal, end = os.openpty()
        self.addCleanup(os.close, terminal)
        os.kill(pid, signal.SIGSTOP)
        try:
            show = subprocess.Popen([ROCEMU, "show", "--json"], stdout=subprocess.PIPE, stderr=end,
                                    env=self.environment)
            os.close(end)
            said = b""
            while not said.endswith(b"\n"):
                said += os.read(terminal, 1000)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertIn(f"(pid {pid})".encode(), said)
        self.assertEqual(json.loads(show.communicate()[0])["pid"], pid)
        self.assertEqual(show.returncode, 0)
        self.down()

    def test_is_not_joined_with_options_of_one_s_own(self):
        self.up()
        for options in (["--private"], ["--devices", "2"], ["--device", "x"], ["--seed", "1"],
                        ["--require-grh"], ["--same-keys"], ["--capture", "/dev/null"]):
            with self.subTest(options=options):
                # All names have the same length: the name is in the environment, whose size affects the position of
                # the stack.
                self.assertRegex(self.run_python(PRINT_DIR, *options),
                                 r"/run-\d{7}-[0-9a-f]{8}\b")
        self.down()

    def test_follows_its_options(self):
        self.up("--device", "mlx5_0=10.0.0.1", "--capture", str(self.scratch / "a.pcap"))
        self.assertEqual(self.show()["fabric"]["devices"][0]["name"], "mlx5_0")
        self.down()
        self.assertTrue((self.scratch / "a.pcap").exists())

    def test_that_records_has_a_capture_when_it_is_down(self):
        with tempfile.TemporaryDirectory() as directory:
            recording = os.path.join(directory, "recording")
            self.up("--record", recording)
            self.assertFalse(os.path.exists(os.path.join(recording, "trace.pcap")))
            self.down()
            with open(os.path.join(recording, "trace.pcap"), "rb") as capture:
                self.assertEqual(len(capture.read()), 24)  # only the header of a pcap file, so nothing was sent

    def test_up_twice_is_no_failure_unless_options_would_be_lost(self):
        self.up()
        self.assertIn("already", self.up())
        self.assert_one_line(self.rocemu("up", "--devices", "3"), 1, "already", "rocemu down")
        self.down()

    def test_up_twice_at_once_gives_one(self):
        outputs = []
        threads = [threading.Thread(target=lambda: outputs.append(self.up())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outputs), 8)
        self.assertEqual(sum("already" in output for output in outputs), 7)
        self.down()

    def test_up_and_down_and_runs_at_once_end_well(self):
        def work(index):
            for _ in range(5):
                if index == 0:
                    self.up()
                    self.down()
                else:
                    self.run_python("", "--private")

        threads = [threading.Thread(target=work, args=[index]) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_down_without_up_is_said(self):
        self.assertIn("no shared NIC", self.down())

    def test_that_cannot_start_says_why(self):
        self.assert_one_line(self.rocemu("up", "--capture", "/no/such/folder/x"), 1,
                             "/no/such/folder/x")

    def test_that_was_killed_is_replaced_or_cleared_away(self):
        for _ in range(5):  # tests both a daemon that the kernel is just ending, and one that has ended
            self.up()
            os.kill(self.show()["pid"], signal.SIGKILL)
            result = self.rocemu("run", "--", *PYTHON, PRINT_DIR)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("/run-", result.stdout)
            self.assertIn("the shared NIC has died", result.stderr)
        self.assertIn("killed", self.down())
        self.assertEqual(os.listdir(self.runtime), [])

    def test_survives_its_terminal(self):
        self.start("up", start_new_session=True).communicate()
        self.assertEqual(self.run_python(PRINT_DIR).strip(), self.shared)
        self.down()


class OtherVersion(CommandTest):
    def other_daemon(self, reply):
        process = subprocess.Popen([sys.executable, "-S", "-c", OTHER_DAEMON, reply, self.shared],
                                   stdout=subprocess.PIPE, text=True, umask=0o077)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        # The process is a child of this test, so the test must wait for it, as init would.
        threading.Thread(target=process.wait, daemon=True).start()

    def test_is_said_with_what_to_do(self):
        self.other_daemon('{"ok": true, "version": "9.8.7", "abi": 99}')
        for arguments in (["run", "--", "true"], ["show"], ["up"]):
            self.assert_one_line(self.rocemu(*arguments), 1, "9.8.7", "rocemu down")
        self.run_python("", "--private")
        self.rocemu("down")

    def test_that_does_not_speak_json_is_said(self):
        self.other_daemon("HTTP/1.0 400")
        self.assert_one_line(self.rocemu("run", "--", "true"), 1, "is not a rocemu daemon")

    def test_that_hangs_up_is_said_and_can_be_brought_down(self):
        self.other_daemon("")
        self.assert_one_line(self.rocemu("show"), 1, "closed the connection")
        self.assertEqual(self.rocemu("down").returncode, 0)

    def tearDown(self):
        self.rocemu("down")  # also ends the daemon of other_daemon()
        super().tearDown()


if __name__ == "__main__":
    unittest.main()
