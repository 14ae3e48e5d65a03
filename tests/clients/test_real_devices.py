"""Tests machines whose own RDMA devices do not work: programs must not see these devices."""
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from rocemu import ROCEMU, free_port, run, temporary_directory

MACHINE = [sys.executable, str(pathlib.Path(__file__).with_name("machine_with_nics.py"))]
OURS = ["rocemu0", "rocemu1"]
FUNCTION = "/sys/devices/pci0000:e1/0000:e1:00.0"

# Prints as JSON what several ways to list devices show. os.listdir() calls opendir(3) of the C library, and os.open()
# calls open(2).
LOOK = """
import errno, glob, json, os
def listed(path, **options):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return errno.errorcode[error.errno]
def opened(path, **options):
    try:
        os.close(os.open(path, os.O_RDWR, **options))
        return "opened"
    except OSError as error:
        return errno.errorcode[error.errno]
seen = {
    "class": listed("/sys/class/infiniband"),
    "verbs": listed("/sys/class/infiniband_verbs"),
    "two slashes": listed("/sys//class/./infiniband"),
    "nodes": listed("/dev/infiniband"),
    "nodes, two slashes": listed("/dev//infiniband"),
    "of the function": listed("FUNCTION/infiniband"),
    "verbs of the function": listed("FUNCTION/infiniband_verbs"),
    "in the function": listed("FUNCTION/infiniband/mlx5_0"),
    "of the interface": listed("/sys/class/net/eth90/device/infiniband"),
    "in the list": listed("/sys/bus/pci/devices/0000:e1:00.0/infiniband"),
    "shell": sorted(glob.glob("/sys/class/*/m*_0")),
    "walk": sorted(name for _, names, files in os.walk("FUNCTION") for name in names + files if name == "mlx5_0"),
    "by number": opened("/dev/char/231:192"),
}
os.chdir("/sys/class")
seen["relative"] = listed("infiniband")
directory = os.open("FUNCTION", os.O_RDONLY | os.O_DIRECTORY)
seen["of a descriptor"] = opened("infiniband/mlx5_0/node_guid", dir_fd=directory)
print(json.dumps(seen))
""".replace("FUNCTION", FUNCTION)


def why_no_machine():
    """Returns the reason why this process cannot imitate such a machine, or "" if it can."""
    result = run(*MACHINE, "true")
    return "" if result.returncode == 0 else result.stdout


