"""Tests libfabric's verbs provider with all three kinds of endpoints."""
import re
import unittest

from client_server import run_pair
from rocemu import ROCEMU, free_port, has_virtual_cycles, rocemu_run, run, temporary_directory


class Libfabric(unittest.TestCase):
    def pingpong(self, provider, endpoint):
        """-c compares the data. The server's control port is -B, the client's -P."""
        port = free_port()
        program = ["fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-S", "all", "-I", "10"]
        result = run_pair([*program, "-B", port], [*program, "-P", port, "localhost"], port=port)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertGreater(len(re.findall(r"^\S+\s+10\s+=10\s", result.stdout, re.MULTILINE)), 20,
                           result.stdout)

    def test_messages(self):
        self.pingpong("verbs", "msg")

    def test_reliable_datagrams(self):
        self.pingpong("verbs;ofi_rxm", "rdm")

    def test_datagrams(self):
        self.pingpong("verbs", "dgram")

    def test_fi_info_offers_all_kinds_of_endpoints(self):
        for options in ((), ("--lockstep",)):
            result = rocemu_run("fi_info", "-p", "verbs", options=options)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertEqual(set(re.findall(r"FI_EP_\w+", result.stdout)),
                             {"FI_EP_MSG", "FI_EP_RDM", "FI_EP_DGRAM"}, options)

    def test_in_lockstep_each_run_is_the_same(self):
        # libfabric is linked with libpsm2, which measures the cycle counter while it is loaded, until two measurements
        # agree. If the counter has real time, the duration is random (docs/reference/lockstep.md), and runs cannot be
        # compared.
        names = ("first", "second") if has_virtual_cycles() else ("first",)
        for endpoint, provider in (("msg", "verbs"), ("rdm", "verbs;ofi_rxm")):
            program = f"fi_pingpong -p '{provider}' -e {endpoint} -c -S 4096 -I 10"
            port = free_port()
            script = (f"{program} -B {port} & {ROCEMU} wait --listening {port} &&"
                      f"{program} -P {port} localhost && wait $!")
            with temporary_directory() as directory:
                for name in names:
                    result = rocemu_run("sh", "-c", script,
                                        options=("--lockstep", "--record", f"{directory}/{name}"))
                    self.assertEqual(result.returncode, 0, result.stdout)
                difference = run(ROCEMU, "diff", f"{directory}/{names[0]}", f"{directory}/{names[-1]}")
                self.assertEqual(difference.returncode, 0, difference.stdout)


if __name__ == "__main__":
    unittest.main()
