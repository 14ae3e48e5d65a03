"""Tests of programs that read sysfs: tools, and libraries that choose NICs by topology."""
import os
import re
import unittest

from rocemu import BIN, free_port, pingpong_pair, rocemu_run, run, temporary_directory

EIGHT = ["--topology", "8-rails"]
# The scripts ibdev2netdev and show_gids of MLNX_OFED, without the parts that do not read sysfs.
IBDEV2NETDEV = r"""
for device in /sys/class/infiniband/*; do
  for netdev in $device/device/net/*; do
    port=$(($(cat $netdev/dev_port) + 1)); name=$(basename $netdev)
    state=Down; [ "$(cat $device/ports/$port/state)" = "4: ACTIVE" ] && state=Up
    echo "$(basename $device) port $port ==> $name ($state)"
  done
done
"""
SHOW_GIDS = r"""
for device in /sys/class/infiniband/*; do
  for gid in $(ls $device/ports/1/gids | sort -n); do
    value=$(cat $device/ports/1/gids/$gid)
    [ $value = 0000:0000:0000:0000:0000:0000:0000:0000 ] && continue
    type=$(cat $device/ports/1/gid_attrs/types/$gid)
    echo "$(basename $device) 1 $gid $value $type $(cat $device/ports/1/gid_attrs/ndevs/$gid)"
  done
done
"""


