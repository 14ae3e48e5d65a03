"""Tests programs that rely on properties that some NICs lack (programs/NAME.c): each program fails with the profiles
of those NICs and works with the others. Its portable twin works with all profiles that have RC."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
ACTION = pathlib.Path(__file__).resolve().parents[2] / "action.yml"
WITH_RC = ("generic", "rxe", "mlx5-cx5", "mlx5-cx6dx", "mlx4-cx3pro", "irdma-e810", "bnxt-re", "qedr", "hns-hip09",
           "erdma", "mana")
# For each program, the profiles with which it fails, and its message. Programs that need RC run only with profiles that
# have RC.
FAILURES = {
    "inline_256": {
        "irdma-e810": "ibv_create_qp: asked for 256 bytes of inline data, the device has 101",
        "bnxt-re": "ibv_create_qp: asked for 256 bytes of inline data, the device has 96",
        "qedr": "ibv_create_qp: asked for 256 bytes of inline data, the device has 128",
        "erdma": "ibv_create_qp: asked for 256 bytes of inline data, the device has 96",
        "mana": "ibv_create_qp: asked for 256 bytes of inline data, the device has 0",
    },
    "inline_unasked": {
        "bnxt-re": "granted 0 bytes; failed: ibv_post_send of 16 bytes inline: Cannot allocate memory",
        "mana": "granted 0 bytes; failed: ibv_post_send of 16 bytes inline: Invalid argument",
    },
    "inline_capped": {"hns-hip09": "failed: ibv_post_send inline: Invalid argument"},
    "send_with_inv": {
        "bnxt-re": "SEND_WITH_INV completed with LOC_QP_OP_ERR on bnxt_re0",
        "mana": None,  # the profile does not advertise MEM_MGT_EXTENSIONS, so the program does not try
    },
    "errno_of_create_qp": {"bnxt-re": "ibv_create_qp returned NULL and left errno 0: Success"},
    "memory_window": {"bnxt-re": "ibv_alloc_mw: the driver does not have this verb"},
    "lid_is_zero": {"irdma-e810": "the port is one of InfiniBand", "thunderbolt": "the port is one of InfiniBand"},
    "unknown_opcode": {"bnxt-re": "posted, with result -22"},
    "two_receive_sges": {"erdma": "ibv_create_qp: asked for 2 receive SGEs, the device has 1"},
    "send_only_qp": {
        "mlx4-cx3pro": "a QP without SRQ needs a receive WR on this device",
        "erdma": "a QP without SRQ needs a receive WR on this device",
    },
    "shared_receives": {
        "irdma-e810": "ibv_create_srq: the driver does not have this verb",
        "erdma": "ibv_create_srq: the driver does not have this verb",
        "mana": "ibv_create_srq: the driver does not have this verb",
    },
    "lkey_for_rkey": {"generic": "the WRITE completed with remote access error",
                      "mana": "it names the L_Key of a region where its R_Key belongs"},
    "large_cq": {"rxe": "ibv_create_cq: asked for 65536 CQEs, the device has 32767"},
    "datagrams": {
        "qedr": "ibv_create_qp: the device has no QPs of type UD",
        "erdma": "ibv_create_qp: the device has no QPs of type UD",
        "mana": "ibv_create_qp: the device has no QPs of type UD",
        "thunderbolt": "ibv_create_qp: the device has no QPs of type UD",
    },
    "many_qps": {"thunderbolt": "QP 11: failed: ibv_create_qp: Device or resource busy"},
    "deep_receives": {"thunderbolt": "receive 64: failed: ibv_post_recv: Cannot allocate memory"},
}
# Programs that do not use RC also run with these profiles.
WITHOUT_RC = {"lid_is_zero": ("thunderbolt", "efa"), "datagrams": ("thunderbolt", "efa"),
              "many_qps": ("thunderbolt", "efa"), "deep_receives": ("thunderbolt",), "large_cq": ("thunderbolt", "efa")}


def run(program, profile, *options):
    command = [BIN / "rocemu", "run", "--private", "--profile", profile, *options, "--", BIN / "profiles" / program]
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=60, check=False)


class Programs(unittest.TestCase):
    def test_fail_on_the_nics_that_lack_something(self):
        for program, failures in FAILURES.items():
            for profile in WITH_RC + WITHOUT_RC.get(program, ()):
                with self.subTest(program=program, profile=profile):
                    result = run(program, profile)
                    message = failures.get(profile)
                    self.assertEqual(result.returncode, 1 if message else 0, result.stdout)
                    self.assertIn(message or "", result.stdout)

    def test_portable_twins_work_on_all(self):
        for program in FAILURES:
            for profile in WITH_RC + WITHOUT_RC.get(program, ()):
                with self.subTest(program=program, profile=profile):
                    result = run(program + "_portable", profile)
                    self.assertEqual(result.returncode, 0, result.stdout)

    def test_the_index_of_a_gid_depends_on_the_nic(self):
        """mlx5 lists each address with RoCE v1 and then with v2, the link-local address first; irdma lists v2 only."""
        for profile, status in (("mlx5-cx6dx", 0), ("mlx4-cx3pro", 0), ("qedr", 0), ("irdma-e810", 1), ("rxe", 1)):
            with self.subTest(profile=profile):
                device = ("--device", "nic0=127.0.0.1")
                self.assertEqual(run("gid_index_3", profile, *device).returncode, status)
                self.assertEqual(run("gid_index_3_portable", profile, *device).returncode, 0)


class NothingPosted(unittest.TestCase):
    MESSAGE = "rocemu: nothing was posted: the command created CQs or QPs on"

    def test_is_reported_of_a_program_that_falls_back_to_tcp(self):
        result = run("tcp_instead", "irdma-e810")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(self.MESSAGE + " irdma0 and ended without a work request", result.stdout)
        self.assertNotIn(self.MESSAGE, run("tcp_instead_portable", "irdma-e810").stdout)

    def test_fails_with_strict(self):
        self.assertEqual(run("tcp_instead", "irdma-e810", "--strict").returncode, 1)
        self.assertEqual(run("tcp_instead_portable", "irdma-e810", "--strict").returncode, 0)

    def test_is_not_reported_if_a_fault_may_be_why(self):
        rule = "{name: full, on: verb, verb: create_qp, do: {errno: ENOMEM}}"
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "full.yaml"
            scenario.write_text(f"rules: [{rule}]\n")
            result = run("tcp_instead", "generic", "--strict", "--scenario", str(scenario))
            self.assertEqual((result.returncode, self.MESSAGE in result.stdout), (0, False), result.stdout)

    def test_is_not_reported_of_programs_that_only_look_and_of_those_that_post(self):
        rping = "rping -s -a 127.0.0.1 -C 3 & until rping -c -a 127.0.0.1 -C 3; do sleep 0.1; done; wait"
        looks = "import pyverbs.device as d; c = d.Context(name='rocemu0'); c.query_device(); c.query_port(1)"
        for command in (["ibv_devinfo", "-v"], ["ibv_devices"], ["true"], ["sh", "-c", rping],
                        ["/usr/bin/python3", "-c", looks]):
            with self.subTest(command=command):
                result = subprocess.run([BIN / "rocemu", "run", "--private", "--", *command], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
                self.assertNotIn(self.MESSAGE, result.stdout)


class AllProfiles(unittest.TestCase):
    def test_make_a_table(self):
        result = run("inline_256", "all")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^generic +ok")
        self.assertRegex(result.stdout, r"(?m)^mlx5-cx6dx +ok")
        self.assertRegex(re.sub(r"\s+", " ", result.stdout),
                         r"irdma-e810 FAILED inline_256: ibv_create_qp: asked for 256 bytes of inline data, the device "
                         r"has 101")

    def test_tell_of_a_program_that_posts_nothing(self):
        result = run("tcp_instead", "all")
        self.assertRegex(result.stdout, r"(?m)^generic +ok")
        self.assertRegex(result.stdout, r"(?m)^irdma-e810 +NOTHING POSTED")


    def test_take_any_status_of_the_command_for_its_own(self):
        for status in (2, 3, 126, 127):
            command = [BIN / "rocemu", "run", "--profile", "all", "--", "sh", "-c", f"echo why; exit {status}"]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120,
                                    check=False)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(re.findall(r"(?m)^\S+ +FAILED +why$", result.stdout)), len(WITH_RC) + 2, result.stdout)

    def test_run_nothing_for_a_command_that_does_not_exist(self):
        result = subprocess.run([BIN / "rocemu", "run", "--profile", "all", "--", "no-such-program"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, "FAILED" in result.stdout), (127, False), result.stdout)

    def test_refuse_files_of_one_run(self):
        result = run("inline_256", "all", "--record", "somewhere")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--profile all makes several runs; leave out --record", result.stdout)


class Action(unittest.TestCase):
    def run_step(self, program):
        try:
            import yaml
        except ImportError as error:
            raise unittest.SkipTest(f"{error}: apt-get install python3-yaml") from error
        steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
        script, = [step["run"] for step in steps if step.get("if") == "inputs.profile != ''"]
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}",
                       "ROCEMU_ACTION_COMMAND": str(BIN / "profiles" / program)}
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)

    def test_fails_if_the_command_does_on_one_nic(self):
        result = self.run_step("large_cq")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^rxe +FAILED +large_cq: ibv_create_cq: asked for 65536 CQEs")
        self.assertEqual(self.run_step("large_cq_portable").returncode, 0)


class Options(unittest.TestCase):
    def test_devices_of_one_run_have_profiles_of_their_own(self):
        result = subprocess.run(
            [BIN / "rocemu", "run", "--private", "--device", "mlx5_0=127.0.0.1,profile=mlx5-cx6dx", "--device",
             "other=127.0.0.2", "--profile", "irdma-e810", "--", "ibv_devinfo"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(re.findall(r"vendor_part_id:\s+(\d+)", result.stdout), ["4125", "5522"], result.stdout)

    def names_of(self, folder, *options):
        result = subprocess.run([BIN / "rocemu", "run", "--private", *options, "--", BIN / "rocemu", "show", "--json"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                                cwd=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [device["profile"] for device in json.loads(result.stdout)["fabric"]["devices"]]

    def test_files_are_found_from_the_working_directory_and_from_a_topology(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "mine.yaml").write_text("device: {max_qp: 7}\n")
            (pathlib.Path(folder) / "generic.yaml").write_text("identity: {hca_type: null}\n")
            (pathlib.Path(folder) / "mana").write_text("hello\n")  # not a profile, although it has the name of one
            (pathlib.Path(folder) / "deep").mkdir()
            (pathlib.Path(folder) / "deep" / "t.yaml").write_text(
                "nodes:\n- node: 0\n  switches:\n  - rails: [{device: a, profile: ../mine.yaml}, {device: b, profile: generic}]\n")
            self.assertEqual(self.names_of(folder, "--profile", "mine.yaml"), ["mine"] * 2)
            self.assertEqual(self.names_of(folder, "--profile", "mana"), ["mana"] * 2)
            self.assertEqual(self.names_of(folder, "--profile", "./generic.yaml"), ["generic"] * 2)
            self.assertEqual(self.names_of(folder, "--device", "a=127.0.0.1,profile=./mine.yaml"), ["mine"])
            self.assertEqual(self.names_of(folder, "--profile", "mana", "--topology", "deep/t.yaml"), ["mine", "generic"])

    def test_a_file_with_the_name_of_the_built_in_one_is_another(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "generic.yaml"
            file.write_text("identity: {name: foo%d, hca_type: null}\n")
            result = subprocess.run([BIN / "rocemu", "run", "--private", "--profile", file, "--", "ibv_devinfo", "-l"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
            self.assertIn("foo0", result.stdout)

    def test_devices_of_a_topology_file_have_profiles(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "machine.yaml"
            file.write_text("nodes:\n- node: 0\n  switches:\n  - rails: [{device: a, profile: mlx5-cx5}, {device: b}]\n")
            command = [BIN / "rocemu", "run", "--private", "--topology", file, "--profile", "qedr", "--", "ibv_devinfo"]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                                    check=False)
            self.assertEqual(re.findall(r"vendor_part_id:\s+(\d+)", result.stdout), ["4119", "32880"], result.stdout)
            file.write_text(file.read_text().replace("mlx5-cx5", "mlx6"))
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                                    check=False)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn("machine.yaml: there is no profile 'mlx6'", result.stdout)

    def test_show_and_doctor_name_the_profile(self):
        devices = ("--device", "mlx5_0=127.0.0.1,profile=mlx5-cx6dx", "--device", "a=127.0.0.2", "--device",
                   "b=127.0.0.3")
        for command, lines in ((("show",), ["mlx5_0  port ACTIVE  MTU 1024  PDs 0  AHs 0  profile mlx5-cx6dx\n",
                                            "\na  port ACTIVE  MTU 4096  PDs 0  AHs 0\n"]),
                               (("doctor",), ["NIC: this run has mlx5_0 of profile mlx5-cx6dx; a, b of profile generic\n"])):
            result = subprocess.run([BIN / "rocemu", "run", "--private", *devices, "--", BIN / "rocemu", *command],
                                    stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            for line in lines:
                self.assertIn(line, result.stdout)

    def test_an_unknown_profile_is_an_error_that_lists_them(self):
        result = run("inline_256", "mlx6")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no profile 'mlx6'; use a file, or one of generic, ", result.stdout)

    def test_a_recording_replays_with_its_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run"
            run("tcp_instead", "irdma-e810", "--lockstep", "--record", str(recording))
            result = subprocess.run([BIN / "rocemu", "replay", recording], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