class RealDevices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if why := why_no_machine():
            raise unittest.SkipTest(why)

    def run_there(self, *command, options=(), status=0):
        result = run(*MACHINE, ROCEMU, "run", "--private", *options, "--", *command)
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def look(self, *prefix, options=()):
        return json.loads(self.run_there(*prefix, sys.executable, "-c", LOOK, options=options).splitlines()[-1])

    def test_the_machine_has_broken_devices(self):
        """Without rocemu, a program sees the devices that the other tests expect to be hidden."""
        seen = json.loads(run(*MACHINE, sys.executable, "-c", LOOK, check=True).stdout)
        self.assertEqual(seen["class"], ["mana_0", "mlx5_0"])
        self.assertEqual(seen["walk"], ["mlx5_0"])
        opened = run(*MACHINE, "ibv_devinfo", "-d", "mlx5_0")
        self.assertNotEqual(opened.returncode, 0)
        self.assertIn("Failed to open device", opened.stdout)

    def test_libibverbs_finds_the_emulated_ones_only(self):
        lines = self.run_there("ibv_devices").splitlines()
        self.assertEqual(sorted(line.split()[0] for line in lines[2:]), OURS)

    def test_rdma_netlink_has_the_emulated_ones_only(self):
        if shutil.which("rdma") is None:
            self.skipTest("apt-get install iproute2")
        devices = json.loads(self.run_there("rdma", "-j", "dev"))
        self.assertEqual(sorted(device["ifname"] for device in devices), OURS)

    def assert_hidden(self, seen):
        self.assertEqual(seen["class"], OURS)
        self.assertEqual(seen["two slashes"], OURS)
        self.assertEqual(seen["relative"], OURS)
        self.assertEqual(seen["verbs"], ["abi_version", "uverbs0", "uverbs1"])
        self.assertEqual(seen["nodes"], ["rdma_cm", "uverbs0", "uverbs1"])
        self.assertEqual(seen["nodes, two slashes"], seen["nodes"])
        for way in ("of the function", "verbs of the function", "of the interface", "in the list", "shell", "walk"):
            self.assertEqual(seen[way], [], way)
        self.assertEqual(seen["in the function"], "ENOENT")
        self.assertEqual(seen["of a descriptor"], "ENOENT")

    def test_files_by_the_c_library(self):
        seen = self.look()
        self.assert_hidden(seen)
        self.assertEqual(seen["by number"], "ENOENT")

    def test_files_without_the_c_library(self):
        """Without the preload library, as in static programs and in Go programs."""
        seen = self.look("env", "-u", "LD_PRELOAD", options=["--mount-sysfs"])
        self.assert_hidden(seen)
        # The name leads to /dev/infiniband/uverbs0, which is a socket in the run, and open(2) cannot open a socket.
        self.assertEqual(seen["by number"], "ENXIO")

    def test_both_at_once(self):
        self.assert_hidden(self.look(options=["--mount-sysfs"]))

    def test_netlink_without_the_c_library(self):
        """A filter answers the kernel's interface as a kernel without RDMA would."""
        program = ("import re, socket; "
                   "print(re.search(r'Seccomp_filters:\\s(\\d+)', open('/proc/self/status').read())[1])\n"
                   "try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)\n"
                   "except OSError as error: print(error.errno)\n"
                   "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)")
        command = ["env", "-u", "LD_PRELOAD", sys.executable, "-c", program]
        before = int(self.run_there(*command).split()[0])
        filters, error = map(int, self.run_there(*command, options=["--mount-sysfs"]).split())
        self.assertEqual((filters, error), (before + 1, errno.EPROTONOSUPPORT))

    def test_a_static_program(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("apt-get install gcc libc6-dev")
        source = r"""
#include <dirent.h>
#include <stdio.h>
int main(void) {
  DIR* directory = opendir("/sys/class/infiniband");
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;)
    if (entry->d_name[0] != '.') puts(entry->d_name);
  return 0;
}
"""
        with temporary_directory() as directory:
            program = os.path.join(directory, "list")
            built = subprocess.run([compiler, "-static", "-x", "c", "-", "-o", program], input=source, text=True,
                                   check=False, capture_output=True)
            if built.returncode != 0:
                self.skipTest(built.stderr)
            self.assertEqual(sorted(self.run_there(program).split()), ["mana_0", "mlx5_0"], "it needs the option")
            self.assertEqual(sorted(self.run_there(program, options=["--mount-sysfs"]).split()), OURS)

    def test_a_run_inside_another(self):
        """The PCI functions of the inner run's NIC have the addresses of the outer run's NIC."""
        inner = ["env", "-u", "LD_PRELOAD", ROCEMU, "run", "--private", "--mount-sysfs", "--device", "inner", "--", "env", "-u", "LD_PRELOAD",
                 sys.executable, "-c", LOOK]
        seen = json.loads(self.run_there(*inner, options=["--mount-sysfs"]).splitlines()[-1])
        self.assertEqual((seen["class"], seen["walk"]), (["inner"], []))

    def test_a_connection_works_there(self):
        # The device is named, because libibverbs lists devices in the order of readdir(3), which depends on the kernel.
        pingpong = f"ibv_rc_pingpong -d rocemu0 -g 0 -p {free_port()}"
        self.run_there("sh", "-c", f"{pingpong} & {ROCEMU} wait --listening {pingpong.split()[-1]} && "
                       f"{pingpong} localhost && wait $!", options=["--mount-sysfs"])


class KeptDevices(RealDevices):
    """Tests --keep-real-devices: the machine's devices stay visible, and the numbers of the emulated devices follow
    theirs."""

    OPTION = ("--keep-real-devices",)

    def run_there(self, *command, options=(), status=0):
        return super().run_there(*command, options=(*self.OPTION, *options), status=status)

    def assert_hidden(self, seen):
        self.assertEqual(seen["class"], ["mana_0", "mlx5_0", *OURS])
        self.assertEqual(seen["verbs"], ["abi_version", "uverbs0", "uverbs1", "uverbs2", "uverbs3"])
        self.assertEqual(seen["of the function"], ["mlx5_0"])
        self.assertEqual(seen["of the interface"], ["mlx5_0"])
        self.assertEqual(seen["walk"], ["mlx5_0"])

    def test_libibverbs_finds_the_emulated_ones_only(self):
        """With this option, it finds real and emulated devices: the provider of mlx5 is part of libibverbs, and in
        new versions that of mana is, too."""
        lines = self.run_there("ibv_devices").splitlines()
        names = {line.split()[0] for line in lines[2:]}
        self.assertLessEqual({"mlx5_0", *OURS}, names)
        self.assertIn("guid", self.run_there("ibv_devinfo", "-d", "rocemu0"))

    def test_rdma_netlink_has_the_emulated_ones_only(self):
        self.skipTest("netlink is refused, so that libibverbs reads sysfs")

    def test_files_by_the_c_library(self):
        seen = self.look()
        self.assert_hidden(seen)
        self.assertEqual(seen["nodes"], ["rdma_cm", "uverbs0", "uverbs1", "uverbs2", "uverbs3"])

    def test_files_without_the_c_library(self):
        self.assert_hidden(self.look("env", "-u", "LD_PRELOAD", options=["--mount-sysfs"]))

    def test_netlink_without_the_c_library(self):
        self.skipTest("there is no filter")

    def test_a_static_program(self):
        self.skipTest("as the files without the C library")

    def test_a_run_inside_another(self):
        self.skipTest("the inner run hides them")

    def test_a_device_of_the_same_name_is_refused(self):
        output = self.run_there("true", options=["--device", "mlx5_0"], status=1)
        self.assertIn("this machine has a device mlx5_0, too; give the emulated device another name", output)


if __name__ == "__main__":
    unittest.main()
