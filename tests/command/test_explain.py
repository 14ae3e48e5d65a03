"""Tests that `rocemu explain` knows all statuses, events and rejections."""
import errno
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

    def test_a_reason_of_a_rejection_has_its_number_too(self):
        # IBTA vol 1, 12.6.7.2, the table of REJ reasons
        for number, name in ((1, "no_qp"), (8, "invalid_service_id"), (10, "stale_connection"), (28, "consumer"),
                             (33, "invalid_alternate_flow_label")):
            for words in (("REJ", str(number)), (f"rej {number}",), (f"REJ reason {number}",)):
                self.assertTrue(self.explain(*words).startswith(f"REJ {name}\n"), words)
        for number in ("0", "34", "-1", "28x"):
            self.assert_one_line(self.rocemu("explain", f"REJ {number}"), 1, "there is no explanation of 'REJ")

    def test_an_errno_has_its_number_too(self):
        for name in ("EPERM", "EIO", "ENOMEM", "EINVAL", "ETIMEDOUT", "ECONNREFUSED"):
            number = str(getattr(errno, name))  # of this system
            self.assertEqual(self.explain(number), self.explain(name))
            self.assertTrue(self.explain(number).startswith(f"{name}\n"), number)
        for number in ("0", "134", "4294967308"):
            self.assert_one_line(self.rocemu("explain", number), 1, "there is no explanation of")

    def test_a_mistyped_verb_is_answered_with_the_nearest(self):
        self.assert_one_line(self.rocemu("explain", "ENOMEM", "--verb", "reg_mrr"), 2,
                             "explain: --verb: there is no verb 'reg_mrr'; did you mean 'reg_mr'?")
        self.assert_one_line(self.rocemu("explain", "ENOMEM", "--verb", "xyzzyxyzzy"), 2, "docs/faults.md")

    def test_the_rule_for_a_verb_is_valid(self):
        for verb, error in (("reg_mr", "ENOMEM"), ("ibv_reg_mr", "ENOMEM"), ("rdma_connect", "EINVAL")):
            rule = json.loads(self.explain(error, "--verb", verb, "--json"))["rule"]
            file = self.scratch / "rule.yaml"
            file.write_text(f"rules: [{rule}]\n")
            self.assertEqual(self.rocemu("check", file).returncode, 0, rule)

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
        self.assert_one_line(self.rocemu("explain", "ENOMEN"), 1, "ENOMEM")
        self.assert_one_line(self.rocemu("explain"), 2, "--list")


if __name__ == "__main__":
    unittest.main()
