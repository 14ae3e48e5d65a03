"""Tests `rocemu set`, which changes a NIC while it runs."""
import pathlib
import unittest

from support import ROCEMU, CommandTest

SYSTEM = pathlib.Path(__file__).resolve().parent.parent / "system"


class SetPort(CommandTest):
    def in_run(self, script, *options):
        return self.rocemu("run", "--private", *options, "--", "sh", "-c", script,
                           env={"ROCEMU": ROCEMU})

    def test_down_and_up_again_are_seen_everywhere_at_once(self):
        look = ("ibv_devinfo -d rocemu1 | grep state; cat /sys/class/infiniband/rocemu1/ports/1/state"
                " /sys/class/infiniband/rocemu1/ports/1/phys_state; $ROCEMU show | grep '^rocemu'; ")
        result = self.in_run(f"$ROCEMU set rocemu1 port down; {look}"
                             f"$ROCEMU set rocemu1 port up; {look}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        self.assertEqual([line.split(" MTU")[0] for line in lines], [
            "state: PORT_DOWN (1)", "1: DOWN", "3: Disabled",
            "rocemu0 port ACTIVE", "rocemu1 port DOWN",
            "state: PORT_ACTIVE (4)", "4: ACTIVE", "5: LinkUp",
            "rocemu0 port ACTIVE", "rocemu1 port ACTIVE"])

    def test_says_nothing_and_may_be_done_twice(self):
        result = self.in_run("$ROCEMU set rocemu0 port down && $ROCEMU set rocemu0 port down")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_names_the_devices_there_are(self):
        for device in ("rocemu2", "", "rocemu0 "):
            result = self.in_run(f"$ROCEMU set '{device}' port up")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(f"no device '{device}'; the devices are rocemu0, rocemu1", result.stderr)

    def test_a_name_of_any_bytes_is_refused_in_words(self):
        result = self.in_run("$ROCEMU set $(printf '\\377') port up")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no device", result.stderr)

    def test_knows_its_daemon_as_show_does(self):
        self.assert_one_line(self.rocemu("set", "rocemu0", "port", "up"), 1, "no NIC is running")
        self.assert_one_line(self.rocemu("set", "rocemu0", "port", "up", "--dir", "/no/such"), 1,
                             "/no/such", "--dir")

    def test_asks_which_of_several(self):
        processes, directories = [], []
        for _ in range(2):
            process = self.start("run", "--", "sh", "-c", "echo $ROCEMU_DIR; exec sleep 60")
            directories.append(process.stdout.readline().strip())
            processes.append(process)
        result = self.rocemu("set", "rocemu0", "port", "down")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        for directory in directories:
            self.assertIn(f"rocemu set rocemu0 port down --dir {directory}\n", result.stderr)
        chosen = ("--dir", directories[1])
        self.assertEqual(self.rocemu("set", "rocemu0", "port", "down", *chosen).returncode, 0)
        self.assertEqual([self.show("--dir", directory)["fabric"]["devices"][0]["port_state"]
                          for directory in directories], ["ACTIVE", "DOWN"])
        for process in processes:
            process.terminate()
            process.communicate()


class SetRemoved(CommandTest):
    def in_run(self, script):
        return self.rocemu("run", "--private", "--", "bash", "-c", script, env={"ROCEMU": ROCEMU},
                           cwd=self.scratch)

    def test_what_is_left_of_a_device_can_be_destroyed_if_the_program_wants_that(self):
        """ibv_open_device(3): "Setting the environment variable RDMAV_ALLOW_DISASSOC_DESTROY tells the
        library to relate an EIO from destroy commands as a success"."""
        for setting, succeeds in (("", False), ("RDMAV_ALLOW_DISASSOC_DESTROY=0", False),
                                  ("RDMAV_ALLOW_DISASSOC_DESTROY=1", True)):
            with self.subTest(setting):
                result = self.in_run(f"""
                    env {setting} /usr/bin/python3 {SYSTEM}/hold_objects.py rocemu0 \\
                        $ROCEMU set rocemu0 removed
                """)
                self.assertEqual(result.returncode == 0, succeeds, result.stdout + result.stderr)
                if not succeeds:
                    self.assertIn("Input/output error", result.stderr)

    def test_programs_with_verbs_are_told(self):
        result = self.in_run("""
            stdbuf -oL ibv_asyncwatch -d rocemu0 > told & watch=$!
            until grep -q 'event FD' told; do kill -0 $watch || exit 1; done  # it is open
            $ROCEMU set rocemu0 removed && $ROCEMU set rocemu0 removed
            until grep -q event_type told; do :; done
            kill $watch
            cat told
        """)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout.count("event_type IBV_EVENT_DEVICE_FATAL"), 1, result.stdout)

    def test_nobody_finds_it_any_more(self):
        result = self.in_run("""
            $ROCEMU set rocemu0 removed
            ibv_devices; ibv_devinfo -d rocemu0; rdma dev; $ROCEMU show | grep '^rocemu'
        """)
        self.assertNotIn("hca_id", result.stdout)
        self.assertIn("rocemu0  port DOWN  MTU 4096  PDs 0  AHs 0  removed", result.stdout)
        self.assertEqual(result.stdout.count("rocemu0"), 1, result.stdout)
        self.assertEqual(result.stdout.count("rocemu1"), 3, result.stdout)

    def test_ids_of_librdmacm_are_told(self):
        result = self.in_run("""
            rping -s -a 127.0.0.1 > server 2>&1 & server=$!
            until $ROCEMU show --json | grep -q '"port": *7174'; do :; done
            rping -c -a 127.0.0.1 -I 127.0.0.2 & client=$!
            until [ $($ROCEMU show | grep -c ' RTS ') = 2 ]; do :; done
            $ROCEMU set rocemu0 removed
            until grep -q removal server; do :; done
            kill -9 $server $client
            cat server
        """)
        self.assertIn("cma detected device removal", result.stdout)

    def test_what_is_removed_has_no_port(self):
        result = self.in_run("$ROCEMU set rocemu0 removed && $ROCEMU set rocemu0 port up")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("rocemu0 was removed", result.stderr)

    def test_takes_no_further_arguments(self):
        self.assert_one_line(self.rocemu("set", "rocemu0", "removed", "now"), 2, "'now'")


if __name__ == "__main__":
    unittest.main()
