"""Tests `rocemu profile`, and the messages about wrong profiles."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from dumps import COMPLETE_CX6DX, COMPLETE_RXE, MLX4, OLD_RXE, as_dump, parse_dump

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ["ROCEMU_BIN"])


def rocemu(*arguments, directory=None):
    return subprocess.run([BIN / "rocemu", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60, check=False, cwd=directory)


class Profiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def error_of(self, text):
        result = rocemu("check", self.write("wrong.yaml", text), directory=self.folder)
        self.assertEqual(result.returncode, 1, result.stdout)
        return result.stderr

    def test_all_that_come_with_rocemu_are_right(self):
        names = [line.split()[0] for line in rocemu("profile", "list").stdout.splitlines()[1:] if line[0] != " "]
        files = {path.stem for path in (HERE.parent.parent / "profiles").glob("*.yaml")}
        self.assertEqual(set(names), files | {"generic"})
        self.assertGreaterEqual(len(names), 11)
        for path in (HERE.parent.parent / "profiles").glob("*.yaml"):
            self.assertEqual(rocemu("check", path).returncode, 0, path)

    def test_what_show_prints_is_a_profile_with_the_same_values(self):
        for name in ("generic", "mlx5-cx6dx", "bnxt-re", "thunderbolt"):
            shown = rocemu("profile", "show", name).stdout
            self.write("same.yaml", shown)
            result = rocemu("profile", "diff", name, "same.yaml", directory=self.folder)
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_diff_lists_the_values_that_differ(self):
        result = rocemu("profile", "diff", "generic", "irdma-e810")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^qp\.max_inline_data +1024 +101")
        self.assertNotIn("port.max_mtu", result.stdout)

    def test_record_makes_a_profile_of_a_dump_that_shows_the_same(self):
        for name, lines in (("mlx5_3", COMPLETE_CX6DX), ("rxe0", COMPLETE_RXE), ("mlx4_2", MLX4)):
            dump = self.write("dump.txt", as_dump(name, lines))
            result = rocemu("profile", "record", dump, directory=self.folder)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.write("mine.yaml", result.stdout)
            shown = rocemu("run", "--private", "--profile", "mine.yaml", "--", "ibv_devinfo", "-v",
                           directory=self.folder)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            printed = parse_dump(shown.stdout)
            for line, value in lines.items():
                if line != "GID types":
                    self.assertEqual(printed.get(line), value, f"{name}: {line}")

    def test_record_reads_sysfs_of_the_machine_too(self):
        """Tests the keys for which `ibv_devinfo -v` has no lines, on machines that the test simulates."""
        for name in ("mlx5-cx6dx", "irdma-e810", "bnxt-re", "mlx4-cx3pro"):
            result = rocemu("run", "--private", "--profile", name, "--device", "nic7=127.0.0.1", "--", BIN / "rocemu",
                            "profile", "record", "--device", "nic7")
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.write("mine.yaml", result.stdout)
            compared = rocemu("profile", "diff", name, "mine.yaml", directory=self.folder).stdout
            for line in compared.splitlines():
                # The name of the device was an argument, and how create_qp and post behave cannot be read anywhere, so
                # these may differ.
                self.assertRegex(line, r"^(key|identity\.(name|node_desc)|qp\.|post\.|mr\.|verbs\.|summary|name|"
                                       r"gids\.link_local_first)", name)

    def test_record_takes_a_directory_in_place_of_sysfs(self):
        nic = self.folder / "class" / "mlx5_3"
        (nic / "device").mkdir(parents=True)
        (self.folder / "drivers" / "mlx5_core").mkdir(parents=True)
        (nic / "device" / "driver").symlink_to(self.folder / "drivers" / "mlx5_core")
        (nic / "device" / "vendor").write_text("0x15b3\n")
        (nic / "device" / "device").write_text("what\n")
        (nic / "node_desc").write_text('a "node"\\\n')
        (nic / "ports" / "1" / "gid_attrs" / "types").mkdir(parents=True)
        for index, kind in enumerate(("IB/RoCE v1", "RoCE v2", "RoCE v2")):
            (nic / "ports" / "1" / "gid_attrs" / "types" / str(index)).write_text(kind + "\n")
        dump = self.write("dump.txt", as_dump("mlx5_3", COMPLETE_CX6DX))
        result = rocemu("profile", "record", "--sysfs", "class", dump, directory=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.write("mine.yaml", result.stdout)
        shown = rocemu("profile", "show", "mine.yaml", directory=self.folder).stdout
        for line in ('driver: "mlx5_core"', 'node_desc: "a \\"node\\"\\\\"', "vendor: 0x15b3", "hca_type: null",
                     "types: [RoCE v1, RoCE v2]"):
            self.assertIn(line, shown)
        self.assertIn("vendor: 0x15b3  # device/vendor\n", result.stdout)

    def test_record_refuses_a_device_with_a_file(self):
        result = rocemu("profile", "record", "--device", "mlx5_0", "dump.txt")
        self.assertEqual(result.returncode, 2)
        self.assertIn("leave out FILE", result.stderr)
        self.assertEqual(rocemu("profile", "record", "--device", "a;b").returncode, 2)

    def test_record_reads_the_form_of_an_old_ibv_devinfo(self):
        result = rocemu("profile", "record", self.write("old.txt", OLD_RXE), directory=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("  max_qp: 65536  # 10\n", result.stdout)
        self.assertIn("  name: \"rxe%d\"", result.stdout)
        self.assertIn("  board_id: null", result.stdout)
        self.assertIn("  max_msg_sz: 0x800000  ", result.stdout)
        self.assertNotIn("types:", result.stdout)

    def test_record_reports_lines_that_it_does_not_know(self):
        text = as_dump("mlx5_0", MLX4) + "\tdevice_cap_exp_flags:\t0x520DF8F100000000\n"
        result = rocemu("profile", "record", self.write("ofed.txt", text), directory=self.folder)
        self.assertEqual(result.returncode, 0)
        self.assertIn("cannot interpret: line 47: device_cap_exp_flags:", result.stderr)

    def test_record_refuses_what_is_no_dump(self):
        result = rocemu("profile", "record", self.write("no.txt", "hello\n"), directory=self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no.txt: there is no line 'hca_id:'", result.stderr)

    def test_an_unknown_key_is_an_error_with_its_place(self):
        self.assertIn("wrong.yaml:2:3: 'device' has no 'max_qps'; did you mean 'max_qp'?",
                      self.error_of("device:\n  max_qps: 3\n"))
        self.assertIn("wrong.yaml:2:1: a profile has no key 'ports'; its keys are ",
                      self.error_of("summary: x\nports:\n  max_mtu: 4096\n"))

    def test_a_contradiction_is_an_error(self):
        self.assertIn("wrong.yaml:2:20: max_inline_data 5000 is more than rocemu's limit, 1024",
                      self.error_of("qp:\n  max_inline_data: 5000\n"))
        self.assertIn("wrong.yaml:3:17: least_inline 60 is more than max_inline_data 16",
                      self.error_of("qp:\n  max_inline_data: 16\n  least_inline: 60\n"))
        self.assertIn("need 2 entries of the GID table, but gid_tbl_len is 1",
                      self.error_of("port:\n  gid_tbl_len: 1\ngids:\n  types: [RoCE v1, RoCE v2]\nqp:\n  types: [RC]\n"))
        self.assertIn("'opcodes' has atomics, but atomic_cap is NONE",
                      self.error_of("device:\n  atomic_cap: NONE\npost:\n  opcodes: [SEND, ATOMIC_FETCH_AND_ADD]\n"))

    def test_names_that_are_no_file_names_are_errors(self):
        """The names become names of files and links in sysfs."""
        for name in ("../../x%d", "a/b%d", ".x%d", "a b%d", "x", "%d" + "y" * 60, "x%d\\n"):
            self.assertIn("is not a pattern for names such as mlx5_%d", self.error_of(f'identity:\n  name: "{name}"\n'))
        for key in ("driver", "module"):
            self.assertIn("is not the name of a driver or module", self.error_of(f"identity:\n  {key}: ../x\n"))

    def test_tables_have_limits(self):
        self.assertIn("gid_tbl_len 1025 is more than rocemu's limit, 1024", self.error_of("port:\n  gid_tbl_len: 1025\n"))
        self.assertIn("a device has 1 to 4 ports", self.error_of("device:\n  phys_port_cnt: 5\n"))
        self.assertIn("each type of GID is allowed only once", self.error_of("gids:\n  types: [RoCE v2, RoCE v2]\n"))

    def test_a_file_with_any_one_section_is_a_profile(self):
        for text in ("post: {most_posted: 3}", "port: {max_vl_num: 2}", "gids: {types: [RoCE v1]}", "pci: {vendor: 1}",
                     "mr: {access: []}", "verbs: {alloc_mw: ENOSYS}", "summary: mine"):
            result = rocemu("check", self.write("one.yaml", text + "\n"), directory=self.folder)
            self.assertEqual((result.returncode, result.stdout.startswith("one.yaml: a profile")), (0, True), text)

    def test_record_reads_spaces_for_tabs_and_other_dress(self):
        dump = as_dump("mlx5_0", COMPLETE_CX6DX)
        wanted = rocemu("profile", "record", self.write("d.txt", dump), directory=self.folder).stdout
        for dressed in (dump.expandtabs(8), "\ufeff" + dump, dump.replace("\n", "\r\n")):
            result = rocemu("profile", "record", self.write("d.txt", dressed), directory=self.folder)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, wanted, ""))
        odd = rocemu("profile", "record", self.write("a: #b.txt", dump), directory=self.folder)
        self.assertEqual(odd.returncode, 0, odd.stderr)

    def test_record_of_a_dump_that_ends_early_is_a_profile(self):
        text = as_dump("mlx5_0", COMPLETE_CX6DX)
        for end in range(0, len(text), 97):
            if text[:end].count("\n") == 0:
                continue
            result = rocemu("profile", "record", self.write("d.txt", text[:end]), directory=self.folder)
            self.assertEqual(result.returncode, 0, (end, result.stderr))

    def test_record_reports_a_link_layer_that_is_none_of_roce(self):
        text = as_dump("rdma_en0", {"fw_ver": "1", "link_layer": "Thunderbolt"})
        result = rocemu("profile", "record", self.write("d.txt", text), directory=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("cannot interpret: line 3: link_layer:", result.stderr)

    def test_wrong_values_say_what_is_allowed(self):
        self.assertIn("expected a number from 0 to 4294967295, found 'many'",
                      self.error_of("device:\n  max_qp: many\n"))
        self.assertIn("'RoCE v3' is not one of the allowed names", self.error_of("qp: {types: [RC]}\ngids:\n  types: [RoCE v3]\n"))
        self.assertIn("there is no errno value 'EFOO'",
                      self.error_of("device:\n  max_qp: 3\nverbs:\n  alloc_mw: EFOO\n"))


if __name__ == "__main__":
    unittest.main()
