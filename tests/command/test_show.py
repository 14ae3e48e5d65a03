"""Tests `rocemu show`: how it finds the daemon, and both forms of its output."""
import json
import subprocess
import unittest

from support import ROCEMU, CommandTest


class Show(CommandTest):
    def start_run(self, *options):
        process = self.start("run", *options, "--", "sh", "-c", "echo $ROCEMU_DIR; exec sleep 60")
        return process, process.stdout.readline().strip()

    def stop(self, *processes):
        for process in processes:
            process.terminate()
            process.communicate()

    def test_json_has_the_whole_state(self):
        result = self.rocemu("run", "--", ROCEMU, "show", "--json")
        state = json.loads(result.stdout)
        self.assertEqual([d["name"] for d in state["fabric"]["devices"]], ["rocemu0", "rocemu1"])
        for device in state["fabric"]["devices"]:
            self.assertEqual((device["qps"], device["cqs"], device["mrs"]), ([], [], []))
            self.assertEqual(device["port_state"], "ACTIVE")
            self.assertTrue(device["gids"])
        self.assertEqual(state["clients"], [])
        self.assertNotIn("ok", state)

    def test_text_is_for_people(self):
        result = self.rocemu("run", "--", ROCEMU, "show")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for part in ("rocemu0  port ACTIVE  MTU 4096", "GID 0", "queue pairs: none",
                     "memory regions: none", "clients: none"):
            self.assertIn(part, result.stdout)

    def test_finds_the_only_private_daemon(self):
        process, directory = self.start_run("--devices", "1")
        self.assertEqual(self.show()["dir"], directory)
        self.stop(process)

    def test_asks_which_of_several(self):
        (one, one_dir), (two, two_dir) = self.start_run(), self.start_run()
        result = self.rocemu("show")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"--dir {one_dir}", result.stderr)
        self.assertIn(f"--dir {two_dir}", result.stderr)
        self.assertEqual(self.show("--dir", two_dir)["dir"], two_dir)
        self.stop(one, two)

    def test_prefers_the_option_then_the_environment_then_the_shared_one(self):
        process, directory = self.start_run()
        self.assertEqual(self.rocemu("up").returncode, 0)
        self.assertEqual(self.show()["dir"], self.shared)
        self.assertEqual(self.show(env={"ROCEMU_DIR": directory})["dir"], directory)
        self.assertEqual(self.show("--dir", self.shared, env={"ROCEMU_DIR": directory})["dir"],
                         self.shared)
        self.rocemu("down")
        self.stop(process)

    def test_of_nothing_is_said(self):
        self.assert_one_line(self.rocemu("show"), 1, "no NIC is running", "rocemu up")
        self.assert_one_line(self.rocemu("show", "--dir", "/no/such"), 1, "/no/such", "--dir")
        self.assert_one_line(self.rocemu("show", env={"ROCEMU_DIR": "/no/such"}), 1,
                             "/no/such", "ROCEMU_DIR")
        self.assert_one_line(self.rocemu("show", "--dir", "/x" * 200), 1, "no daemon")

    def test_a_full_disk_is_a_failure(self):
        process, _ = self.start_run()
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([ROCEMU, "show"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, env=self.environment, check=False)
        self.assertEqual((result.returncode, result.stderr),
                         (1, "rocemu: cannot write to standard output\n"))
        self.stop(process)


if __name__ == "__main__":
    unittest.main()
