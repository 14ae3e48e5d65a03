"""Tests that `rocemu explain` knows all statuses, events and rejections."""
import json
import pathlib
import re
import unittest

from support import CommandTest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def values_of(header, enumeration):
    text = pathlib.Path("/usr/include", header).read_text()
    return re.findall(r"\b((?:IBV|RDMA)_\w+)", re.search(
        r"enum " + enumeration + r" \{(.*?)\};", text, re.S)[1])


class Explain(CommandTest):
    def explain(self, *arguments):
        result = self.rocemu("explain", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def test_every_status_and_event_has_a_cause(self):
        for header, enumeration in (("infiniband/verbs.h", "ibv_wc_status"),
                                    ("infiniband/verbs.h", "ibv_event_type"),
                                    ("rdma/rdma_cma.h", "rdma_cm_event_type")):
            for name in values_of(header, enumeration):
                found = json.loads(self.explain(name, "--json"))
                self.assertTrue(found["cause"], name)
                if not found["cause"].startswith(("cannot occur", "no realistic cause")):
                    self.assertTrue(found["remedy"], name)

    def test_every_nak_and_reason_has_a_meaning(self):
        names = (SOURCE / "wire" / "cm" / "cm_print.cc").read_text()
        reasons = re.findall(r'^      "(\w+)",$', names, re.M)
        self.assertIn("stale_connection", reasons)
        for reason in reasons:
            if reason != "unknown":
                self.assertIn("reason ", self.explain("REJ", reason))
        for nak in ("RNR NAK", "NAK PSN sequence error", "invalid request", "remote-access-error",
                    "NAK remote operational error"):
            self.assertIn("NAK", self.explain(nak))

    def test_an_errno_is_that_of_a_verb(self):
        self.assertIn("{on: verb, verb: create_qp, do: {errno: ENOMEM}}",
                      self.explain("ENOMEM", "--verb", "ibv_create_qp"))

    def test_every_rule_of_the_sanitizer_has_its_mistake_and_what_is_right(self):
        folder = SOURCE / "emulator" / "sanitizer" / "rules"
        ids = [re.search(r'\.id = "([a-z-]+)"', path.read_text())[1]
               for path in folder.glob("*.cc")]
        self.assertIn("mr-deregistered-in-use", ids)
        for name in ids:
            found = json.loads(self.explain(name, "--json"))
            self.assertTrue(found["cause"] and found["remedy"], name)

    def test_a_mistyped_name_is_answered_with_the_nearest(self):
        self.assert_one_line(self.rocemu("explain", "RETRY_EXEC_ERR"), 1, "IBV_WC_RETRY_EXC_ERR")
        self.assert_one_line(self.rocemu("explain"), 2, "--list")


if __name__ == "__main__":
    unittest.main()
