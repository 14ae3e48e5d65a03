"""Tests that reports of sanitizers count as crashes, whatever the exit status of the program."""
import os
import subprocess
import unittest

from support import ExploreTest

PROGRAM = r"""
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdlib.h>

int main(void) {
  static char memory[64];
  volatile int most = INT_MAX;
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = ibv_open_device(devices[0]);
  if (context == NULL) return 1;
  struct ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == NULL) return 1;
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
  if (mr == NULL) {
#ifdef OVERFLOWS
    return most + 1 == 0;
#else
    char* heap = malloc(8);
    free(heap);
    return ((volatile char*)heap)[1] & 0;
#endif
  }
  return ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0;
}
"""


@unittest.skipIf(os.environ.get("ROCEMU_SANITIZE"), "rocemu itself is sanitized")
class Sanitizers(ExploreTest):
    def judge(self, *options):
        built = subprocess.run(["cc", "-g", "-x", "c", "-", "-o", "program", *options, "-libverbs"],
                               input=PROGRAM, text=True, cwd=self.scratch, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode != 0:
            self.skipTest(built.stdout)
        self.environment["ASAN_OPTIONS"] = "detect_leaks=0"
        report = self.report("--only", "verbs:reg_mr", command=["./program"], status=1)
        [finding] = report["findings"]
        self.assertEqual(finding["verdict"], "CRASH")
        return finding["sentence"]

    def test_address(self):
        self.assertIn("a sanitizer reports AddressSanitizer heap-use-after-free",
                      self.judge("-fsanitize=address"))

    def test_undefined_behavior_that_the_program_survives(self):
        self.assertIn("a sanitizer reports UndefinedBehaviorSanitizer signed integer overflow",
                      self.judge("-fsanitize=undefined", "-DOVERFLOWS"))


if __name__ == "__main__":
    unittest.main()
