"""Tests several hosts with one rocemud each, connected over UDP: what the network carries, and what happens when it
changes. The stock programs run unmodified, as on hosts with NICs; the network is that of the kernel.
"""
import os
import re
import signal
import subprocess
import time
import unittest

import hosts
from hosts import Network, finish
from rocemu import NO_CLOCK

TRIES = 5
FAMILIES = (4, 6)


class OnNetwork(unittest.TestCase):
    """A network of three hosts whose NICs run, for all tests of the class."""
    mtu = 1500
    start_options = ()

    @classmethod
    def setUpClass(cls):
        why_not = hosts.why_no_namespaces()
        if why_not:
            raise unittest.SkipTest(f"network namespaces cannot be made here: {why_not}")
        network = Network(mtu=cls.mtu)
        cls.network = network
        cls.hosts = network.__enter__()
        cls.addClassCleanup(network.__exit__, None, None, None)
        for host in cls.hosts:
            host.start(*cls.start_options)

    def tearDown(self):
        for host in self.hosts:
            host.end_programs()

    def over_tcp(self, program, port, *options):
        """Runs the server and the client of a program that connects over TCP. This uses IPv4, because such servers
        support nothing else or take the first address that getaddrinfo(3) returns. Returns the outputs of both."""
        server_host, client_host = self.hosts[:2]
        for tries_left in reversed(range(TRIES)):
            server = server_host.popen(program, *options, "-d", server_host.device)
            server_host.wait_for_tcp(port, server)
            client = client_host.popen(program, *options, "-d", client_host.device, server_host.ipv4)
            try:
                return finish(self, server, client)
            except AssertionError as error:
                if NO_CLOCK not in str(error) or tries_left == 0:
                    raise

    def over_rdma_cm(self, port, server_command, *client_commands, server=0):
        server_host = self.hosts[server]
        process = server_host.popen(*server_command)
        server_host.wait_for_listener(port, process)
        others = [host for host in self.hosts if host is not server_host]
        clients = [host.popen(*command) for host, command in zip(others, client_commands)]
        return finish(self, process, *clients)

    def pingpong(self, program, family, *options):
        outputs = self.over_tcp(program, 18515, "-g", self.hosts[0].gid_index(family),
                                "-n", 200, *options)
        for output in outputs:
            self.assertRegex(output, "200 iters|success")

    def perftest(self, tool, family, *options):
        outputs = self.over_tcp(tool, 18515, "-x", self.hosts[0].gid_index(family),
                                *(["--ipv6"] if family == 6 else []), *options)
        for output in outputs:
            self.assertNotRegex(output, re.compile("fail|error|couldn't|unable", re.IGNORECASE))


