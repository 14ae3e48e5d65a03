"""Tests several faults in one run, and other orders of threads."""
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, VICTIM, ExploreTest


class SeveralFaults(ExploreTest):
    def again(self, finding):
        return subprocess.run(finding["reproduce"].replace("rocemu", ROCEMU, 1), shell=True,
                              cwd=self.scratch, env=self.environment, timeout=TIMEOUT,
                              capture_output=True, text=True, check=False)

    def test_other_orders_of_threads_are_tried(self):
        report = self.report("--only", "requests", "--schedules", "8", command=[VICTIM, "races"],
                             status=1)
        orders = [one for one in report["results"] if one["at"] == "schedule"]
        self.assertEqual(len(orders), 8)
        self.assertEqual({one["verdict"] for one in orders}, {"SURVIVED", "WRONG"})
        [finding] = report["findings"]
        self.assertIn("'second' instead of 'first'", finding["sentence"])
        self.assertIn("when threads execute in order ", finding["sentence"])
        self.assertIn("--schedule ", finding["reproduce"])
        self.assertEqual(finding["confirmed"], finding["repetitions"])
        self.assertTrue(self.again(finding).stdout.startswith("second\nfirst\n"))

    def test_mixtures_are_tried(self):
        report = self.report("--only", "verbs", "--random", "30", "--seed", "7",
                             command=[VICTIM, "crashes"], status=1)
        mixtures = [one for one in report["results"] if one["at"] == "mixture"]
        self.assertEqual(len(mixtures), 30)
        self.assertIn("CRASH", {one["verdict"] for one in mixtures})
        # If a pair of faults ends like one of its faults alone, it is reported together with that
        # fault.
        for finding in report["findings"]:
            self.assertEqual(finding["scenario"].count("on:"), 1, finding)

    def test_the_same_seed_mixes_the_same(self):
        def mixtures(seed):
            _, out, _ = self.explore("--list", "--random", "9", "--seed", seed, command=[VICTIM])
            return out[out.index("mixture"):]
        self.assertEqual(mixtures("1"), mixtures("1"))
        self.assertNotEqual(mixtures("1"), mixtures("2"))

    def test_a_second_fault_where_only_a_first_one_leads(self):
        report = self.report("--only", "verbs:reg_mr", "--depth", "2",
                             command=[VICTIM, "survives"], status=0)
        second = [one for one in report["results"] if one["fault"] ==
                  "explore_victim#1's 1st reg_mr fails with ENOMEM, and then explore_victim#1's "
                  "2nd reg_mr fails with ENOMEM"]
        self.assertEqual([one["verdict"] for one in second], ["REPORTED"])


if __name__ == "__main__":
    unittest.main()
