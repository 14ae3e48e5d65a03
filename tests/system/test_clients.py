"""Tests that clients that die, stop or send garbage do not affect others."""
import json
import os
import pathlib
import resource
import signal
import socket
import time
import unittest

from rocemu import ROCEMU, free_port, pingpong_pair, run
from shared_daemon import SharedDaemon


class Clients(SharedDaemon):
    def endless_pingpong(self):
        """Starts a server and a client process, and returns after they have exchanged messages."""
        before = self.frames_out()
        port = str(free_port())
        common = ["ibv_rc_pingpong", "-g", "0", "-p", port, "-n", "1000000000"]
        server = self.start(*common, "-d", "rocemu0")
        from pair import listening
        self.wait_until(lambda: listening(int(port)), "the server's socket")
        client = self.start(*common, "-d", "rocemu1", "localhost")

        self.wait_until(lambda: self.frames_out() > before + 1000, "an exchange of messages")
        return server, client

    def pids(self):
        return {client["device"]: client["pid"] for client in self.fabric()["clients"]}

    def finish(self, *processes):
        for process in processes:
            process.communicate(timeout=60)

    def stop_and_settle(self, pid):
        """Stops a process, and waits until no frames move: then its peer only waits for it."""
        os.kill(pid, signal.SIGSTOP)
        frames = None

        def nothing_moves():
            nonlocal frames
            before, frames = frames, [device["counters"]["frames_out"]
                                      for device in self.fabric()["fabric"]["devices"]]
            return before == frames
        self.wait_until(nothing_moves, "rest")

    def test_the_peer_of_a_killed_client_meets_a_dead_nic(self):
        """The surviving side sends and gets no answer, as with a dead NIC. (A side that waits for a message has
        nothing unacknowledged and would wait for ever, so the test kills the other side when it is this side's turn
        to send.)"""
        for survivor_device, victim_device in (("rocemu0", "rocemu1"), ("rocemu1", "rocemu0")):
            with self.subTest(victim=victim_device):
                server, client = self.endless_pingpong()
                survivor, victim = self.pids()[survivor_device], self.pids()[victim_device]
                self.stop_and_settle(survivor)
                os.kill(victim, signal.SIGKILL)
                self.wait_until(lambda: victim_device not in self.pids(), "the client's end")
                os.kill(survivor, signal.SIGCONT)
                process = server if survivor_device == "rocemu0" else client
                output, _ = process.communicate(timeout=60)
                self.assertNotEqual(process.returncode, 0)
                self.assertIn("transport retry counter exceeded", output)
                self.finish(client if process is server else server)
                self.wait_until(lambda: self.objects() == 0, "the end of the dead one's objects")
                self.assertEqual(self.fabric()["clients"], [])

    def test_the_daemon_serves_on_after_a_kill(self):
        server, client = self.endless_pingpong()
        for pid in self.pids().values():
            os.kill(pid, signal.SIGKILL)
        self.finish(server, client)
        result = run(ROCEMU, "run", "--", *pingpong_pair("-c"), env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_stopped_client_delays_nobody_else(self):
        server, client = self.endless_pingpong()
        self.stop_and_settle(self.pids()["rocemu1"])
        result = run(ROCEMU, "run", "--", *pingpong_pair("-c"), env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout)
        os.kill(self.pids()["rocemu1"], signal.SIGCONT)
        before = self.frames_out()
        self.wait_until(lambda: self.frames_out() > before + 1000, "the exchange going on")
        for pid in self.pids().values():
            os.kill(pid, signal.SIGKILL)
        self.finish(server, client)

    def frames_out(self):
        return self.fabric()["fabric"]["devices"][0]["counters"]["frames_out"]

    def device_socket(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(connection.close)
        connection.settimeout(30)
        [directory] = [path for path in self.base.rglob("dev/infiniband")]
        connection.connect(str(directory / "uverbs0"))
        return connection

    def test_garbage_on_the_socket_ends_only_its_sender(self):
        server, client = self.endless_pingpong()
        for garbage in (b"x", b"\0" * 272, b"\xff" * 272, os.urandom(272), os.urandom(60000)):
            with self.subTest(length=len(garbage)):
                connection = self.device_socket()
                connection.send(garbage)
                self.assertEqual(connection.recv(1000), b"")
        self.assertEqual(set(self.pids()), {"rocemu0", "rocemu1"})
        for pid in self.pids().values():
            os.kill(pid, signal.SIGKILL)
        self.finish(server, client)

    def test_many_idle_connections_come_and_go(self):
        for _ in range(20):
            connections = [self.device_socket() for _ in range(50)]
            for connection in connections:
                connection.close()
        result = run(ROCEMU, "run", "--", *pingpong_pair(), env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_the_death_of_the_daemon_ends_the_programs(self):
        server, client = self.endless_pingpong()
        down = self.rocemu("down")
        self.assertEqual(down.returncode, 0, down.stdout)
        for process in (server, client):
            process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.rocemu("up").returncode, 0)

    def daemon_pid(self):
        return json.loads(self.ask_control(self.control(), "version"))["pid"]

    def control(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(connection.close)
        connection.settimeout(60)
        [path] = self.base.rglob("control")
        connection.connect(str(path))
        return connection

    @staticmethod
    def ask_control(connection, command):
        connection.sendall(json.dumps({"command": command}).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += connection.recv(65536)
        return answer

    def leave_descriptors(self, pid, count):
        """Lets the process have at most `count` more descriptors than now, or fewer than now if `count` is negative."""
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        now = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (now + count, limits[1]))

    def test_a_lack_of_descriptors_disconnects_nobody_who_is_connected_and_is_told_once(self):
        """When descriptors are scarce, destroying an object needs some too, for the events that were not read."""
        pid, control = self.daemon_pid(), self.control()
        self.assertTrue(json.loads(self.ask_control(control, "pause"))["ok"])
        port = str(free_port())
        common = ["ibv_rc_pingpong", "-g", "0", "-p", port, "-e", "-n", "10"]
        server = self.start(*common, "-d", "rocemu0")
        from pair import listening
        self.wait_until(lambda: listening(int(port)), "the server's socket")
        client = self.start(*common, "-d", "rocemu1", "localhost")
        self.wait_until(lambda: [qp["state"] for device in self.fabric()["fabric"]["devices"]
                                 for qp in device["qps"]] == ["RTS", "RTS"], "both sides")
        self.leave_descriptors(pid, 40)
        [directory] = self.base.rglob("dev/infiniband")
        channels = []
        for _ in range(80):  # connections to rdma_cm, which a client may open without sending anything
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.addCleanup(channel.close)
            channel.connect(str(directory / "rdma_cm"))
            channels.append(channel)
        channels[-1].settimeout(30)
        self.assertEqual(channels[-1].recv(1), b"")  # by now, all others are accepted; this one was refused
        self.assertTrue(json.loads(self.ask_control(control, "resume"))["ok"])
        for process in (server, client):
            output, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, output)
        for channel in channels:
            channel.close()
        self.wait_until(lambda: self.rocemu("show").returncode == 0, "room")
        [log] = self.base.rglob("*.log")
        self.assertEqual(log.read_text().count("few file descriptors are left"), 1, log.read_text())

    def test_a_connection_that_cannot_be_accepted_waits_and_keeps_nobody_busy(self):
        pid = self.daemon_pid()
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        self.leave_descriptors(pid, -5)
        connection = self.device_socket()
        connection.send(b"garbage")

        def used():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before = used()
        time.sleep(1)  # a busy daemon would use the processor during this second
        self.assertLess(used() - before, 0.3)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(connection.recv(1000), b"")  # the daemon ended the connection because garbage was sent

    def test_connections_without_a_hello_leave_room_for_those_with_one(self):
        pid = self.daemon_pid()
        self.leave_descriptors(pid, 400)  # connections without a hello may use a quarter of them
        silent = [self.device_socket() for _ in range(300)]
        result = run(ROCEMU, "run", "--", *pingpong_pair(), env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(silent[0].recv(1), b"")
        self.assertLess(len(os.listdir(f"/proc/{pid}/fd")), 200)
        [log] = self.base.rglob("*.log")
        self.assertEqual(log.read_text().count("send no hello"), 1, log.read_text())


if __name__ == "__main__":
    unittest.main()
