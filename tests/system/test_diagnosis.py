"""Tests the tools with which people inspect RDMA devices: ibstat, ibstatus and iproute2's rdma."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from rocemu import HERE, ROCEMU, rocemu_run, run

HOLD = ["/usr/bin/python3", str(HERE / "hold_objects.py")]


def documents_in(text, count):
    """Returns the first `count` JSON documents in a text, and the rest of the text. In iproute2 6.15, a
    document has several lines."""
    documents = []
    for _ in range(count):
        document, end = json.JSONDecoder().raw_decode(text)
        documents.append(document)
        text = text[end:].lstrip()
    return documents, text


class InfinibandDiags(unittest.TestCase):
    def ask(self, *command):
        result = rocemu_run(*command)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_ibstat_describes_both_devices(self):
        text = self.ask("ibstat")
        self.assertEqual(re.findall(r"^CA '(\S+)'", text, re.M), ["rocemu0", "rocemu1"])
        for expected in (r"CA type: rocemu", r"Number of ports: 1", r"State: Active",
                         r"Physical state: LinkUp", r"Rate: 100", r"Link layer: Ethernet"):
            self.assertEqual(len(re.findall(expected, text)), 2, expected)

    def test_ibstat_lists_names_and_one_port(self):
        self.assertEqual(self.ask("ibstat", "-l").split(), ["rocemu0", "rocemu1"])
        self.assertNotIn("rocemu0", self.ask("ibstat", "rocemu1", "1"))

    def test_ibstatus_describes_both_devices(self):
        text = self.ask("ibstatus")
        self.assertEqual(re.findall(r"device '(\S+)' port 1 status", text), ["rocemu0", "rocemu1"])
        self.assertIn("0000:0000:0000:0000:0000:ffff:7f00:0002", text)
        self.assertEqual(text.count("4: ACTIVE"), 2)
        self.assertNotIn("unknown", text)

    def test_a_port_that_is_down_is_down_for_all(self):
        text = self.ask("sh", "-c", f"{ROCEMU} set rocemu0 port down; ibstat rocemu0; "
                                    "ibstatus rocemu0; rdma link show rocemu0/1")
        for expected in (r"\tState: Down", r"Physical state: Disabled", r"state:\s+1: DOWN",
                         r"phys state:\s+3: Disabled", r"state DOWN physical_state DISABLED"):
            self.assertRegex(text, expected)


class PortEvents(unittest.TestCase):
    def test_programs_hear_of_a_port_that_goes_down_and_up(self):
        script = ("stdbuf -oL ibv_asyncwatch -d rocemu0 > watched.txt & watcher=$!;"
                  "wait_for() { until grep -q \"$1\" watched.txt; do sleep 0.01; done; };"
                  "wait_for 'async event FD';"
                  f"{ROCEMU} set rocemu1 port down && {ROCEMU} set rocemu0 port down;"
                  "wait_for 'IBV_EVENT_PORT_ERR';"
                  f"{ROCEMU} set rocemu0 port up; wait_for 'IBV_EVENT_PORT_ACTIVE';"
                  "kill $watcher; cat watched.txt")
        with tempfile.TemporaryDirectory() as directory:
            result = rocemu_run("sh", "-c", script, cwd=directory)
        self.assertEqual(re.findall(r"IBV_EVENT_\w+", result.stdout),
                         ["IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ACTIVE"],
                         result.stdout)


def program_output(result):
    """Returns the output without rocemu's message about programs that create objects and post nothing."""
    return re.sub(r"(?m)^rocemu: nothing was posted: .*\n", "", result.stdout)


