"""Hosts of a network that a test makes: network namespaces on one bridge, with a NIC on each. Processes outside the
namespaces cannot see this network, and all of it disappears with the test. The test program must be root. If it is not,
but may become root of a user namespace, it does so.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import rocemu
from rocemu import ROCEMU, TIMEOUT, temporary_directory

INTERFACE = "eth0"
_count = 0


def ip(*arguments, check=True):
    return subprocess.run(["ip", *map(str, arguments)], check=check, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def why_no_namespaces():
    """Returns the reason why this process cannot create network namespaces, or "" if it can."""
    name = f"rocemu-{os.getpid()}-probe"
    made = ip("netns", "add", name, check=False)
    if made.returncode != 0:
        return made.stdout.strip() or "no network namespaces"
    linked = ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1", check=False)
    ip("netns", "del", name, check=False)
    return "" if linked.returncode == 0 else linked.stdout.strip()


def _become_root():
    """If this program is not root, starts it again as root of a user namespace, if that is allowed."""
    if os.geteuid() == 0 or "ROCEMU_TEST_UNSHARED" in os.environ:
        return
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
        os.environ["ROCEMU_TEST_UNSHARED"] = "1"
        inside = 'mount -t tmpfs none /run && exec "$@"'
        os.execvp("unshare", [*unshare, "sh", "-c", inside, "sh", *sys.orig_argv])


_become_root()


class Host:
    """A host: one namespace, its interface eth0 and, after start(), its rocemud."""

    def __init__(self, number, namespace, directory):
        self.number = number
        self.namespace = namespace
        self.ipv4 = f"10.77.0.{number}"
        self.ipv6 = f"fd77::{number}"
        self.device = f"rocemu{number}"
        self.directory = directory
        # A `rocemu run` around the tests has set variables, which are removed, because each host has its own NIC.
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("ROCEMU_DIR", "LD_PRELOAD")}
        self.environment["XDG_RUNTIME_DIR"] = str(directory)
        self.processes = []
        self.daemon = None

    def address(self, family):
        return self.ipv4 if family == 4 else self.ipv6

    @staticmethod
    def gid_index(family):
        return 0 if family == 4 else 1

    def inside(self, *command):
        return ["ip", "netns", "exec", self.namespace, *map(str, command)]

    def run(self, *command, **keywords):
        """Runs a program to its end, without the NIC."""
        return rocemu.run(*self.inside(*command), env=self.environment, **keywords)

    def popen(self, *command, rdma=True, **keywords):
        """Starts a program, with the NIC by default. It ends when the test does, at the latest. Its output goes to a
        file, so that it need not be read in the meantime (see output_of)."""
        line = [ROCEMU, "run", "--", *command] if rdma else command
        output = tempfile.TemporaryFile(dir=self.directory)
        process = subprocess.Popen(self.inside(*line), env=self.environment, stdout=output,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True, **keywords)
        process.output = output
        self.processes.append(process)
        return process

    def start(self, *options):
        """Runs `rocemu up` with its device on the interface."""
        result = self.run(ROCEMU, "up", "--udp", "--device", f"{self.device}={INTERFACE}", *options)
        if result.returncode != 0:
            raise AssertionError(result.stdout)
        self.daemon = int(re.search(r"\(pid (\d+)", result.stdout)[1])

    def kill(self):
        """Kills the NIC, as if it crashed or the host was lost."""
        os.kill(self.daemon, signal.SIGKILL)
        while os.path.exists(f"/proc/{self.daemon}"):
            time.sleep(0.01)
        self.daemon = None

    def end_programs(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.output.close()
        self.processes.clear()

    def stop(self):
        self.end_programs()
        if self.daemon is not None:
            self.run(ROCEMU, "down")
            self.daemon = None

    def show(self):
        return json.loads(self.run(ROCEMU, "show", "--json").stdout)

    def counters(self):
        return self.show()["fabric"]["devices"][0]["counters"]

    def link(self, *change):
        """Runs `ip link set eth0 ...` on the host."""
        ip("-n", self.namespace, "link", "set", INTERFACE, *change)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.namespace}: {what} does not come about")
            time.sleep(0.01)

    def wait_for_tcp(self, port, server):
        wanted = re.compile(rf":{port}\b")
        self.wait_for(lambda: server.poll() is not None or wanted.search(
            self.run("ss", "-Hltn").stdout), f"a server at TCP port {port}")

    def wait_for_listener(self, port, server):
        self.wait_for(lambda: server.poll() is not None or any(
            one["port"] == port for one in self.show()["fabric"]["listeners"]),
            f"an rdma_cm id that listens at {port}")


class Network:
    """A network of hosts: `with Network(count=3, mtu=1500) as hosts:`"""

    def __init__(self, count=3, mtu=1500):
        self.count, self.mtu = count, mtu
        self.hosts, self.namespaces = [], []
        self.directory = None

    def _namespace(self, name):
        global _count
        _count += 1
        full = f"rocemu-{os.getpid()}-{_count}-{name}"
        ip("netns", "add", full)
        self.namespaces.append(full)
        ip("-n", full, "link", "set", "lo", "up")
        for scope in ("all", "default"):
            for setting in ("accept_dad=0", "keep_addr_on_down=1", "accept_ra=0"):
                subprocess.run(["ip", "netns", "exec", full, "sysctl", "-qw",
                                f"net.ipv6.conf.{scope}.{setting}"], check=True)
        return full

    def __enter__(self):
        try:
            self.directory = temporary_directory()
            switch = self._namespace("switch")
            ip("-n", switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
            ip("-n", switch, "link", "set", "br0", "up", "mtu", self.mtu)
            for number in range(1, self.count + 1):
                namespace = self._namespace(f"h{number}")
                directory = pathlib.Path(self.directory.name) / f"h{number}"
                directory.mkdir(mode=0o700)
                host = Host(number, namespace, directory)
                self.hosts.append(host)
                port = f"port{number}"
                ip("-n", switch, "link", "add", port, "mtu", self.mtu, "type", "veth", "peer",
                   "name", INTERFACE, "mtu", self.mtu, "netns", namespace)
                ip("-n", switch, "link", "set", port, "master", "br0", "up")
                ip("-n", namespace, "addr", "add", f"{host.ipv4}/24", "dev", INTERFACE)
                ip("-n", namespace, "addr", "add", f"{host.ipv6}/64", "dev", INTERFACE)
                ip("-n", namespace, "link", "set", INTERFACE, "up")
                ip("-n", namespace, "route", "add", "224.0.0.0/4", "dev", INTERFACE)
            return self.hosts
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(self, *_):
        for host in self.hosts:
            host.stop()
        for name in self.namespaces:
            ip("netns", "del", name, check=False)
        if self.directory is not None:
            self.directory.cleanup()


def output_of(process):
    """Returns what the program has printed so far."""
    return os.pread(process.output.fileno(), 1 << 20, 0).decode(errors="replace")


def end_of(process):
    """Waits for the program's end and returns its output."""
    process.wait(timeout=TIMEOUT)
    process.output.seek(0)
    return process.output.read().decode(errors="replace")


def finish(test, *processes):
    """Waits for the processes. Returns their outputs if all succeeded. If one failed, does not wait for the others."""
    deadline = time.monotonic() + TIMEOUT
    while any(process.poll() is None for process in processes):
        if time.monotonic() > deadline or any(process.poll() for process in processes):
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    outputs = [end_of(process) for process in processes]
    story = "\n".join(f"{process.args}: status {process.returncode}\n{output}"
                      for process, output in zip(processes, outputs))
    for process in processes:
        test.assertEqual(process.returncode, 0, story)
    return outputs
