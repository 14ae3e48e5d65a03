"""libfabric's verbs provider, with all three kinds of endpoints."""
import re
import unittest

from client_server import run_pair
from rocemu import free_port, rocemu_run


class Libfabric(unittest.TestCase):
    def pingpong(self, provider, endpoint):
        """With -c the data is compared. The server's port for control is -B, the client's -P."""
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
        result = rocemu_run("fi_info", "-p", "verbs")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(set(re.findall(r"FI_EP_\w+", result.stdout)),
                         {"FI_EP_MSG", "FI_EP_RDM", "FI_EP_DGRAM"})


if __name__ == "__main__":
    unittest.main()