class Tools(unittest.TestCase):
    def output(self, *command, options=()):
        result = rocemu_run(*command, options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_lstopo_shows_the_devices_in_their_pci_functions(self):
        output = self.output("lstopo-no-graphics", "--whole-io", "--of", "console")
        for device in ("rocemu0", "rocemu1"):
            self.assertRegex(output, rf'PCI ace0:0\d:00.0 \(Ethernet\)\n(.*Net.*\n)?'
                                     rf'\s+OpenFabrics "{device}"')

    def test_lstopo_shows_switches(self):
        output = self.output("lstopo-no-graphics", "--whole-io", "--of", "console", options=EIGHT)
        self.assertEqual(len(re.findall(r'OpenFabrics "mlx5_\d"', output)), 8, output)
        self.assertGreaterEqual(output.count("PCIBridge"), 4 + 4 + 8)

    def test_ibstat(self):
        output = self.output("ibstat", "rocemu0")
        for expected in ("State: Active", "Physical state: LinkUp", "Rate: 100",
                         "Link layer: Ethernet"):
            self.assertIn(expected, output)

    def test_rdma_link_and_statistic(self):
        output = self.output("sh", "-c", " ".join(map(str, pingpong_pair("-n", "100", "-s", "64")))
                             + " >/dev/null && rdma link && rdma statistic show link rocemu0/1")
        self.assertRegex(output, r"link rocemu0/1 state ACTIVE physical_state LINK_UP netdev \w+")
        self.assertRegex(output, r"sent_pkts 400\s+rcvd_pkts 400")
        self.assertRegex(output, r"rx_write_requests 0")

    def test_ibdev2netdev(self):
        output = self.output("bash", "-c", IBDEV2NETDEV)
        self.assertRegex(output, r"rocemu0 port 1 ==> \w+ \(Up\)\nrocemu1 port 1 ==> \w+ \(Up\)")

    def test_show_gids(self):
        output = self.output("bash", "-c", SHOW_GIDS)
        self.assertIn("rocemu0 1 0 0000:0000:0000:0000:0000:ffff:7f00:0001 RoCE v2 lo", output)
        self.assertIn("rocemu1 1 0 0000:0000:0000:0000:0000:ffff:7f00:0002 RoCE v2 lo", output)

    def test_empty_entries_of_the_gid_table_are_invalid(self):
        """As in Linux, reading the type of an empty entry fails with EINVAL."""
        program = """
import errno
for what in ("types", "ndevs"):
    try:
        open(f"/sys/class/infiniband/rocemu1/ports/1/gid_attrs/{what}/15").read()
    except OSError as error:
        print(what, errno.errorcode[error.errno])
"""
        self.assertEqual(self.output("python3", "-c", program), "types EINVAL\nndevs EINVAL\n")

    def test_counters_are_live(self):
        program = f"""
import subprocess
from pathlib import Path
def read():
    port = Path("/sys/class/infiniband/rocemu0/ports/1")
    return [int((port / name).read_text()) for name in
            ("counters/port_xmit_packets", "hw_counters/sent_pkts", "counters/port_rcv_data")]
before = read()
subprocess.run({[str(word) for word in pingpong_pair("-n", "100", "-s", "64")]!r}, check=True,
               stdout=subprocess.DEVNULL)
print(*before, *read())
"""
        packets, sent, words, packets_after, sent_after, words_after = map(
            int, self.output("python3", "-c", program).split())
        self.assertEqual((packets, sent, words), (0, 0, 0))
        self.assertEqual((packets_after, sent_after), (400, 400))
        self.assertGreater(words_after * 4, 200 * 64)

    def test_node_exporter(self):
        """This is a Go program. It makes direct system calls, so the path must be given as an
        option."""
        port = free_port()
        script = (f"prometheus-node-exporter --web.listen-address=127.0.0.1:{port} "
                  "--path.sysfs=$ROCEMU_DIR/sys --collector.disable-defaults "
                  "--collector.infiniband 2>/dev/null & exporter=$!; "
                  "cat /sys/class/infiniband/rocemu0/ports/1/counters/port_xmit_data >/dev/null; "
                  f"until curl -sf http://127.0.0.1:{port}/metrics; do sleep 0.05; done; "
                  "kill $exporter")
        output = self.output("bash", "-c", script)
        self.assertRegex(output, r'node_infiniband_info\{board_id="rocemu",device="rocemu0"')
        self.assertRegex(output, r'node_infiniband_state_id\{device="rocemu0",port="1"\} 4')
        self.assertRegex(output, r'node_infiniband_rate_bytes_per_second\{.*\} 1.25e\+10')
        self.assertRegex(output, r'node_infiniband_port_data_transmitted_bytes_total\{.*\} 0')


class WithoutTheCLibrary(unittest.TestCase):
    """Tests accesses that the shim does not see, as in Go programs. Here they are made without the
    shim."""

    def read(self, *command):
        result = rocemu_run("env", "-u", "LD_PRELOAD", *command, options=["--mount-sysfs"])
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_sysfs_can_be_mounted(self):
        program = """
import os
print(*sorted(os.listdir("/sys/class/infiniband")))
print(os.path.realpath("/sys/class/infiniband/rocemu0/../.."))
print(open("/sys/class/infiniband/rocemu0/ports/1/state").read().strip())
try:
    open("/sys/class/infiniband/rocemu0/ports/1/gid_attrs/types/15").read()
except OSError as error:
    print(error.strerror)
"""
        self.assertEqual(self.read("python3", "-c", program).splitlines(),
                         ["rocemu0 rocemu1", "/sys/devices/pciace0:00/ace0:00:00.0/ace0:01:00.0",
                          "4: ACTIVE", "Invalid argument"])

    def test_what_is_the_machines_stays(self):
        program = """
import os, json
def listed(path): return sorted(os.listdir(path)) if os.path.isdir(path) else []
print(json.dumps([listed("/sys/class/net"), listed("/sys/devices/system/cpu"),
                  [open(f"/sys/class/net/{name}/mtu").read() for name in listed("/sys/class/net")],
                  [name for name in listed("/sys/bus/pci/devices") if name[:4] != "ace0"]]))
"""
        before = run("python3", "-c", program).stdout
        self.assertEqual(self.read("python3", "-c", program), before)


class Topology(unittest.TestCase):
    def choose(self, *options):
        result = rocemu_run(f"{BIN}/choose_rails", options=options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout.splitlines()

    def test_each_numa_node_has_its_rails(self):
        lines = self.choose(*EIGHT)
        self.assertEqual(lines[-2:], ["node 0: mlx5_0 mlx5_1 mlx5_2 mlx5_3",
                                      "node 1: mlx5_4 mlx5_5 mlx5_6 mlx5_7"])
        switch = {line.split()[0]: line.split()[4] for line in lines[:8]}
        for first in range(0, 8, 2):
            self.assertEqual(switch[f"mlx5_{first}"], switch[f"mlx5_{first + 1}"])
        self.assertEqual(len(set(switch.values())), 4)

    def test_without_a_file_no_node_is_said(self):
        self.assertEqual(self.choose()[-1], "node -1: rocemu0 rocemu1")

    def test_of_a_file(self):
        with temporary_directory() as directory:
            path = os.path.join(directory, "machine.yaml")
            with open(path, "w") as file:
                file.write("nodes:\n- node: 3\n  cpus: 0\n  switches:\n"
                           "  - rails: [{device: here, addresses: [127.0.0.7]}]\n")
            lines = self.choose("--topology", path)
            self.assertEqual(lines[-1], "node 3: here")
            self.assertRegex(lines[0], "cpus 0$")

    def test_flat_is_as_rxe(self):
        program = ("import os; print(os.path.realpath('/sys/class/infiniband/rocemu0'), "
                   "os.path.exists('/sys/class/infiniband/rocemu0/device'))")
        result = rocemu_run("python3", "-c", program, options=["--topology", "flat"])
        self.assertEqual(result.stdout, "/sys/devices/virtual/infiniband/rocemu0 False\n")


if __name__ == "__main__":
    unittest.main()