class Traffic:
    """The tests for a network of one MTU. Each class that uses them sets the MTU."""
    path_mtu = "1024"

    def test_the_port_has_the_largest_path_mtu_that_fits(self):
        said = self.hosts[0].run(hosts.ROCEMU, "run", "--", "ibv_devinfo", "-v").stdout
        self.assertRegex(said, rf"active_mtu:\s+{self.path_mtu}\b")
        for gid in ("::ffff:10.77.0.1", "fd77::1", "fe80::"):
            self.assertIn(gid, said)

    def test_pingpong(self):
        for family in FAMILIES:
            self.pingpong("ibv_rc_pingpong", family, "-c")
            self.pingpong("ibv_rc_pingpong", family, "-e", "-s", "100000")
            self.pingpong("ibv_uc_pingpong", family)
            self.pingpong("ibv_ud_pingpong", family, "-s", "1000")
            self.pingpong("ibv_srq_pingpong", family)
            self.pingpong("ibv_xsrq_pingpong", family)

    def test_perftest(self):
        for family in FAMILIES:
            for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
                self.perftest(tool, family, "-n", "50", "-s", "65536")
            for tool in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"):
                self.perftest(tool, family, "-n", "50", "-s", "8")

    def test_perftest_over_other_transports(self):
        for transport, tools in {"UC": ("ib_send_bw", "ib_write_bw"), "UD": ("ib_send_bw",),
                                 "XRC": ("ib_send_bw", "ib_write_bw", "ib_read_bw")}.items():
            for tool in tools:
                self.perftest(tool, 4, "-n", "50", "-c", transport, "-s", "512")

    def test_large_messages_and_many_queue_pairs(self):
        self.perftest("ib_write_bw", 4, "-n", "5", "-s", str(8 << 20))
        self.perftest("ib_read_bw", 4, "-n", "5", "-s", str(8 << 20))
        self.perftest("ib_send_bw", 4, "-n", "50", "-q", "64", "-s", "4096")

    def test_rping(self):
        for family in FAMILIES:
            address = self.hosts[0].address(family)
            outputs = self.over_rdma_cm(
                7174, ["rping", "-s", "-a", address, "-V", "-C", "50", "-S", "5000"],
                ["rping", "-c", "-a", address, "-V", "-v", "-C", "50", "-S", "5000"])
            self.assertEqual(outputs[1].count("ping data: rdma-ping-"), 50)

    def test_ucmatose_and_udaddy(self):
        for family in FAMILIES:
            address = self.hosts[0].address(family)
            for program, port in {"ucmatose": 7471, "udaddy": 7174}.items():
                self.over_rdma_cm(port, [program, "-b", address], [program, "-s", address])

    def test_mckey_reaches_two_other_hosts(self):
        for group in ("239.77.1.1", "ff0e::77:1"):
            family = 6 if ":" in group else 4
            sender, *receivers = self.hosts
            started = [host.popen("mckey", "-b", host.address(family), "-m", group)
                       for host in receivers]
            for host, process in zip(receivers, started):
                host.wait_for(lambda: process.poll() is not None or group in host.run(
                    "ip", "maddr", "show", "dev", hosts.INTERFACE).stdout, f"membership of {group}")
            said = finish(self, sender.popen("mckey", "-b", sender.address(family), "-m", group,
                                             "-s"), *started)
            for output in said[1:]:
                self.assertIn("test complete", output)
                self.assertIn("return status 0", output)


class Mtu1500(Traffic, OnNetwork):
    pass


class Mtu9000(Traffic, OnNetwork):
    mtu = 9000
    path_mtu = "4096"


