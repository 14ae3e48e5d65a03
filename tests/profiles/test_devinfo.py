"""Compares `ibv_devinfo -v` with each profile with the public dump from which the profile was made (dumps.py): each
line of the dump has its value, or is listed with another source."""
import os
import pathlib
import re
import subprocess
import unittest

from dumps import DUMPS, NOT_EMULATED, parse_dump

BIN = pathlib.Path(os.environ["ROCEMU_BIN"])


def run(profile, *command):
    result = subprocess.run([BIN / "rocemu", "run", "--private", "--profile", profile, "--", *command],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


class Devinfo(unittest.TestCase):
    maxDiff = None

    def test_prints_what_the_real_nic_printed(self):
        for dump in DUMPS:
            shown = parse_dump(run(dump["profile"], "ibv_devinfo", "-v"))
            for line, value in dump["lines"].items():
                if line == "GID types":
                    continue
                expected, _ = dump["differs"].get(line, (value, None))
                with self.subTest(profile=dump["profile"], line=line):
                    self.assertEqual(shown.get(line), expected)

    def test_has_no_line_that_a_complete_dump_lacks(self):
        for dump in DUMPS:
            if not dump.get("complete"):
                continue
            shown = parse_dump(run(dump["profile"], "ibv_devinfo", "-v"))
            self.assertLessEqual(set(shown) - NOT_EMULATED, set(dump["lines"]), dump["profile"])

    def test_shows_the_types_of_gids_in_the_order_of_the_dump(self):
        for dump in DUMPS:
            types = dump["lines"].get("GID types")
            if types is None:
                continue
            shown = parse_dump(run(dump["profile"], "ibv_devinfo", "-v"))
            self.assertEqual(shown["GID types"][:len(types)], types, dump["profile"])

    def test_every_profile_is_named_as_its_driver_names_devices(self):
        for profile, name in (("mlx5-cx6dx", "mlx5_0"), ("irdma-e810", "irdma0"), ("bnxt-re", "bnxt_re0"),
                              ("erdma", "erdma_0"), ("mana", "mana_0"), ("thunderbolt", "rdma_en0")):
            self.assertIn(f"hca_id:\t{name}\n", run(profile, "ibv_devinfo"))


class OtherReaders(unittest.TestCase):
    """Tests that sysfs and netlink report the same properties of the device as verbs."""

    def test_sysfs_has_the_identity(self):
        script = ("import os, sys\n"
                  "d = '/sys/class/infiniband/mlx5_0/'\n"
                  "for f in ('hca_type', 'board_id', 'fw_ver', 'node_type', 'device/vendor', 'device/device'):\n"
                  "    print(open(d + f).read().strip())\n"
                  "print(os.path.basename(os.readlink(d + 'device/driver')))\n")
        self.assertEqual(run("mlx5-cx6dx", "/usr/bin/python3", "-c", script).split("\n")[:-1],
                         ["MT4125", "MT_0000000359", "22.36.1010", "1: CA", "0x15b3", "0x101d", "mlx5_core"])

    def test_drivers_without_hca_type_have_no_such_file(self):
        script = "import os; print(sorted(os.listdir('/sys/class/infiniband/irdma0')))"
        names = run("irdma-e810", "/usr/bin/python3", "-c", script)
        self.assertNotIn("hca_type", names)
        self.assertNotIn("board_id", names)
        self.assertIn("'fw_ver'", names)

    def test_ibstat_prints_the_vendor_as_bnxt_re_s_hardware_version(self):
        """openucx/ucx#11048."""
        output = run("bnxt-re", "cat", "/sys/class/infiniband/bnxt_re0/hw_rev",
                     "/sys/class/infiniband/bnxt_re0/hca_type", "/sys/class/infiniband/bnxt_re0/ports/1/rate")
        self.assertEqual(output, "0x14e4\nBroadcom NetXtreme-C/E RoCE Driver HCA\n100 Gb/sec (4X EDR)\n")

    def test_rdma_names_device_and_firmware(self):
        if not pathlib.Path("/usr/bin/rdma").exists() and not pathlib.Path("/sbin/rdma").exists():
            self.skipTest("iproute2 has no rdma here")
        output = run("mlx5-cx6dx", "rdma", "dev")
        self.assertRegex(output, r"mlx5_0: node_type ca (protocol roce )?fw 22\.36\.1010")

    def test_rdma_shows_both_ports_of_a_card(self):
        if not pathlib.Path("/usr/bin/rdma").exists() and not pathlib.Path("/sbin/rdma").exists():
            self.skipTest("iproute2 has no rdma here")
        links = re.findall(r"link (\S+) state (\S+)", run("mlx4-cx3pro", "rdma", "link"))
        self.assertEqual(links, [("mlx4_0/1", "ACTIVE"), ("mlx4_0/2", "DOWN"), ("mlx4_1/1", "ACTIVE"),
                                 ("mlx4_1/2", "DOWN")])

    def test_a_card_with_two_ports_has_the_second_down(self):
        output = run("mlx4-cx3pro", "ibv_devinfo")
        states = re.findall(r"state:\s+(\S+)", output)
        self.assertEqual(states[:2], ["PORT_ACTIVE", "PORT_DOWN"])


if __name__ == "__main__":
    unittest.main()
