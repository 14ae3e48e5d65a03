"""Runs stock programs with each profile that has RC: they work, or they fail because of a property that the NIC
lacks (docs/compatibility.md)."""
import os
import pathlib
import socket
import subprocess
import unittest

BIN = pathlib.Path(os.environ["ROCEMU_BIN"])
WITH_RC = ("bnxt-re", "erdma", "hns-hip09", "irdma-e810", "mana", "mlx4-cx3pro", "mlx5-cx5", "mlx5-cx6dx", "qedr", "rxe")
# For each program, the profiles with which it fails, and the message that is logged.
PROGRAMS = {
    "ib_write_bw -F -n 20": {},
    "ib_send_lat -F -n 20": {
        "irdma-e810": "asked for 236 bytes of inline data, the device has 101",
        "qedr": "asked for 236 bytes of inline data, the device has 128",
    },
    "ibv_rc_pingpong -g 0 -c -n 20": {},
    "ib_send_bw -F -n 20 -c UD": {name: "the device has no QPs of type UD" for name in ("erdma", "mana", "qedr")},
}


def free_port():
    with socket.socket() as holder:
        holder.bind(("", 0))
        return holder.getsockname()[1]


class Stock(unittest.TestCase):
    def pair(self, profile, program):
        port = free_port()
        script = (f"{program} -p {port} & {BIN}/rocemu wait --listening {port}; {program} -p {port} 127.0.0.1; "
                  f"status=$?; [ $status = 0 ] || kill $! 2>/dev/null; wait; exit $status")
        return subprocess.run([BIN / "rocemu", "run", "--private", "--profile", profile, "--timeout", "60s", "--", "sh",
                               "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90,
                              stdin=subprocess.DEVNULL, check=False)

    def test_work_or_fail_for_what_the_nic_lacks(self):
        for program, failures in PROGRAMS.items():
            for profile in WITH_RC:
                with self.subTest(program=program, profile=profile):
                    result = self.pair(profile, program)
                    if message := failures.get(profile):
                        self.assertNotIn(result.returncode, (0, 124), result.stdout)
                        self.assertIn(f"profile {profile}: ", result.stdout)
                        self.assertIn(message, result.stdout)
                    else:
                        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
