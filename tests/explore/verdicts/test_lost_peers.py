"""Tests that a program that waits for a dead peer is reported as hanging at once. This is possible because each run
has a separate network, so that no other program can connect."""
import os
import subprocess
import unittest

from support import ROCEMU, ExploreTest

PROGRAM = os.environ["ROCEMU_RENDEZVOUS"]
FAULT = "rendezvous#2's 1st alloc_pd fails with ENOMEM"


def has_own_networks():
    return subprocess.run(["unshare", "-n", "true"], check=False).returncode == 0 or \
        subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0


@unittest.skipUnless(has_own_networks(), "this machine gives no network namespaces")
class LostPeers(ExploreTest):
    def hangs(self, way, place, words):
        # If the deadlock was not detected, each run would take 100 s. Runs use one path, so they must not run at the
        # same time: the kernel would connect the reader of one run with the writer of another.
        report = self.report("--force", "--run-timeout", "100s", "--only", "verbs:alloc_pd",
                             "--process", "rendezvous#2", "--repeat", "1", "--jobs", "1", status=1,
                             command=["sh", "-c", f"{PROGRAM} {way} {place} & "
                                      f"{PROGRAM} {way} {place} comes; wait"])
        [result] = [one for one in report["results"] if one["fault"] == FAULT]
        self.assertEqual(result["verdict"], "HANG", result)
        self.assertIn(words, result["detail"])
        self.assertNotIn("without end", result["detail"])

    def test_to_a_socket_that_listens(self):
        for way in ("accept", "accept4", "poll", "select", "epoll"):
            with self.subTest(way):
                self.hangs(way, "7100", "rendezvous#1 waits for a connection")

    def test_to_a_socket_of_a_path(self):
        self.hangs("accept", self.scratch / "socket", "rendezvous#1 waits for a connection")

    def test_with_a_datagram(self):
        self.hangs("recv", "7100", "rendezvous#1 waits for a datagram")

    def test_to_a_fifo(self):
        fifo = self.scratch / "fifo"
        os.mkfifo(fifo)
        self.hangs("fifo", fifo, "rendezvous#1 waits for a FIFO")
        self.hangs("open", fifo, "rendezvous#1 waits for another program to open a FIFO")

    def test_without_explore_a_server_waits(self):
        """Without explore, another program might still connect, so `rocemu run` does not end the server."""
        done = subprocess.run([ROCEMU, "run", "--lockstep", "--timeout", "1s", "--", PROGRAM, "accept",
                               self.scratch / "socket"], env=self.environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertEqual(done.returncode, 124, done.stderr)


if __name__ == "__main__":
    unittest.main()
