"""Tests vipl_pingpong as two processes, in its three modes, and its messages about errors."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from rocemu import BIN, ROCEMU, rocemu_run, run, temporary_directory  # noqa: E402

PINGPONG = str(BIN / "vipl_pingpong")
BOTH = """
"$@" & server=$!
"$@" "$SERVER" || exit
wait $server
"""


def both(*arguments, options=(), server="localhost"):
    return rocemu_run("env", f"SERVER={server}", "sh", "-c", BOTH, "sh", PINGPONG, *arguments,
                      options=options)


class Pingpong(unittest.TestCase):
    def check(self, *arguments, **keywords):
        result = both("-n", "200", *arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stdout)
        lines = re.findall(r"^200 iters in [\d.]+ seconds = [\d.]+ usec/iter$", result.stdout, re.M)
        self.assertEqual(len(lines), 2, result.stdout)

    def test_polling(self):
        self.check("--mode", "poll")

    def test_waiting(self):
        self.check("--mode", "wait")

    def test_notified(self):
        self.check("--mode", "notify")

    def test_unreliable(self):
        self.check("--unreliable")

    def test_messages_of_many_packets(self):
        self.check("--mode", "wait", "--size", "300000")

    def test_lost_frames_are_not_noticed(self):
        with temporary_directory() as directory:
            lost = pathlib.Path(directory) / "lost.yaml"
            lost.write_text("rules:\n- {on: frame, opcode: SEND, nth: 7, do: drop}\n")
            self.check("--mode", "notify",
                       options=["--scenario", str(lost), "--strict", "--lockstep"])


class Remote(unittest.TestCase):
    """Kills the server while messages are exchanged. The client must report what it notices."""
    # Kills the server as soon as `rocemu show` lists the client's QP as connected.
    KILL = """
        "$@" >&2 & server=$!
        "$@" localhost >client 2>&1 & client=$!
        until [ "$("$ROCEMU" show | grep -c RTS)" -ge 2 ]; do sleep 0.01; done
        kill -KILL $server
        wait $client; echo "status $?"; cat client
    """

    def killed(self, mode):
        with temporary_directory() as directory:
            return rocemu_run("env", f"ROCEMU={ROCEMU}", "sh", "-c", self.KILL, "sh", PINGPONG,
                              "--mode", mode, "-n", "1000000000", cwd=directory).stdout

    def test_who_dies_is_a_lost_connection(self):
        for mode in ("poll", "wait", "notify"):
            output = self.killed(mode)
            self.assertIn("status 1", output)
            self.assertRegex(output, "VIP_STATUS_(TRANSPORT|DESC_FLUSHED)_ERROR")


class Words(unittest.TestCase):
    def test_help_teaches(self):
        output = run(PINGPONG, "--help", check=True).stdout
        for word in ("SERVER", "VipCQNotify", "rocemu run", "--discriminator"):
            self.assertIn(word, output)

    def test_errors_say_what_to_do(self):
        for arguments, words in {
                ("--mode", "sleep"): "there is no mode 'sleep'; use poll, wait or notify",
                ("--size", "0"): "--size must be",
                ("--iters", "0"): "--iters must be",
                ("--discriminator", "x" * 21): "at most 20 bytes",
                ("--no-such-option",): "See vipl_pingpong --help"}.items():
            result = run(PINGPONG, *arguments)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(words, result.stdout)
        result = rocemu_run(PINGPONG, "-d", "mlx9_9")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no NIC 'mlx9_9'", result.stdout)
        result = rocemu_run(PINGPONG, "--patience", "1", "localhost")
        self.assertEqual(result.returncode, 1)
        self.assertIn("start `vipl_pingpong` there first", result.stdout)
        result = rocemu_run(PINGPONG, "--patience", "1")
        self.assertIn("no client came", result.stdout)

    def test_a_network_without_an_answer_is_told_of(self):
        with temporary_directory() as directory:
            lost = pathlib.Path(directory) / "lost.yaml"
            lost.write_text("rules:\n- {on: cm, mad: REQ, do: drop}\n")
            result = rocemu_run(PINGPONG, "--patience", "1", "localhost",
                                options=["--scenario", str(lost)])
        self.assertEqual(result.returncode, 1)
        self.assertIn("no answer came from localhost; start `vipl_pingpong` there first",
                      result.stdout)

    def test_sides_that_differ_are_told_so(self):
        result = rocemu_run("sh", "-c", '"$1" -s 100 & "$1" -s 200 localhost; wait', "sh", PINGPONG)
        self.assertIn("the server refuses; --size", result.stdout)
        self.assertIn("VIP_INVALID_MTU", result.stdout)


if __name__ == "__main__":
    unittest.main()
