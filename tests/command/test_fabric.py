"""Tests `rocemu fabric`: synthetic traffic on a simulated network."""
import json
import pathlib
import tempfile
import unittest

from support import CommandTest


class Fabric(CommandTest):
    def fabric(self, *arguments):
        result = self.rocemu("fabric", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, status, text, *arguments):
        result = self.rocemu("fabric", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_an_incast_takes_the_receivers_link_as_long_as_its_bytes_do(self):
        found = json.loads(self.fabric(
            "--traffic", "incast", "--senders", "15", "--size", "409600", "--control", "none", "--fabric", "star-16",
            "--json").stdout)
        self.assertEqual((found["flows"], found["completed"], found["drops"]), (15, 15, 0))
        # Each host sends 100 frames of 4096 bytes and 82 bytes of headers, at 80 ps per byte. The first frame passes
        # two links of 500 ns each, and its transmission on the sender's link takes as long as on the receiver's.
        expected_ns = 15 * 100 * 4178 * 0.08 + 2 * 500 + 4178 * 0.08
        self.assertAlmostEqual(found["duration_ns"], expected_ns, delta=expected_ns / 1000)

    def test_a_flow_alone_has_no_slowdown(self):
        found = json.loads(self.fabric(
            "--traffic", "incast", "--senders", "1", "--fabric", "fat-tree-1024", "--json").stdout)
        self.assertAlmostEqual(found["slowdown"][-1]["p99"], 1, delta=0.001)

    def test_the_same_seed_gives_the_same_result(self):
        def run(seed):
            return self.fabric("--traffic", "websearch", "--load", "0.5", "--duration", "100us", "--fabric",
                               "leaf-spine-64", "--seed", seed).stdout
        first = run("1")
        self.assertEqual(first, run("1"))
        self.assertNotEqual(first, run("2"))

    def test_each_host_of_a_permutation_sends_one_flow(self):
        found = json.loads(self.fabric(
            "--traffic", "permutation", "--size", "10000", "--fabric", "star-16", "--control", "timely",
            "--json").stdout)
        self.assertEqual((found["flows"], found["completed"], found["payload_bytes"]), (16, 16, 160000))

    def test_what_does_not_end_is_a_failure(self):
        result = self.rocemu("fabric", "--traffic", "incast", "--limit", "10us", "--fabric", "star-16")
        self.assertEqual(result.returncode, 1)
        self.assertIn("15 flows did not complete within 0.010 ms", result.stderr)

    def test_bad_usage_names_what_would_be_right(self):
        self.refused(2, "no network given; for example: --fabric star-16", "--traffic", "incast")
        self.refused(2, "--traffic websearch, incast or permutation", "--fabric", "star-16")
        self.refused(2, "there is no traffic 'storm'", "--traffic", "storm", "--fabric", "star-16")
        self.refused(2, "--load '2' is not a number from 0.01 to 1", "--traffic", "websearch", "--load", "2", "--fabric", "star-16")
        self.refused(2, "--senders '16' is not a number from 1 to 15", "--traffic", "incast", "--senders", "16",
                     "--fabric", "star-16")
        for option, values in (("--senders", ("-1", "0", "4294967296", "x")), ("--rounds", ("-1", "0")),
                               ("--size", ("-1", "0", "1k")), ("--seed", ("-1", "18446744073709551616"))):
            for value in values:
                self.refused(2, f"{option} '{value}' is not a number from ", "--traffic", "incast", option, value,
                             "--fabric", "star-16")
        for value in ("-1", "0", "nan", "x"):
            self.refused(2, f"--load '{value}' is not a number from 0.01 to 1", "--traffic", "websearch", "--load",
                         value, "--fabric", "star-16")
        for value in ("1000", "128", "8192", "-1", "x"):  # an MTU of IBTA vol 1, 9.2.4.1 (PMTU)
            self.refused(2, f"--mtu '{value}' is not one of 256, 512, 1024, 2048 and 4096", "--traffic", "incast",
                         "--mtu", value, "--fabric", "star-16")
        self.refused(2, "--duration 'soon' is not a time", "--traffic", "websearch", "--duration", "soon", "--fabric",
                     "star-16")
        self.refused(2, "there is no congestion control 'x'", "--traffic", "incast", "--control", "x", "--fabric",
                     "star-16")
        self.refused(1, "cannot read the network 'nowhere'", "--traffic", "incast", "--fabric", "nowhere")

    def test_a_wrong_file_is_named_with_its_line(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "wrong.yaml")
            file.write_text("topology: {star: 4}\nlinks: {rate: 0Gbps}\n")
            self.refused(1, f"{file}:2:15: a rate of 0", "--traffic", "incast", "--senders", "1", "--fabric", str(file))

    def test_check_reads_networks(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "net.yaml")
            file.write_text("topology: {fat-tree: 4}\nnics: {dcqcn: default}\n")
            result = self.rocemu("check", str(file))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, f"{file}: a network of 16 hosts, 20 switches and 48 links\n")
            self.assertIn("no switch marks frames; add ecn", result.stderr)
            file.write_text("topology: {fat-tree: 3}\n")
            result = self.rocemu("check", "--json", str(file))
            self.assertEqual(result.returncode, 1)
            problem = json.loads(result.stdout)[0]["problems"][0]
            self.assertEqual((problem["line"], problem["column"]), (1, 22))


if __name__ == "__main__":
    unittest.main()