class Trouble(OnNetwork):
    def setUp(self):
        self.first, self.second, self.third = self.hosts

    def endless_writes(self, server_host, client_host):
        """Starts a client that always waits for acknowledgements. (A pingpong may instead wait for a message, which
        has no time limit.) Its server needs no NIC once the client runs."""
        options = ("ib_write_bw", "--run_infinitely", "-D", "1", "-x", "0", "-s", "4096")
        server = server_host.popen(*options, "-d", server_host.device)
        server_host.wait_for_tcp(18515, server)
        client = client_host.popen(*options, "-d", client_host.device, server_host.ipv4)
        before = client_host.counters()["frames_in"]
        client_host.wait_for(lambda: client_host.counters()["frames_in"] > before + 100, "traffic")
        return client

    def check_traffic(self):
        for host in (self.second, self.third):
            server = self.first.popen("rping", "-s", "-V", "-C", "10")
            self.first.wait_for_listener(7174, server)
            finish(self, server, host.popen("rping", "-c", "-a", self.first.ipv4, "-V", "-C", "10"))

    def test_a_killed_daemon_is_a_dead_nic_to_its_peers_and_can_be_restarted(self):
        client = self.endless_writes(self.second, self.first)
        self.second.kill()
        self.assertIn("Failed status 12:", hosts.end_of(client))  # IBV_WC_RETRY_EXC_ERR
        self.assertNotEqual(client.returncode, 0)
        self.assertGreater(self.first.counters()["udp_icmp_errors"], 0)
        self.second.start()
        self.check_traffic()

    def test_a_cut_link_is_a_port_event_and_a_retry_error_and_comes_back(self):
        watch = self.first.popen("stdbuf", "-oL", "ibv_asyncwatch", "-d", self.first.device)
        self.first.wait_for(lambda: "async event FD" in hosts.output_of(watch), "a watch of events")
        client = self.endless_writes(self.second, self.first)
        self.first.link("down")
        self.assertIn("Failed status 12:", hosts.end_of(client))
        self.first.wait_for(lambda: self.port_state() == "DOWN", "port down")
        self.first.link("up")
        self.first.wait_for(lambda: self.port_state() == "ACTIVE", "port up")
        self.check_traffic()
        watch.terminate()
        said = hosts.end_of(watch)
        self.assertEqual(re.findall(r"IBV_EVENT_\w+", said),
                         ["IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ACTIVE"], said)

    def test_a_host_without_time_is_waited_for(self):
        # The second host's NIC is stopped again and again, for longer than an ACK timeout (timeout 14 is 67 ms).
        options = ("ib_send_bw", "-x", "0", "-q", "64", "-s", "4096", "-n", "300")
        server = self.second.popen(*options, "-d", self.second.device)
        self.second.wait_for_tcp(18515, server)
        client = self.first.popen(*options, "-d", self.first.device, self.second.ipv4)
        self.first.wait_for(lambda: self.first.counters()["frames_in"] > 100, "traffic")
        end = time.monotonic() + hosts.TIMEOUT
        while client.poll() is None and time.monotonic() < end:
            os.kill(self.second.daemon, signal.SIGSTOP)
            time.sleep(0.09)
            os.kill(self.second.daemon, signal.SIGCONT)
            time.sleep(0.01)
        finish(self, server, client)

    def test_a_short_cut_is_bridged_by_retransmission(self):
        server = self.second.popen("rping", "-s", "-V", "-C", "3000")
        self.second.wait_for_listener(7174, server)
        client = self.first.popen("rping", "-c", "-a", self.second.ipv4, "-V", "-C", "3000")
        before = self.first.counters()["frames_in"]
        self.first.wait_for(lambda: self.first.counters()["frames_in"] > before + 100, "traffic")
        self.second.link("down")
        time.sleep(0.1)  # librdmacm's retries last much longer
        self.second.link("up")
        finish(self, server, client)

    def test_an_interface_that_is_removed_and_made_anew_serves_again(self):
        hosts.ip("-n", self.third.namespace, "link", "del", hosts.INTERFACE)
        self.third.wait_for(lambda: self.port_state(self.third) == "DOWN", "port down")
        number = self.third.number
        switch = self.network.namespaces[0]
        hosts.ip("-n", switch, "link", "add", f"port{number}", "type", "veth", "peer", "name",
                 hosts.INTERFACE, "netns", self.third.namespace)
        hosts.ip("-n", switch, "link", "set", f"port{number}", "master", "br0", "up")
        for address in (f"{self.third.ipv4}/24", f"{self.third.ipv6}/64"):
            hosts.ip("-n", self.third.namespace, "addr", "add", address, "dev", hosts.INTERFACE)
        self.third.link("up")
        self.third.wait_for(lambda: self.port_state(self.third) == "ACTIVE", "port up")
        self.check_traffic()

    def port_state(self, host=None):
        return (host or self.first).show()["fabric"]["devices"][0]["port_state"]


class Nobody(OnNetwork):
    """This test takes as long as librdmacm waits: 16 REQs, one every 6 s."""

    def test_an_address_of_nobody_cannot_be_connected_to(self):
        client = self.hosts[0].popen("rping", "-c", "-a", "10.77.0.200", "-C", "1")
        said = hosts.end_of(client)
        self.assertNotEqual(client.returncode, 0)
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE", said)


class Startup(unittest.TestCase):
    """Tests the messages about wrong command lines. This needs no namespace."""

    def refused(self, *options, status=1):
        result = subprocess.run([hosts.ROCEMU, "run", "--private", "--udp", *options, "--", "true"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        self.assertEqual(result.returncode, status, result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)
        return result.stdout

    def test_an_address_of_another_machine(self):
        self.assertIn("192.0.2.1 is not an address of this machine",
                      self.refused("--device", "rocemu0=192.0.2.1"))

    def test_no_such_interface(self):
        said = self.refused("--device", "rocemu0=nosuch0")
        self.assertIn("there is no network interface 'nosuch0'; there are", said)
        self.assertIn("lo", said)

    def test_no_address_at_all(self):
        self.assertIn("--device rocemu0=eth0", self.refused(status=2))
        self.assertIn("--device rocemu0=eth0", self.refused("--device", "rocemu0", status=2))

    def test_one_address_for_two_devices(self):
        self.assertIn("twice", self.refused("--device", "a=127.9.9.1", "--device", "b=127.9.9.1",
                                            status=2))


if __name__ == "__main__":
    unittest.main()