class Show(unittest.TestCase):
    def test_every_kind_of_object_is_shown(self):
        result = rocemu_run(*HOLD, "rocemu0", ROCEMU, "show", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        said, state = program_output(result).split("\n", 1)
        said = json.loads(said)
        device = json.loads(state)["fabric"]["devices"][0]
        (qp,), (cq,), (srq,) = device["qps"], device["cqs"], device["srqs"]
        (xrcd,), (mr,), (mw,) = device["xrcds"], device["mrs"], device["mws"]
        self.assertEqual((qp["number"], qp["send_cq"], qp["recv_cq"], qp["pd"], qp["srq"]),
                         (said["lqpn"], cq["id"], cq["id"], mr["pd"], 0))
        self.assertEqual((srq["type"], srq["max_wr"], srq["posted"], srq["pd"]),
                         ("BASIC", 10, 0, mr["pd"]))
        self.assertEqual(xrcd["clients"], [qp["client"]])
        self.assertEqual((mr["kind"], mr["lkey"], mr["windows"]), ("MEMORY", said["lkey"], 0))
        self.assertEqual((mw["type"], mw["rkey"], mw["bound"]), (2, said["window_rkey"], False))
        self.assertEqual((device["pd_count"], mw["comm"]), (1, "python3"))

    def test_every_kind_of_object_has_its_table(self):
        text = rocemu_run(*HOLD, "rocemu0", ROCEMU, "show").stdout.split("rocemu1  port")
        for kind in ("queue pairs", "completion queues", "shared receive queues", "XRC domains",
                     "memory regions", "memory windows"):
            self.assertIn(f"  {kind}\n", text[0])
            self.assertIn(f"  {kind}: none\n", text[1])


class Rdma(unittest.TestCase):
    def ask(self, *arguments, prefix=()):
        """Returns the output of `rdma -j`, and the output of the program before it."""
        result = rocemu_run(*prefix, "rdma", "-j", "-d", *arguments)
        self.assertEqual(result.returncode, 0, result.stdout)
        lines = program_output(result).splitlines()
        said = json.loads(lines.pop(0)) if prefix else None
        answer = json.loads("".join(lines) or "[]")
        return (said, answer) if prefix else answer

    def test_dev_shows_what_ibv_devinfo_shows(self):
        devices = self.ask("dev")
        self.assertEqual([device["ifname"] for device in devices], ["rocemu0", "rocemu1"])
        self.assertEqual([device["ifindex"] for device in devices], [0, 1])
        text = rocemu_run("ibv_devinfo").stdout
        self.assertEqual(re.findall(r"node_guid:\s+(\S+)", text),
                         [device["node_guid"] for device in devices])
        self.assertEqual(re.findall(r"fw_ver:\s+(\S+)", text), [device["fw"] for device in devices])
        for device in devices:
            self.assertEqual(device["node_type"], "ca")

    def test_dev_shows_one_of_many(self):
        result = rocemu_run("rdma", "dev", "show", "rocemu199", options=("--devices", "200"))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"\A199: rocemu199: node_type ca ")

    def test_link_shows_state_and_interface(self):
        links = self.ask("link")
        self.assertEqual([(link["ifname"], link["port"]) for link in links],
                         [("rocemu0", 1), ("rocemu1", 1)])
        # The first device has the machine's addresses, if there are any but those of the loopback interface.
        addresses = json.loads(run("ip", "-j", "address").stdout)
        netdevs = [interface["ifname"] for interface in addresses
                   if interface["ifname"] != "lo" and interface["addr_info"]] or ["lo"]
        for link, expected in zip(links, (netdevs, ["lo"])):
            self.assertEqual((link["state"], link["physical_state"]), ("ACTIVE", "LINK_UP"))
            self.assertIn(link["netdev"], expected)

    def test_what_is_not_there_is_an_error(self):
        for arguments in (("dev", "show", "rocemu7"), ("link", "show", "rocemu0/2")):
            self.assertNotEqual(rocemu_run("rdma", *arguments).returncode, 0, arguments)

    def test_what_would_change_a_device_is_refused(self):
        result = rocemu_run("rdma", "dev", "set", "rocemu0", "name", "other")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("not supported", result.stdout)

    def test_resources_are_counted(self):
        self.assertEqual([{name: device[name] for name in ("pd", "cq", "qp", "mr", "ctx", "srq")}
                          for device in self.ask("resource")],
                         [dict.fromkeys(("pd", "cq", "qp", "mr", "ctx", "srq"), 0)] * 2)
        _, devices = self.ask("resource", prefix=(*HOLD, "rocemu1"))
        self.assertEqual([{name: device[name] for name in ("pd", "cq", "qp", "mr", "ctx", "srq")}
                          for device in devices],
                         [dict.fromkeys(("pd", "cq", "qp", "mr", "ctx", "srq"), count)
                          for count in (0, 1)])

    def test_resources_are_shown_with_their_owner(self):
        said, (qp,) = self.ask("resource", "show", "qp", prefix=(*HOLD, "rocemu1"))
        self.assertEqual((qp["ifname"], qp["lqpn"], qp["type"], qp["state"]),
                         ("rocemu1", said["lqpn"], "RC", "RESET"))
        self.assertIn("python3", qp["comm"])
        _, (cq,) = self.ask("resource", "show", "cq", prefix=(*HOLD, "rocemu0"))
        self.assertGreaterEqual(cq["cqe"], 10)
        self.assertEqual(cq["users"], 2)  # both queues of the QP use it
        said, (mr,) = self.ask("resource", "show", "mr", prefix=(*HOLD, "rocemu0"))
        self.assertEqual((int(mr["rkey"], 16), int(mr["lkey"], 16), mr["mrlen"]),
                         (said["rkey"], said["lkey"], 4096))
        _, (pd,) = self.ask("resource", "show", "pd", prefix=(*HOLD, "rocemu0"))
        self.assertEqual(pd["users"], 4)  # a region, a window, an SRQ and a QP
        self.assertEqual(pd["pdn"], mr["pdn"])
        _, (srq,) = self.ask("resource", "show", "srq", prefix=(*HOLD, "rocemu0"))
        self.assertEqual((srq["ifname"], srq["type"]), ("rocemu0", "BASIC"))
        _, (context,) = self.ask("resource", "show", "ctx", prefix=(*HOLD, "rocemu0"))
        self.assertEqual(context["ctxn"], cq["ctxn"])

    def test_ids_of_librdmacm_are_shown_as_the_kernels_are(self):
        script = """
            rping -s -a 0.0.0.0 -p 7174 & server=$!
            until rdma -j -d resource show cm_id | grep -q LISTEN; do :; done
            rdma -j -d resource show cm_id
            rping -c -a 127.0.0.2 -p 7174 -C 1000000 & client=$!
            # The server's id says CONNECT when the request is there, and has a QP a moment later.
            until [ "$(rdma resource show cm_id | grep -c 'lqpn .* state CONNECT')" = 2 ]; do :; done
            rdma -j -d resource show cm_id
            rdma -j resource
            rdma resource show cm_id
            kill $client $server
        """
        result = rocemu_run("bash", "-c", script)
        (before, during, summary), text = documents_in(result.stdout, 3)
        # As by the kernel, a listener at the wildcard address is shown for each device, and without a port.
        self.assertEqual([(each["ifname"], each["state"], each["ps"], each["src-addr"])
                          for each in before],
                         [(name, "LISTEN", "TCP", "0.0.0.0:7174") for name in ("rocemu0", "rocemu1")])
        for each in before:
            self.assertEqual(each["comm"], "rping")
            self.assertTrue({"dst-addr", "port", "lqpn"}.isdisjoint(each))
        active, passive = (each for each in during if each["state"] == "CONNECT")
        self.assertEqual((active["ifname"], passive["ifname"]), ("rocemu0", "rocemu1"))
        self.assertEqual(passive["src-addr"], "127.0.0.2:7174")
        self.assertEqual((active["src-addr"], active["dst-addr"]),
                         (passive["dst-addr"], passive["src-addr"]))
        self.assertEqual(passive["pid"], before[0]["pid"])
        self.assertNotEqual(active["pid"], passive["pid"])
        for each in (active, passive):
            self.assertGreater(each["lqpn"], 0)
            self.assertEqual((each["qp-type"], each["ps"], each["port"]), ("RC", "TCP", 1))
        self.assertEqual([device["cm_id"] for device in summary], [2, 2])
        self.assertRegex(text, r"link rocemu1/1 cm-idn \d+ lqpn \d+ qp-type RC state CONNECT ps TCP "
                               r"pid \d+ comm rping src-addr 127\.0\.0\.2:7174 dst-addr 127\.0\.0")

    def test_a_resource_is_found_by_its_number(self):
        script = "rdma -j resource show qp lqpn $(rdma -j resource show qp | tr -d '\\n' | " \
                 "sed 's/.*\"lqpn\":\\([0-9]*\\).*/\\1/')"
        result = rocemu_run(*HOLD, "rocemu0", "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stdout)
        (said, found), _ = documents_in(result.stdout, 2)
        self.assertEqual([qp["lqpn"] for qp in found], [said["lqpn"]])

    def test_hundreds_of_resources_are_shown(self):
        """The output about so many resources fits neither into one datagram nor into a socket buffer."""
        program = ("import sys, subprocess\n"
                   "from pyverbs.device import Context\nfrom pyverbs.pd import PD\n"
                   "context = Context(name='rocemu0')\n"
                   "pds = [PD(context) for _ in range(20000)]\n"
                   "sys.exit(subprocess.run(['rdma', '-j', 'resource', 'show', 'pd']).returncode)")
        result = rocemu_run("/usr/bin/python3", "-c", program)
        self.assertEqual(result.returncode, 0, result.stdout[-500:])
        self.assertEqual(len({pd["pdn"] for pd in json.loads(result.stdout)}), 20000)

    def test_statistic_shows_the_hardware_counters_of_sysfs(self):
        directory = "/sys/class/infiniband/rocemu0/ports/1/hw_counters"
        names = rocemu_run("ls", directory).stdout.split()
        (link, _) = self.ask("statistic")
        self.assertIn("local_ack_timeout_err", names)
        for name in names:
            if name != "lifespan":
                self.assertEqual(link[name], 0)

    def test_without_a_daemon_there_is_nothing(self):
        environment = {name: value for name, value in os.environ.items() if name != "ROCEMU_DIR"}
        result = subprocess.run(["rdma", "dev"], capture_output=True, text=True, env=environment,
                                check=False)
        self.assertNotIn("rocemu", result.stdout)


if __name__ == "__main__":
    unittest.main()
